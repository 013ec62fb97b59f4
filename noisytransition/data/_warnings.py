"""Warnings about suspicious data, before any training."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..labels._draw import is_balanced
from ..nets import Rows

# All values are choices, not measured.
# distance between the means of clean and noisy samples, in standard deviations in the median feature, above which clean
# samples seem unscaled; number of compared samples
_FAR = 5.0
_COMPARED_ROWS = 1000
# ratio of the most to the least frequent noisy label above which a fixed number of clean samples per class is reported;
# asymmetric noise of 0.6 gives this ratio to balanced classes
_UNEQUAL = 4.0
# number of clean samples that may also be in X by chance
_BY_CHANCE = 2
# share of samples that resemble others, beyond chance: a fifth in groups of ten
_ALIKE = 0.1
# neighbours among which near copies are sought, and samples that are searched. Of k gaps of independent samples, one
# exceeds the others together with the probability k 2^(1 - k), which is below 1 % for the least number
_NEIGHBOURS = 20
_LEAST_NEIGHBOURS = 12
_MOST_COMPARED = 10_000
_COMPARED_COLUMNS = 50


def warn_if_unscaled(rows: Rows, clean: Rows) -> None:
    """Warn if the clean samples seem unscaled: a Pipeline does not transform `meta`."""
    some, of_clean = (of.source[:: len(of) // _COMPARED_ROWS + 1].astype(np.float64) for of in (rows, clean))
    distance = np.abs(of_clean.mean(axis=0) - some.mean(axis=0))
    if np.median(distance / np.maximum(some.std(axis=0), 1e-12)) > _FAR:
        fact = "The clean samples are not scaled in the same way as X. A Pipeline does not transform meta"
        warnings.warn(f"{fact}: use y_verified, or X_clean with transform_input=['X_clean'].", stacklevel=5)


def warn_of_copies(rows: Rows, clean: Rows) -> None:
    """Warn if clean samples are also in X, unless X has so many duplicates that some are by chance."""
    dtype = rows.source.dtype  # hashes of rows need less memory than their bytes
    different = {hash(row.astype(dtype).tobytes()) for row in rows.source}
    n_copies = sum(hash(row.astype(dtype).tobytes()) in different for row in clean.source)
    by_chance = len(clean) * (1 - len(different) / len(rows))
    if n_copies > 2 * by_chance + _BY_CHANCE:
        text = f"{n_copies} of the {len(clean)} clean samples are also in X. Pass their labels as y_verified instead."
        warnings.warn(text, stacklevel=5)


def warn_of_groups(X: Any, y: NDArray[np.intp]) -> None:
    """Warn of samples that are not independent: copies, near copies, or samples that resemble the one before or after.

    X is compared if it is a numeric array of several columns, rows of one, or a data frame of numbers; y has the
    positions of the classes, -1 if missing.
    """
    n = min(len(y), _MOST_COMPARED)
    x = _numbers(X, np.arange(min(n, _COMPARED_ROWS)))
    if x is None:
        return
    n_of_class = np.bincount(y[:n][y[:n] >= 0])
    smallest = int(n_of_class[n_of_class > 0].min(initial=n))
    n_values = np.array([len(np.unique(column)) for column in x.T])
    different = len(np.unique(x, axis=0))
    # copies are no chance if a column is continuous: it tells all different samples apart
    if different < (1 - _ALIKE) * len(x) and n_values.max() == different:
        text = f"{1 - different / len(x):.0%} of the samples are copies of others"
    elif (near := _near_copies(X, n, np.flatnonzero(n_values > len(x) / 2), smallest)) > _ALIKE:
        text = f"{near:.0%} of the samples are nearly copies of others"
    else:
        _, nearest = _nearest(x, 1)
        beside = float((np.abs(nearest[:, 0] - np.arange(len(x))) == 1).mean())
        if beside <= _ALIKE + 2 / max(smallest - 1, 1):  # by chance, if sorted by class
            return
        text = f"For {beside:.0%} of the samples, the most similar one is that before or after it"
    warnings.warn(f"{text}. If these are not independent, such as images of a patient, pass groups=.", stacklevel=4)


def _numbers(X: Any, rows: NDArray[np.intp], columns: Any = slice(None)) -> NDArray | None:
    """Some columns of some samples; None unless these are at least three samples of several numbers."""
    if isinstance(X, Rows):
        some = X.take(rows).X
    elif hasattr(X, "iloc"):
        some = X.iloc[rows].to_numpy()
    else:
        some = X[rows] if isinstance(X, np.ndarray) else None
    if not isinstance(some, np.ndarray) or some.dtype.kind not in "biuf" or len(some) < 3 or some[0].size < 2:
        return None
    return some.reshape(len(rows), -1)[:, columns].astype(np.float32)


def _nearest(x: NDArray, k: int, some: Any = slice(None)) -> tuple[NDArray, NDArray]:
    """Distances and positions of the k nearest neighbours of some samples, with columns of unit variance."""
    from sklearn.neighbors import NearestNeighbors

    x = np.nan_to_num((x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12))
    distance, position = NearestNeighbors(n_neighbors=k + 1).fit(x).kneighbors(x[some])
    return distance[:, 1:], position[:, 1:]  # without the sample itself


def _near_copies(X: Any, n: int, continuous: NDArray[np.intp], smallest: int) -> float:
    """Share of samples with one gap among the distances of their neighbours that exceeds all others together.

    Of independent samples, k times the logarithm of the (k + 1)-th and k-th distance's ratio is exponential for all k
    (where the density is constant), so one of many hardly exceeds the others. The n first samples are compared in some
    of the `continuous` columns.
    """
    k = min(_NEIGHBOURS, smallest // 2, n // 4)
    if len(continuous) < 2 or k < _LEAST_NEIGHBOURS:
        return 0.0
    columns = continuous[:: len(continuous) // _COMPARED_COLUMNS + 1]
    parts = np.array_split(np.arange(n), n // _COMPARED_ROWS + 1)
    x = np.concatenate([_numbers(X, rows, columns) for rows in parts])
    some = np.random.default_rng(0).choice(n, min(n, _COMPARED_ROWS // 2), replace=False)
    distance, _ = _nearest(x, k + 1, some)
    gaps = np.arange(1, k + 1) * np.diff(np.log(np.maximum(distance, 1e-12)), axis=1)
    return float((gaps.max(axis=1) > gaps.sum(axis=1) / 2).mean())


def warn_of_equal_shares(noisy: NDArray[np.int64], clean: NDArray[np.int64], classes: NDArray) -> None:
    """Warn if the clean samples seem stratified by class while the noisy labels are imbalanced."""
    of_noisy = np.bincount(noisy, minlength=len(classes))
    of_clean = np.bincount(clean, minlength=len(classes))
    least = of_noisy.argmin()
    most = of_noisy.argmax()
    if not is_balanced(of_clean) or of_noisy[most] <= _UNEQUAL * of_noisy[least]:
        return
    names = classes.tolist()
    labels = f"{of_noisy[most]:,} noisy labels {names[most]!r} and {of_noisy[least]:,} {names[least]!r}"
    fact = f"There are {of_clean[0]} clean samples of each class, but {labels}: stratified ones bias T"
    advice = "Draw them at random or use EMTransitionClassifier(verified_sampling='stratified')"
    warnings.warn(f"{fact}. {advice}.", stacklevel=4)
