"""Reasons not to trust T."""

import warnings

import numpy as np
from numpy.typing import NDArray

from ..transition import transition_error
from ..transition._class_offset import weights_of_clean_rows
from ..transition._pair_posterior import PairEstimate
from ..transition._rule_labels import RuleEstimate
from ..transition._temperature import tempered_log_loss
from ..transition._uncertainty import TransitionUncertainty
from ._cross_fitting import Candidate
from ._estimate import Estimate, known_pairs
from ._run import Run
from ._sampling import UNKNOWN_SHARES, classes_without_clean_rows

# Thresholds were chosen on the design half of examples/benchmarks/zoo, seeds 11 to 13.
# mean distance of the T of both weights of the clean rows, in half widths of their 90 % intervals
_APART = 0.25
# rise of the log-likelihood of held-out clean rows at the larger weight; less than what T is changed for
_GAIN = 1.0
# or: error of one T if the other is true, and by how much clean rows may be less likely at the larger weight
_FAR, _LOSS = 0.1, 3.0
# half widths of intervals are at least this: of entries at 0 they are nearly nothing
_LEAST_WIDTH = 0.005
# a network is trained too little if the loss of held-out clean rows, as a share of that of guessing, is above this ...
_HIGH_LOSS = 0.65
# ... and still fell in the second half of the training, by so many standard errors
_FALLING = 2.0
# half width of the 90 % interval of a diagonal entry beyond which its class is not told from others
_WIDE = 0.25
# end of messages where T may be estimated from pairs
_GIVE_PAIRS = "; verify rows with their noisy label (trusted= with y_meta=), which T is then fitted to"


def diagnose(
    estimate: Estimate, candidates: list[Candidate], bars: TransitionUncertainty | None, run: Run
) -> dict[str, str]:
    """Reasons not to trust T, by name; empty if there are none.

    Parameters
    ----------
    estimate : Estimate
    candidates : list of Candidate
        By rising number of epochs.
    bars : TransitionUncertainty or None
    run : Run

    Returns
    -------
    dict of str to str
    """
    found = {
        "missing_class": _missing_class(run),
        "unknown_shares": UNKNOWN_SHARES if estimate.is_undecided else "",
        "not_one_T": _not_one_T(estimate, bars, run),
        "under_trained": _under_trained(candidates, run, estimate.offset),
        "not_separated": _not_separated(bars, run.classes),
    }
    return {name: text for name, text in found.items() if text}


def warn_of_reasons(reasons: dict[str, str]) -> None:
    """Warn of reasons not to trust T, from a function that `_fit` calls."""
    if reasons:
        warnings.warn(f"T may be wrong: {'; '.join(reasons.values())}.", UserWarning, stacklevel=5)


def _missing_class(run: Run) -> str:
    absent = classes_without_clean_rows(run)
    return f"no clean row of class {absent}: verify some rows of it" if absent else ""


def _not_one_T(estimate: Estimate, bars: TransitionUncertainty | None, run: Run) -> str:
    """Clean rows contradict the likelihood of all labels, which supposes that one T is true for all rows."""
    if isinstance(estimate.revised, PairEstimate):
        return (
            "the verified pairs contradict the T of all labels: T probably differs between rows; the flips below are "
            "means over them, by a posterior that fits the pairs"
        )
    advice = _GIVE_PAIRS if known_pairs(run) is None else ""
    if isinstance(estimate.revised, RuleEstimate):
        return (
            "noisy labels follow from how a row looks, whatever it is, as those of a rule or a model do: one T for all "
            "rows is wrong, and the flips below are means over the clean rows"
            f"{advice}"
        )
    if estimate.revised is not None:
        return (
            "labels are wrong on rows that look like another class more often, so that T differs between rows; the "
            f"flips below are means over them{advice}"
        )
    if bars is None or not bars.others:
        return ""
    weights = bars._replace(others=()), bars.others[0]
    T, other = (b.transition_matrix for b in weights)
    width = np.maximum(np.maximum(*map(_half_width, weights)), _LEAST_WIDTH)
    apart = (np.abs(T - other) / width).mean() > _APART
    open_ = estimate.gain > -_LOSS and transition_error(T, other) > _FAR
    if not apart or not (estimate.gain > _GAIN or open_):
        return ""
    return (
        "clean rows and noisy rows contradict each other under one T: T probably differs between rows, and the flips "
        f"below are means at best{advice}"
    )


def _half_width(bars: TransitionUncertainty) -> NDArray[np.float64]:
    low, high = bars.interval(0.9)
    return (high - low) / 2


def _under_trained(candidates: list[Candidate], run: Run, offset: NDArray) -> str:
    """Held-out clean rows were still predicted better and better, and not well at the end."""
    _, y = candidates[-1].labels(run)
    weights = weights_of_clean_rows(offset, y)
    half, end = (tempered_log_loss(candidates[k].posteriors[1], y, weights) for k in ((len(candidates) - 1) // 2, -1))
    fell, guessing = half - end, np.log(len(run.classes))
    if len(y) < 2 or fell.mean() <= _FALLING * fell.std() / len(y) ** 0.5 or end.mean() <= _HIGH_LOSS * guessing:
        return ""
    return (
        f"the network is trained too little: its loss of held-out clean rows, {end.mean():.2f} (guessing: "
        f"{guessing:.2f}), still fell at the end; give more epochs, or a larger lr"
    )


def _not_separated(bars: TransitionUncertainty | None, classes: NDArray) -> str:
    if bars is None:
        return ""
    wide = np.diag(_half_width(bars)) > _WIDE
    if not wide.any():
        return ""
    return f"the labels leave T open for class {classes[wide].tolist()}: its error bars are wide; verify more rows"
