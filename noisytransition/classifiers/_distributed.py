"""Fits that several processes of `torch.distributed` train together: what they need, and what they agree on."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

import joblib
import torch
import torch.distributed as dist

from .._processes import Processes
from ..nets import BatchLoader, DatasetRows, FitState, Rows
from ._checks import check_flag

if TYPE_CHECKING:
    from ._run import Run

_PLAIN = (bool, int, float, str, type(None))


def check_distributed(estimator: Any) -> None:
    """Raise where processes could not train together with this classifier's parameters."""
    check_flag(estimator, "distributed")
    if not estimator.distributed:
        return
    if not (dist.is_available() and dist.is_initialized()):
        raise ValueError(
            "distributed=True needs the processes of torch.distributed: start the program by 'torchrun "
            "--nproc-per-node 2 program.py', and call torch.distributed.init_process_group() in it before fit."
        )
    params = estimator.get_params(deep=False)
    refused = {
        "n_jobs": (params.get("n_jobs") not in (None, 1), "but every process trains all folds in turn. Leave it out"),
    } | {
        name: (name in params and not _is_ours(params[name]), "but batches are divided by BatchLoader. Leave it out")
        for name in ("iterator_train", "iterator_valid")
    }
    for name, (is_refused, why) in refused.items():
        if is_refused:
            raise ValueError(f"distributed=True with {name}={params[name]!r}, {why}.")


def _is_ours(loader: Any) -> bool:
    return isinstance(loader, type) and issubclass(loader, BatchLoader)


def is_first(estimator: Any) -> bool:
    """Whether this process shows what is to be seen of a fit."""
    return not (estimator.distributed and dist.is_initialized()) or dist.get_rank() == 0


@contextmanager
def joined(run: "Run", estimator: Any) -> Iterator[None]:
    """Train with the other processes inside of a with-block, by the seed of the first.

    Raises
    ------
    ValueError
        If they cannot reach each other, or have other data or parameters.
    """
    if not estimator.distributed:
        yield
        return
    with run.processes.at_work(run.params["device"]):
        try:
            agree = run.processes.agree(_digest(run, estimator))
        except RuntimeError as error:
            raise ValueError(
                f"the processes cannot add up tensors on device={str(run.params['device'])!r}: {error}. Take the "
                "backend 'gloo' for the CPU, 'nccl' for GPUs, and of these one for each process: "
                "device=f'cuda:{os.environ[\"LOCAL_RANK\"]}'."
            ) from error
        if not agree:
            raise ValueError(
                "the processes have different data or parameters. Give each the same rows and labels, all of them, "
                "with a seed for all that is random (flip_labels(..., random_state=0), train_test_split)."
            )
        run.seed = run.processes.numbers(run.seed)[0]
        yield


def _digest(run: "Run", estimator: Any) -> int:
    """Number that tells fits apart by labels, sizes, first rows, and parameters that are numbers or text."""
    params = estimator.get_params(deep=False) | {"device": None, "verbose": None}
    plain = sorted((k, v) for k, v in params.items() if isinstance(v, _PLAIN) and k != "random_state")
    rows = [_of_rows(r) for r in (run.noisy, run.clean if run.has_clean else None) if r is not None]
    digest = joblib.hash([type(estimator).__name__, plain, run.classes, rows, torch.get_default_dtype()])
    return int(digest[:15], 16)


def _of_rows(rows: Rows) -> list[Any]:
    first = None if isinstance(rows, DatasetRows) else rows.take([0, len(rows) - 1]).dense()
    return [len(rows), rows.columns, first]


# ---------------------------------------------------------------------------- saved states
def open_state(path: str | PathLike, fingerprint: dict[str, str], seed: int, processes: Processes) -> FitState:
    """Open a saved fit; of several processes the first writes, and the others read the same files."""
    if not processes.are_several:
        return FitState(path, fingerprint, seed)
    opened: Any = None
    if processes.share.rank == 0:
        try:
            opened = FitState(path, fingerprint | {"processes": str(processes.share.size)}, seed)
        except ValueError as error:
            opened = error  # the others would wait for ever
    opened = processes.object_from_first(opened)
    if isinstance(opened, Exception):
        raise opened
    opened.writes = processes.share.rank == 0
    return opened


def check_same_state(state: FitState, stage: str, processes: Processes) -> None:
    """Raise unless all processes go on from the same epoch of a stage."""
    if not processes.are_several:
        return
    if not processes.agree(2 * state.epochs_done(stage) + state.is_complete(stage)):
        raise ValueError(
            f"the processes read other states of {stage!r} in {str(state.path)!r}: give a folder on a disk that all "
            "hosts share, or leave state out."
        )
