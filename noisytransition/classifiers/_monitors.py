"""Whether the scores that callbacks follow are recorded in a training."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ._checks import callback_setting

# scores of rows that are not trained on, by the names in the history
_HELD_OUT = {f"valid_{kind}{score}" for kind in ("", "noisy_", "clean_") for score in ("loss", "acc")}


def check_monitors(
    callbacks: Sequence[tuple[str | None, Any]], params: Mapping[str, Any], stage: str, labels: str, *, watched: bool
) -> None:
    """Raise if a callback follows a score that a training does not record, as EarlyStopping does by default.

    Parameters
    ----------
    callbacks : sequence of (str or None, callback)
        The user's callbacks.
    params : mapping
        Parameters of the net.
    stage : str
        Name of the training.
    labels : {"noisy", "clean"}
        Kind of the labels trained on.
    watched : bool
        Whether the loss of the clean rows is recorded.
    """
    has_split = params.get("train_split") is not None
    held_out = [f"valid_{kind}{score}" for kind in ("", f"{labels}_") for score in ("loss", "acc")]
    recorded = sorted({"train_loss", *(held_out if has_split else ()), *(["valid_clean_loss"] if watched else ())})
    own = {name for pair in callbacks for name in (pair[0], getattr(pair[1], "name", None))}
    for name, callback in callbacks:
        monitor = str(_monitor(name, callback, params)).removesuffix("_best")
        if monitor in _HELD_OUT - {*recorded} - own:
            hold_out = "" if has_split else "hold out rows by train_split=skorch.dataset.ValidSplit(5), or "
            kind = callback if isinstance(callback, type) else type(callback)
            raise ValueError(
                f"{kind.__name__} monitors {monitor!r}, which the training {stage!r} does not record: {hold_out}"
                f"give monitor= one of {recorded}."
            )


def _monitor(name: str | None, callback: Any, params: Mapping[str, Any]) -> Any:
    """What a callback follows; of a class, the default of its constructor."""
    default = inspect.signature(callback).parameters.get("monitor") if isinstance(callback, type) else None
    given = callback_setting(name, callback, "monitor", params)
    return default.default if default is not None and given is None else given
