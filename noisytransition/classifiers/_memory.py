"""Trainings that are paid once: kept by joblib's Memory under a hash of all that determines their result."""

import os
import platform
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import joblib
import torch
from skorch.callbacks import (
    BatchScoring,
    EarlyStopping,
    EpochScoring,
    EpochTimer,
    GradientNormClipping,
    LRScheduler,
    PassthroughScoring,
    PrintLog,
)
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from ..nets import (
    CleanLoss,
    DatasetRows,
    GradientScaling,
    HeldOutPosteriors,
    NoisyLabelNet,
    Rows,
    SaveState,
    net_state,
    restore_net,
)
from ._describe import describe, versions
from ._fingerprint import version_of
from ._progress import ShowProgress

if TYPE_CHECKING:
    from ._run import Run

# callbacks that change nothing in the result, and those of which all effects are in the state that is kept
_WITHOUT_EFFECT = (EpochTimer, PrintLog, SaveState, ShowProgress)
_KNOWN: tuple[type, ...] = (
    BatchScoring,
    EarlyStopping,
    EpochScoring,
    GradientNormClipping,
    LRScheduler,
    PassthroughScoring,
)
_KNOWN += (CleanLoss, GradientScaling, HeldOutPosteriors)
# parameters of a net that are described by what was made of them, or that have no effect on the result
_MADE = {"module", "criterion", "callbacks", "verbose", "processes"}


class _Lost(Exception):
    """Raised after a training of which not all can be kept."""


def as_memory(memory: Any) -> joblib.Memory | None:
    """Memory of a parameter: a folder, or what has joblib's interface.

    Raises
    ------
    TypeError
        For anything else.
    ValueError
        If the folder cannot be made.
    """
    if memory is None or hasattr(memory, "cache"):
        return memory
    if isinstance(memory, str | os.PathLike):
        try:
            os.makedirs(memory, exist_ok=True)
            return joblib.Memory(os.fspath(memory), verbose=0)
        except OSError as error:
            raise ValueError(f"memory={memory!r} cannot be written to: {error}. Use another folder.") from error
    raise TypeError(f"memory={memory!r}; give a folder, a joblib.Memory, or None.")


def train_once(
    run: "Run",
    nets: Mapping[str, NoisyLabelNet],
    rows: Sequence[Rows],
    train: Callable[[], None],
    memory: joblib.Memory | None,
) -> bool:
    """Train initialised nets, or put into them what an equal training gave.

    What cannot be described, or not be kept whole, is trained as if there were no memory, with a warning.

    Parameters
    ----------
    run : Run
    nets : dict of str to NoisyLabelNet
        By stage: one, or several that are trained at once.
    rows : sequence of Rows
        Rows that each net is trained on.
    train : callable
        Trains the nets.
    memory : joblib.Memory or None
        None: they are trained.

    Returns
    -------
    bool
        Whether the result was known.
    """
    if memory is None:
        train()
        return False
    trained: list[str] = []

    def states() -> list[dict[str, Any]]:
        train()
        trained.extend(nets)
        try:
            return [net_state(net) for net in nets.values()]
        except ValueError as error:
            raise _Lost(str(error)) from error

    try:
        key = joblib.hash([_key(run, *pair) for pair in zip(nets.values(), rows, strict=True)])
    except ValueError as error:
        _warn(nets, error)
        train()
        return False
    try:
        kept = memory.cache(_training, ignore=["states"])(key, states)
    except _Lost as error:
        _warn(nets, error)
        return False
    if not trained:
        for net, state in zip(nets.values(), kept, strict=True):
            restore_net(net, {**state, "complete": True})
    return not trained


def _training(key: str, states: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Train, and give the states of the nets and of the generators; what joblib keeps by the key."""
    return states()


def _warn(stages: Iterable[str], error: Exception) -> None:
    message = f"the training {', '.join(stages)!r} is not kept in memory and not read from it: {error}"
    warnings.warn(message, UserWarning, stacklevel=6)


# ---------------------------------------------------------------------------- what determines a training
def _key(run: "Run", net: NoisyLabelNet, rows: Rows) -> str:
    """Hash of what determines the training of an initialised net.

    Raises
    ------
    ValueError
        If something cannot be described, or has effects that nobody knows.
    """
    net_state(net)  # a net that would lose state is refused here
    for source in (run.noisy, run.clean if run.has_clean else None):
        if isinstance(source, DatasetRows):
            _check_dataset(source.X)
    params = {k: v for k, v in net.get_params(deep=False).items() if k not in _MADE}
    made = {"net": type(net), "module": net.plain_module_, "loss": net.criterion_, "rows": rows}
    callbacks = [(k, v) for k, v in net.callbacks_ if v is not None and not isinstance(v, _WITHOUT_EFFECT)]
    for _, callback in callbacks:
        _check_callback(net, callback)
    described = {name: describe(value, name) for name, value in [*params.items(), *made.items(), *callbacks]}
    return joblib.hash([described, [name for name, _ in callbacks], run.batch_history, _surroundings(net)])


def _check_callback(net: NoisyLabelNet, callback: Any) -> None:
    is_role = callback is net.update or callback is net.select
    if not (is_role or type(callback) in _KNOWN or isinstance(getattr(callback, "fit_name", None), str)):
        raise ValueError(
            f"the callback {type(callback).__name__} may have effects that would be missing when the training is read. "
            "If it has none outside of the net, give it a name that identifies it: callback.fit_name = 'clip, 1'."
        )


def _check_dataset(dataset: Any) -> None:
    """Raise for a Dataset whose samples are not in its attributes, as far as is known."""
    if isinstance(getattr(dataset, "fit_name", None), str) or type(dataset) is TensorDataset:
        return
    inner = [dataset.dataset] if type(dataset) is Subset else getattr(dataset, "datasets", [])
    if type(dataset) not in (Subset, ConcatDataset):
        raise ValueError(
            f"{type(dataset).__name__} may read samples that change. Give it a name that identifies them: "
            "dataset.fit_name = 'photos, 1'."
        )
    for part in inner:
        _check_dataset(part)


def _surroundings(net: NoisyLabelNet) -> list[Any]:
    """Generators, versions, processor and settings of torch, all of which have an effect on the bits."""
    device = torch.device(net.device or "cpu")
    on_cuda = [torch.cuda.get_device_name(device), torch.cuda.get_rng_state_all()] if device.type == "cuda" else []
    settings = (
        torch.get_num_threads(),
        torch.get_default_dtype(),
        torch.get_float32_matmul_precision(),
        torch.are_deterministic_algorithms_enabled(),
        torch.backends.cpu.get_cpu_capability(),
        platform.machine(),
    )
    libraries = versions() | {name: version_of(name) for name in ("scipy", "sklearn")}
    return [describe(part) for part in (torch.get_rng_state(), on_cuda, settings, libraries)]
