"""Data of a comparison."""

from typing import Any, NamedTuple


class ComparisonData(NamedTuple):
    """Training and test data of a comparison.

    Attributes
    ----------
    X, y
        Noisy rows and labels to train with.
    X_meta, y_meta
        Clean rows and labels to train with.
    X_test, y_test
        Clean rows and labels for the accuracy; no method is given them.
    transition_matrix : array-like of shape (n_classes, n_classes), optional
        The true T in sorted order of the labels, for errors of T.
    y_true : array-like, optional
        True labels of the noisy rows, for the sampling limit.
    y_meta_noisy : array-like, optional
        Noisy labels of the clean rows, where they are known: of verified rows that are marked in `X_all` by `mask`,
        ``ComparisonData(X_all[~mask], y_all[~mask], X_all[mask], y_verified, ..., y_meta_noisy=y_all[mask])``.
    classes : sequence of str, optional
        Names of the classes, in sorted order of the labels.
    rows, rows_meta : array-like of int, optional
        Which rows of their source `X` and `X_meta` are: for features that were computed for the whole source.

    Examples
    --------
    >>> import numpy as np
    >>> from noisytransition import ComparisonData
    >>> X, y = np.arange(20.0)[:, None], np.arange(20) // 10
    >>> y_noisy = np.where(X[:, 0] == 3, 1, y)
    >>> clean, test, noisy = (np.isin(np.arange(20) % 5, part) for part in ([0], [1], [2, 3, 4]))
    >>> data = ComparisonData(X[noisy], y_noisy[noisy], X[clean], y[clean], X[test], y[test], y_true=y[noisy])
    >>> data.y.tolist(), data.y_meta.tolist(), data.y_test.tolist()
    ([0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1])
    """

    X: Any
    y: Any
    X_meta: Any
    y_meta: Any
    X_test: Any
    y_test: Any
    transition_matrix: Any = None
    y_true: Any = None
    y_meta_noisy: Any = None
    classes: Any = None
    rows: Any = None
    rows_meta: Any = None
