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
