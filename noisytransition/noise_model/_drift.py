"""Compare a new batch with the samples of a fit."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels._groups import read_groups
from ..likelihood._difference import relevant_difference
from ._samples import LabelledSamples

_ADVICE = "verify samples of the batch, and fit again with them"


def reasons_to_verify(
    model: Any, proba: NDArray, y_noisy: Any, groups: ArrayLike | None, of_fit: LabelledSamples
) -> dict[str, str]:
    """Reasons to verify samples of a batch; see `LabelNoiseModel.needs_verification`."""
    noisy = model._given_labels(y_noisy, len(proba))
    codes = read_groups(groups, len(proba))
    classes = model.classes_.tolist()
    reasons = {}
    batch, usual = (np.eye(len(classes))[p.argmax(axis=1)] for p in (proba, of_fit.proba))
    difference = relevant_difference(batch, usual, None, codes)
    if difference is not None:
        most = np.abs(difference).argmax()
        reasons["classes"] = (
            f"the classifier predicts class {classes[most]!r} for {batch[:, most].mean():.0%} of the samples, and for "
            f"{usual[:, most].mean():.0%} of those of fit; {_ADVICE}"
        )
    if (noisy >= 0).any():
        reasons |= _other_labels(len(classes), proba, noisy, of_fit, codes)
    return reasons


def _other_labels(
    c: int, proba: NDArray, noisy: NDArray[np.intp], of_fit: LabelledSamples, groups: NDArray | None
) -> dict[str, str]:
    """The classifier agrees more or less often with labels of the batch, given its predictions."""
    predicted, agrees = _agreement(proba, noisy)
    predicted_in_fit, agrees_in_fit = _agreement(of_fit.proba, of_fit.noisy)
    n = np.bincount(predicted_in_fit, minlength=c)
    expected = np.bincount(predicted_in_fit, agrees_in_fit, c) / np.maximum(n, 1)
    usual = n[predicted] > 0
    excess = (agrees - expected[predicted])[usual, None]
    excess_in_fit = (agrees_in_fit - expected[predicted_in_fit])[:, None]
    difference = relevant_difference(excess, excess_in_fit, None, None if groups is None else groups[noisy >= 0][usual])
    if difference is None:
        return {}
    now = agrees[usual].mean()
    before = f"{now - difference[0]:.0%} of labels as those of fit"
    return {"labels": f"the classifier agrees with {now:.0%} of the labels, and with {before}; {_ADVICE}"}


def _agreement(proba: NDArray, noisy: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Predicted class of each sample with a label, and whether it is the label."""
    has_label = noisy >= 0
    predicted = proba[has_label].argmax(axis=1)
    return predicted, predicted == noisy[has_label]
