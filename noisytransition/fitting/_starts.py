"""Where T starts, by name."""

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..nets import NoisyLabelNet
from ..transition import (
    anchor_transition_matrix,
    confusion_transition_matrix,
    count_transition_matrix,
    gold_transition_matrix,
    symmetric_noise,
)
from ..transition._shrinkage import shrunk_to_symmetric
from ._run import Run

#: starts that a warm-up gives, a net trained by cross-entropy
OF_WARM_UP = ("gold", "gold-shrunk", "anchor", "confusion")
STARTS = (*OF_WARM_UP, "count", "diagonal")

# noise rate of "diagonal": a choice, about that of labels from crowds and rules
_DIAGONAL_RATE = 0.2


def refusal(name: str, run: Run) -> str | None:
    """Say what data a start lacks, or None."""
    if name.startswith("gold") and not len(run.clean):
        return "needs clean data: fit(..., meta=(X_meta, y_meta))"
    if name == "count" and "noisy_label" not in run.clean.columns:
        return "needs the noisy labels of the clean rows: fit(trusted=mask, y_meta=...), or y_meta_noisy"
    return None


def make_start(
    name: str, run: Run, warm_up: Callable[[], NoisyLabelNet], percentile: float | Literal["auto"] | None = None
) -> NDArray[np.float64]:
    """Return T, of shape (n_classes, n_classes).

    Parameters
    ----------
    name : str
        One of `STARTS`.
    run : Run
    warm_up : callable
        Trains a net by cross-entropy on the noisy rows, and returns it.
    percentile : float, "auto" or None
        Of "anchor", as in `anchor_transition_matrix`.
    """
    if name == "diagonal":
        return symmetric_noise(len(run.classes), _DIAGONAL_RATE)
    if name == "count":  # with one pseudo-count for each row of T: unseen flips stay possible
        c, clean = len(run.classes), run.clean
        return count_transition_matrix(clean.label, clean.columns["noisy_label"], c, smoothing=1 / c)
    net = warm_up()
    if name == "anchor":
        return anchor_transition_matrix(net.predict_proba(run.noisy), percentile=percentile)
    if name == "confusion":
        return confusion_transition_matrix(net.predict_proba(run.noisy), run.noisy.label)
    return _gold(net, run, shrunk=name == "gold-shrunk")


def _gold(net: NoisyLabelNet, run: Run, *, shrunk: bool) -> NDArray[np.float64]:
    """Mean posterior of the clean rows of each class; a class without clean rows gets its anchor point.

    Where it is shrunk, towards symmetric noise, as far as the clean rows say too little of each class.
    """
    missing = None
    if absent := classes_without_clean_rows(run):
        warnings.warn(
            f"no clean row of class {absent}: its row of T starts from an anchor point.", UserWarning, stacklevel=6
        )
        missing = anchor_transition_matrix(net.predict_proba(run.noisy))
    proba = net.predict_proba(run.clean)
    T = gold_transition_matrix(proba, run.clean.label, missing=missing)
    return shrunk_to_symmetric(T, proba, run.clean.label) if shrunk else T


def classes_without_clean_rows(run: Run) -> list[Any]:
    """Labels of which there is no clean row."""
    absent = np.setdiff1d(np.arange(len(run.classes)), run.clean.label)
    labels: list[Any] = run.classes[absent].tolist()
    return labels
