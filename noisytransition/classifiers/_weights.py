"""Weights of rows: how often each is drawn in a training."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_sample_weight

from ..nets import Rows
from ._labels import as_column

ClassWeight = Mapping[Any, float] | str | None
# parameters by which the user draws the rows
DRAWS = ("iterator_train", "iterator_train__sampler", "iterator_train__shuffle", "iterator_train__batch_sampler")


def row_weights(sample_weight: ArrayLike, n: int) -> NDArray[np.float64]:
    """Check that there is one weight for each row, finite and not negative."""
    try:
        weights = np.asarray(as_column(sample_weight), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight has entries that are no numbers ({error}); give one for each row.") from error
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has the shape {weights.shape} for {n} rows; give one number for each row.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight has negative entries, infinity or NaN; give finite numbers of at least 0.")
    return weights


def weighted(classifier: Any, noisy: Rows, clean: Rows | None, classes: NDArray) -> tuple[Rows, Rows | None]:
    """Rows with a column ``sample_weight``, of mean 1 among the noisy ones, if there are weights of rows or classes.

    Clean rows beside the noisy ones weigh as much as these on average; alone, they are drawn by the weights of their
    classes.

    Raises
    ------
    ValueError
        For class weights that are not valid, or a loader of the user's, which would not know of weights.
    """
    class_weight = getattr(classifier, "class_weight", None)
    if class_weight is None and "sample_weight" not in noisy.columns:
        return noisy, clean
    if own := sorted(name for name in DRAWS if name in classifier._net_params):
        raise ValueError(f"weights decide how rows are drawn, and so do {own}; give one of the two.")
    weights = noisy.columns.get("sample_weight", 1.0) * _of_classes(class_weight, noisy.label, classes)
    weights = weights / weights.max()  # equal ones are 1 without rounding
    noisy = noisy.with_columns(sample_weight=weights / weights.mean())
    if clean is not None:
        clean = clean.with_columns(sample_weight=_of_classes(class_weight, clean.label, classes))
    return noisy, clean


def _of_classes(class_weight: ClassWeight, codes: NDArray, classes: NDArray) -> NDArray[np.float64]:
    """Weight of each row by its class."""
    if class_weight is None:
        return np.ones(len(codes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        balanced: NDArray[np.float64] = compute_sample_weight("balanced", codes)
        return balanced
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight={class_weight!r}; give 'balanced', a dict from label to weight, or None.")
    if unknown := [label for label in class_weight if label not in classes.tolist()]:
        raise ValueError(f"class_weight has {unknown}, and the labels are {classes.tolist()}; give weights of these.")
    by_class = np.array([class_weight.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
    if not (np.isfinite(by_class).all() and (by_class > 0).all()):
        raise ValueError(f"class_weight={dict(class_weight)}; give weights above 0, and leave out rows of none.")
    return by_class[codes]
