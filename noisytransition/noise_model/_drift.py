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
    batch = LabelledSamples(proba, noisy, np.full(len(proba), -1))
    of_groups = read_groups(groups, len(proba))
    found = {"classes": _other_classes(model.classes_, batch, of_fit, of_groups)}
    if (noisy >= 0).any():
        found["labels"] = _other_labels(len(model.classes_), batch, of_fit, of_groups)
    return {name: text for name, text in found.items() if text}


def _other_classes(classes: NDArray, batch: LabelledSamples, of_fit: LabelledSamples, groups: NDArray | None) -> str:
    """The classifier predicts other classes in the batch."""
    one = np.eye(len(classes))
    of_batch, usual = (one[of.proba.argmax(axis=1)] for of in (batch, of_fit))
    difference = relevant_difference(of_batch, usual, None, groups)
    if difference is None:
        return ""
    most = np.abs(difference).argmax()
    return (
        f"the classifier predicts class {classes.tolist()[most]!r} for {of_batch[:, most].mean():.0%} of the samples, "
        f"and for {usual[:, most].mean():.0%} of those of fit; {_ADVICE}"
    )


def _other_labels(c: int, batch: LabelledSamples, of_fit: LabelledSamples, groups: NDArray | None) -> str:
    """The classifier agrees more or less often with labels of the batch, given its predictions."""
    predicted, agrees = _agreement(batch)
    predicted_of_fit, agrees_of_fit = _agreement(of_fit)
    n = np.bincount(predicted_of_fit, minlength=c)
    expected = np.bincount(predicted_of_fit, agrees_of_fit, c) / np.maximum(n, 1)
    usual = n[predicted] > 0
    of_groups = None if groups is None else groups[batch.noisy >= 0][usual]
    excess = agrees - expected[predicted]
    excess_of_fit = agrees_of_fit - expected[predicted_of_fit]
    difference = relevant_difference(excess[usual, None], excess_of_fit[:, None], None, of_groups)
    if difference is None:
        return ""
    now = agrees[usual].mean()
    return (
        f"the classifier agrees with {now:.0%} of the labels, and with {now - difference[0]:.0%} of labels as those of "
        f"fit; {_ADVICE}"
    )


def _agreement(of: LabelledSamples) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Predicted class of each sample with a label, and whether it is the label."""
    known = of.noisy >= 0
    predicted = of.proba[known].argmax(axis=1)
    return predicted, predicted == of.noisy[known]
