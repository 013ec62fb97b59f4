"""The user's callbacks, made ready for one training stage."""

import copy
from typing import Any

from skorch.callbacks import Checkpoint

from ..nets import NoisyLabelNet


def stage_callbacks(callbacks: Any) -> list[Any]:
    """Shallow copies: a stage sets up its own, and what they hold (a writer, a list) stays shared."""
    copies = [(name, cb if isinstance(cb, type) else copy.copy(cb)) for name, cb in _named(callbacks)]
    return [cb if name is None else (name, cb) for name, cb in copies]


def _named(callbacks: Any) -> list[tuple[str | None, Any]]:
    return [tuple(cb) if isinstance(cb, tuple | list) else (None, cb) for cb in callbacks or ()]


def selects(callbacks: Any) -> bool:
    """Say whether a callback of the user's brings back a best epoch."""
    return any(getattr(callback, "load_best", False) for _, callback in _named(callbacks))


def check_callbacks(estimator: Any) -> None:
    """Raise if `callbacks` is no list, or ``callbacks__...`` names one that is not there."""
    if isinstance(estimator.callbacks, str):
        raise ValueError(f"callbacks={estimator.callbacks!r}: give a list of callbacks, or None.")
    known = set(NoisyLabelNet(None, callbacks=estimator.callbacks)._callbacks_grouped_by_name()[0])
    for name in estimator._net_params:
        if name.startswith("callbacks__") and name.split("__")[1] not in known:
            raise ValueError(f"{name!r}: there is no such callback; there are {sorted(known)}.")


def check_checkpoints(callbacks: Any) -> None:
    """Raise if a Checkpoint would bring the module back without its T."""
    for _, callback in _named(callbacks):
        if isinstance(callback, Checkpoint) and callback.load_best and callback.f_criterion is None:
            raise ValueError(
                "Checkpoint(load_best=True, f_criterion=None) would bring back the module without its transition "
                "matrix, which the criterion holds: give f_criterion a file name (default 'criterion.pt')."
            )
