"""Trainings that do not depend on each other, in this process or in others, by joblib."""

import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from textwrap import shorten
from typing import TypeVar

import joblib
import torch
from skorch.history import History

from ..nets import DatasetRows
from ._run import Run

Result = TypeVar("Result")


def train_parts(run: Run, tasks: Mapping[str, Callable[[Run, str], Result]], n_jobs: int | None = None) -> list[Result]:
    """Do trainings that do not depend on each other; the results are the same to the bit for any `n_jobs`.

    Each has its share of PyTorch's threads, also where they are done one after the other.

    Parameters
    ----------
    run : Run
    tasks : dict of str to callable
        By stage: takes a run, and the stage's name; trains that stage in that run; gives back what is asked of it.
    n_jobs : int, optional
        As in `joblib.Parallel`: processes, or what ``joblib.parallel_config`` says. In threads they are done in turn:
        PyTorch's generators are shared by all threads.

    Returns
    -------
    list
        What the tasks gave back.
    """
    n_threads = max(torch.get_num_threads() // len(tasks), 1)
    train = joblib.delayed(_train_part)
    backend, _ = joblib.parallel.get_active_backend()
    in_turn = getattr(backend, "supports_sharedmem", False)
    parallel = joblib.Parallel(n_jobs, **({"backend": "sequential"} if in_turn else {}))
    done = parallel(train(stage, task, run.part(i), n_threads) for i, (stage, task) in enumerate(tasks.items()))
    results, histories = zip(*done, strict=True)
    run.add(dict(zip(tasks, histories, strict=True)))
    return list(results)


@contextmanager
def torch_as_it_was() -> Iterator[None]:
    """Put PyTorch's generators and number of threads back at the end of the block."""
    n_threads = torch.get_num_threads()
    try:
        with torch.random.fork_rng(range(torch.cuda.device_count())):
            yield
    finally:
        torch.set_num_threads(n_threads)


def unsendable(run: Run, n_jobs: int | None = None) -> str | None:
    """Say what `train_parts` could not send to the processes that it would use, if there is such."""
    (backend, _), n = joblib.parallel.get_active_backend(), joblib.effective_n_jobs(n_jobs)
    if getattr(backend, "supports_sharedmem", False) or n == 1:
        return None
    rows = [rows for rows in (run.noisy, run.clean) if isinstance(rows, DatasetRows)]
    for name, value in (run.params | {"X": rows}).items():
        try:
            pickle.dumps(joblib.wrap_non_picklable_objects([value]))  # as joblib's default backend does
        except Exception as error:  # pickle raises what the objects raise
            return (
                f"cannot send {name}={shorten(repr(value), 300)} to {n} processes: {error}. Give what can be pickled, "
                "or train in this process (n_jobs=1)"
            )
    return None


def _train_part(stage: str, task: Callable[[Run, str], Result], run: Run, n_threads: int) -> tuple[Result, History]:
    """Do one task with so many threads: their number has an effect on rounding."""
    with torch_as_it_was():
        torch.set_num_threads(n_threads)
        result = task(run, stage)
    return result, run.histories[stage]
