"""Test of whether noisy labels say anything about the classes, without a training."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# rows that are compared at most, of each kind: enough for the test, and quick; a choice, not measured
_MOST_ROWS = 5000
# features that are looked at most; a choice, not measured
_MOST_FEATURES = 1000
# columns, or rows, that are converted to float64 at once: 2 to 4 MB
_BLOCK = 100
# probability that labels of pure chance are taken for informative ones; a choice, not measured
_LEVEL = 0.05
# The test speaks if it would find labels with this share of the true labels' association with high probability. The
# association falls with the square of (1 - rate c / (c - 1)): 0.11 for symmetric noise of 0.6 with 10 classes.
_SHARE = 0.1
_POWER = 0.99
# the clean rows must show that their classes can be told apart by distance; a choice, not measured
_CLEAN_LEVEL = 1e-3


def says_nothing(
    X: Any,
    y_noisy: NDArray,
    X_meta: Any,
    y_meta: NDArray,
    *,
    rows: NDArray[np.integer] | None = None,
    rows_meta: NDArray[np.integer] | None = None,
) -> float | None:
    """P-value of independence of noisy labels and classes if it is large and the rows are enough to tell, else None.

    `X` and `X_meta` are arrays or CSR matrices, of which `rows` and `rows_meta` are meant; default: all. The class of
    each row is that of the nearest mean of clean rows, which no noisy label has an influence on: with labels of pure
    chance, the chi-square test of predicted class and noisy label is exact up to its approximation.
    """
    from scipy.stats import chi2, ncx2  # slow to import

    (sample, y_noisy), (clean_sample, y_meta) = _sample(X, y_noisy, rows), _sample(X_meta, y_meta, rows_meta)
    own, of_noisy = _predictions(sample, clean_sample, y_meta)
    clean, clean_freedom = _chi_square(own, y_meta)
    noisy, freedom = _chi_square(of_noisy, y_noisy)
    if not freedom or not clean_freedom or chi2.sf(clean, clean_freedom) > _CLEAN_LEVEL:
        return None
    association = (clean - clean_freedom) / len(y_meta)
    power = ncx2.sf(chi2.isf(_LEVEL, freedom), freedom, _SHARE * association * len(y_noisy))
    pvalue = float(chi2.sf(noisy, freedom))
    return pvalue if pvalue > _LEVEL and power > _POWER else None


def _sample(X: Any, y: NDArray, rows: NDArray[np.integer] | None) -> tuple[NDArray, NDArray]:
    """Every k-th row, with every m-th of its features, and its label; nothing else is read."""
    step, shape = -(-len(y) // _MOST_ROWS), X.shape[1:]
    n_features = int(np.prod(shape))
    chosen = (np.arange(len(y)) if rows is None else rows)[::step]
    features = np.arange(0, n_features, max(-(-n_features // _MOST_FEATURES), 1))
    if hasattr(X, "toarray"):
        return X[chosen][:, features].toarray(), y[::step]
    return X[(chosen[:, None], *np.unravel_index(features, shape))], y[::step]


def _predictions(X: NDArray, X_meta: NDArray, y_meta: NDArray) -> tuple[NDArray, NDArray]:
    """Classes of the nearest means: of the clean rows, each left out of its own mean, and of the noisy rows."""
    classes, codes, counts = np.unique(y_meta, return_inverse=True, return_counts=True)
    of_blocks = [_standardised(X[:, part], X_meta[:, part], codes) for part in _parts(X.shape[1])]
    scale, spread, means = (np.concatenate(values, axis=-1) for values in zip(*of_blocks, strict=True))
    distances, of_noisy = (
        np.concatenate([_squared_distances(rows[part] / scale / spread, means) for part in _parts(len(rows))])
        for rows in (X_meta, X)
    )
    own = np.arange(len(codes)), codes
    # the mean of the others of a class is farther away by this factor, and infinitely if there are no others
    distances[own] *= np.square(counts / np.where(counts > 1, counts - 1.0, 0.5))[codes]
    distances[own] += np.where(counts[codes] > 1, 0.0, np.inf)
    return classes[distances.argmin(axis=1)], classes[of_noisy.argmin(axis=1)]


def _parts(n: int) -> list[slice]:
    return [slice(i, i + _BLOCK) for i in range(0, n, _BLOCK)]


def _standardised(X: NDArray, X_meta: NDArray, codes: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Of some columns: the largest sizes, the standard deviations after division by them, and the means of classes."""
    X, X_meta = X.astype(np.float64), X_meta.astype(np.float64)
    scale = np.abs(X).max(axis=0)
    scale = np.where(scale > 0, scale, np.inf)  # no square overflows
    spread = (X / scale).std(axis=0)
    spread = np.where(spread > 0, spread, np.inf)
    X_meta = X_meta / scale / spread
    return scale, spread, np.stack([X_meta[codes == k].mean(axis=0) for k in range(codes.max() + 1)])


def _squared_distances(X: NDArray, means: NDArray) -> NDArray[np.float64]:
    return np.maximum((X**2).sum(axis=1)[:, None] - 2 * X @ means.T + (means**2).sum(axis=1), 0.0)


def _chi_square(first: NDArray, second: NDArray) -> tuple[float, int]:
    """Statistic and degrees of freedom of the test that two labels of the same rows are independent."""
    (a, i), (b, j) = (np.unique(labels, return_inverse=True) for labels in (first, second))
    counts = np.zeros((len(a), len(b)))
    np.add.at(counts, (i, j), 1)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    return float(((counts - expected) ** 2 / expected).sum()), (len(a) - 1) * (len(b) - 1)
