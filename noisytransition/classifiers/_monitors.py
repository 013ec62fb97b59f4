"""The scores that callbacks follow: rows are held out for them, and what no training records is refused."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ._checks import callback_setting


def _scores(*kinds: str) -> set[str]:
    """Scores of rows that are not trained on, by their names in the history, for these kinds of labels."""
    return {f"valid_{kind}{score}" for kind in kinds for score in ("loss", "acc")}


_HELD_OUT = _scores("", "noisy_", "clean_")
# part of the rows that is held out for a callback; a choice, not measured
_FRACTION = 0.1


def held_out_fraction(
    callbacks: Sequence[tuple[str | None, Any]],
    params: Mapping[str, Any],
    stage: str,
    held_out: float,
    *,
    watched: bool,
) -> float:
    """Part of the rows to hold out: that of the method, or a tenth if a callback follows scores of held-out rows.

    Parameters
    ----------
    callbacks : sequence of (str or None, callback)
        The user's callbacks; EarlyStopping follows ``valid_loss`` by default.
    params : mapping
        Parameters of the net.
    stage : str
        Name of the training.
    held_out : float
        What the method holds out.
    watched : bool
        Whether the loss of the clean rows is recorded in any case.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a callback follows a score that this training does not record.
    """
    of_split = _scores("", f"{params.get('labels', 'noisy')}_")
    in_any_case = {"train_loss", *(["valid_clean_loss"] if watched else [])}
    own = {name for pair in callbacks for name in (pair[0], getattr(pair[1], "name", None))}
    for name, callback in callbacks:
        monitor = str(_monitor(name, callback, params)).removesuffix("_best")
        if monitor not in _HELD_OUT - in_any_case - own:
            continue
        if monitor not in of_split:
            kind = callback if isinstance(callback, type) else type(callback)
            raise ValueError(
                f"{kind.__name__} monitors {monitor!r}, which the training {stage!r} does not record: "
                f"give monitor= one of {sorted(in_any_case | of_split)}."
            )
        held_out = held_out or _FRACTION
    return held_out


def _monitor(name: str | None, callback: Any, params: Mapping[str, Any]) -> Any:
    """What a callback follows; of a class, the default of its constructor."""
    default = inspect.signature(callback).parameters.get("monitor") if isinstance(callback, type) else None
    given = callback_setting(name, callback, "monitor", params)
    return default.default if default is not None and given is None else given
