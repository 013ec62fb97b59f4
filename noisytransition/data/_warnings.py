"""Warnings of data that fit badly together or to the network, before any training."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from ..nets import DatasetRows, Rows
from ..transition._class_offset import equally_many

# All of these are choices that were not measured.
# clean rows count as unscaled if their mean differs from that of the noisy rows by more than this many standard
# deviations in the median column; of so many rows
_FAR, _COMPARED_ROWS = 5.0, 1000
# from so many clean rows on it is warned of noisy labels that are all true
_MANY = 20
# ratio of the most to the least frequent noisy label above which equally many clean rows of each class bring a warning;
# asymmetric noise of 0.6 gives this ratio to classes of equal frequency
_UNEQUAL = 4.0
# so many clean rows are rows of X by chance
_BY_CHANCE = 2
# root mean square of values above which a network may learn one class alone
_LARGEST_SIZE = 100.0


def warn_of_order(X: Any, y: Any) -> None:
    """Warn of labels in pandas that name the rows of X in another order: rows are taken by position."""
    if not (hasattr(X, "iloc") and hasattr(y, "iloc")) or X.index.equals(y.index):
        return
    if len(X) == len(y) and set(X.index) == set(y.index):
        warnings.warn(
            "the index of y names the rows in another order than that of X. Rows are taken by their position: give "
            "y.reindex(X.index), or y.to_numpy() if y is in order.",
            UserWarning,
            stacklevel=4,
        )


def warn_if_unscaled(rows: Rows, clean: Rows) -> None:
    """Warn if the clean rows seem unscaled: a Pipeline passes `meta=` to its last step without transforming it."""
    if isinstance(rows, DatasetRows) or isinstance(clean, DatasetRows):
        return
    moments = []
    for X in (rows.source, clean.source):
        some = X[:: X.shape[0] // _COMPARED_ROWS + 1].astype(np.float64)
        moments.append(mean_variance_axis(some, axis=0) if issparse(some) else (some.mean(axis=0), some.var(axis=0)))
    (mean, variance), (of_clean, _) = moments
    if np.median(np.abs(of_clean - mean) / np.maximum(np.sqrt(variance), 1e-12)) > _FAR:
        warnings.warn(
            "the clean rows lie far from X in most features: were they scaled alike? A Pipeline transforms neither "
            "meta= nor X_meta= by itself; use Pipeline(..., transform_input=['X_meta']) with metadata routing, or "
            "verified rows of X, as y_verified.",
            UserWarning,
            stacklevel=4,
        )


def warn_of_copies(rows: Rows, clean: Rows) -> None:
    """Warn of clean rows that are rows of X too, of arrays; where rows of X repeat each other, some are by chance."""
    if any(type(of_rows) is not Rows for of_rows in (rows, clean)):
        return
    dtype = rows.source.dtype  # of the hashes of rows: their bytes would be a second copy of X
    in_X, of_clean = ([hash(row.astype(dtype).tobytes()) for row in of_rows.source] for of_rows in (rows, clean))
    different = set(in_X)
    found = sum(row in different for row in of_clean)
    by_chance = len(of_clean) * (1 - len(different) / len(in_X))
    if found > 2 * by_chance + _BY_CHANCE:
        warnings.warn(
            f"{found} of the {len(of_clean)} clean rows are also in X, and count twice: give these as "
            "y_verified=, one entry for each row of X.",
            UserWarning,
            stacklevel=4,
        )


def warn_of_true_labels(true: NDArray, noisy: NDArray, *, in_y: bool) -> None:
    """Warn that one kind of labels may have been given twice: T would then have too little noise."""
    if len(true) < _MANY or not np.array_equal(true, noisy):
        return
    advice = "leave those of y out if it was corrected there" if in_y else "check that y_meta_noisy are not true ones"
    warnings.warn(
        f"the true and noisy labels of all {len(true)} clean rows agree: {advice}.", UserWarning, stacklevel=5
    )


def warn_of_equal_shares(noisy: NDArray[np.int64], clean: NDArray[np.int64], classes: NDArray) -> None:
    """Warn of clean rows that seem to be drawn class by class, while the classes have unequal shares."""
    of_noisy, of_clean = (np.bincount(labels, minlength=len(classes)) for labels in (noisy, clean))
    least, most = of_noisy.argmin(), of_noisy.argmax()
    if not equally_many(of_clean) or of_noisy[most] <= _UNEQUAL * of_noisy[least]:
        return
    names = classes.tolist()
    warnings.warn(
        f"there are {of_clean[0]} clean rows of each class, but {of_noisy[most]:,} noisy labels {names[most]!r} and "
        f"{of_noisy[least]:,} {names[least]!r}. If the classes are unequal, clean rows that are drawn class by class "
        "pull T and the probabilities towards equal shares: draw them at random, or take "
        "EMTransitionClassifier(meta_sampling='stratified').",
        UserWarning,
        stacklevel=3,
    )


def warn_of_scale(noisy: Rows) -> None:
    """Warn of inputs that a network would hardly learn from, unless it is made for them.

    Of a Dataset and of several parts it is not known, and integers may be images or tokens.
    """
    if isinstance(noisy, DatasetRows) or isinstance(noisy.source, dict):
        return
    rows = noisy.take(np.arange(min(len(noisy), _COMPARED_ROWS))).X
    if rows.dtype.kind != "f":
        return
    values = np.asarray(rows.data if issparse(rows) else rows, dtype=np.float64)
    size = float(np.linalg.norm(values) / np.sqrt(np.prod(rows.shape)))
    if size > _LARGEST_SIZE:
        warnings.warn(
            f"values of X are large (root mean square {size:.3g}), and the network may learn one class alone. Scale X, "
            "for example by make_pipeline(StandardScaler(), classifier); images to 0..1.",
            UserWarning,
            stacklevel=3,
        )
