"""Weights of rows: how often each is drawn in a training."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..nets import Rows
from ._labels import as_column

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


def weighted(classifier: Any, noisy: Rows, clean: Rows | None) -> tuple[Rows, Rows | None]:
    """Rows with a column ``sample_weight``, of mean 1 among the noisy ones, if there are weights.

    Clean rows beside the noisy ones weigh as much as these on average.

    Raises
    ------
    ValueError
        For a loader of the user's, which would not know of weights.
    """
    if "sample_weight" not in noisy.columns:
        return noisy, clean
    if own := sorted(name for name in DRAWS if name in classifier._net_params):
        raise ValueError(f"weights decide how rows are drawn, and so do {own}; give one of the two.")
    weights = noisy.columns["sample_weight"]
    weights = weights / weights.max()  # equal ones are 1 without rounding
    noisy = noisy.with_columns(sample_weight=weights / weights.mean())
    if clean is not None:
        clean = clean.with_columns(sample_weight=1.0)
    return noisy, clean
