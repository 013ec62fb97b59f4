"""The scores that callbacks follow: rows are held out for them, and what no training records is refused."""

import copy
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from skorch.callbacks import BatchScoring, EpochScoring

from ..updates import MetaGradient
from ._checks import callback_setting, kind_of

Named = tuple[str | None, Any]


def _scores(*kinds: str) -> set[str]:
    """Scores of rows that are not trained on, by their names in the history, for these kinds of labels."""
    return {f"valid_{kind}{score}" for kind in kinds for score in ("loss", "acc")}


_HELD_OUT = _scores("", "noisy_", "clean_")
# what skorch writes in each epoch beside scores
_COUNTS = {"epoch", "dur", "train_batch_count", "valid_batch_count"}
# what computes scores itself
_SCORING = (EpochScoring, BatchScoring)
# part of the rows that is held out for a callback; a choice, not measured
_FRACTION = 0.1


def held_out_fraction(
    callbacks: Sequence[Named],
    params: Mapping[str, Any],
    stage: str,
    held_out: float,
    *,
    watched: bool,
) -> float:
    """Part of the rows to hold out: that of the method, or a tenth if a callback has scores of held-out rows.

    Parameters
    ----------
    callbacks : sequence of (str or None, callback)
        The user's callbacks, and the update; EarlyStopping follows ``valid_loss`` by default, and EpochScoring computes
        a score of held-out rows.
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
    callbacks = [(name, c) for name, c in callbacks if params.get(f"callbacks__{name}", c) is not None]  # disabled
    own = set().union(*(_written(*pair, params) for pair in callbacks))
    scoring = [pair for pair in callbacks if _scores_held_out_rows(*pair, params)]
    of_split |= set().union(*(_written(*pair, params) for pair in scoring))
    if scoring and params.get("labels", "noisy") == "noisy":  # clean rows are few: not for a score that nobody follows
        held_out = held_out or _FRACTION
    for name, callback in callbacks:
        monitor = _setting(name, callback, "monitor", params)
        monitor = monitor.removesuffix("_best") if isinstance(monitor, str) else None
        if monitor in of_split:
            held_out = held_out or _FRACTION
        elif monitor is None or monitor in in_any_case | own | _COUNTS:
            continue
        elif monitor in _HELD_OUT or all(_is_known(callback) for _, callback in callbacks):
            raise ValueError(
                f"{kind_of(callback).__name__} monitors {monitor!r}, which the training {stage!r} does not record: "
                f"give monitor= one of {sorted(in_any_case | of_split | own)}."
            )
    return held_out


def _written(name: str | None, callback: Any, params: Mapping[str, Any]) -> set[str]:
    """Names under which a callback of skorch's, or the update, writes into the history."""
    if isinstance(callback, _SCORING):
        callback = copy.copy(callback).initialize()
    names = {_setting(name, callback, attribute, params) for attribute in ("name_", "name", "event_name")}
    return {n for n in names if isinstance(n, str)} | ({"meta_loss"} if isinstance(callback, MetaGradient) else set())


def _scores_held_out_rows(name: str | None, callback: Any, params: Mapping[str, Any]) -> bool:
    """Whether a callback of skorch's computes a score of held-out rows from what the net gives for them.

    Without caching it would predict them itself, and is given no labels.
    """
    on_train, caches = (_setting(name, callback, setting, params) for setting in ("on_train", "use_caching"))
    return issubclass(kind_of(callback), _SCORING) and not on_train and bool(caches)


def _is_known(callback: Any) -> bool:
    """Whether it is a callback of skorch's or of this library's: others may write what they like."""
    return kind_of(callback).__module__.split(".")[0] in ("skorch", __name__.split(".")[0])


def _setting(name: str | None, callback: Any, attribute: str, params: Mapping[str, Any]) -> Any:
    """A setting of a callback; of a class, the default of its constructor."""
    default = inspect.signature(callback).parameters.get(attribute) if isinstance(callback, type) else None
    given = callback_setting(name, callback, attribute, params)
    return default.default if default is not None and given is None else given
