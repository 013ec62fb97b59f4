"""How far an estimated transition matrix is from the true one, and how near an estimate can get."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import check_transition_matrix


def transition_error(T_true: ArrayLike, T_pred: ArrayLike, *, labels: ArrayLike | None = None) -> float:
    """Relative entry-wise error of a transition matrix, ``sum |T_true - T_pred| / sum |T_true|``.

    0 is exact, 2 (all mass in the wrong places) is the worst. Compare with the error of the identity, which is
    what "there is no noise" scores.

    Parameters
    ----------
    T_true, T_pred : array-like of shape (c, c)
        The true and the estimated transition matrix.
    labels : array-like of shape (c,), optional
        The labels in the order of the rows and columns of `T_true`, where that is not the sorted order of
        `T_pred` (that of a classifier's ``classes_``).

    Returns
    -------
    float
        Between 0 and 2.

    Raises
    ------
    ValueError
        If a matrix is not valid, their sizes differ, or `labels` does not name each class once.

    References
    ----------
    Shu, Zhao, Xu, Meng, "Meta Transition Adaptation for Robust Deep Learning with Noisy Labels", 2020.

    Examples
    --------
    >>> transition_error([[0.75, 0.25], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
    0.25
    >>> transition_error([[0.75, 0.25], [0, 1]], [[1, 0], [0.25, 0.75]], labels=["dog", "cat"])
    0.0
    """
    T_true = check_transition_matrix(T_true, name="T_true")
    T_pred = check_transition_matrix(T_pred, len(T_true), name="T_pred")
    if labels is not None:
        order = _sorting_order(labels, len(T_true))
        T_true = T_true[np.ix_(order, order)]
    return float(np.abs(T_true - T_pred).sum() / np.abs(T_true).sum())


def sampling_limit(T_true: ArrayLike, n_per_class: ArrayLike) -> float:
    """Expected `transition_error` of counting, were the true label of every row known.

    The row-normalised counts of a sample are themselves off by chance, so errors around this value cannot be
    told from zero:
    ``sum_ij E|Binomial(n_i, T[i, j]) / n_i - T[i, j]| / sum |T|``, exactly, by De Moivre's formula.

    Parameters
    ----------
    T_true : array-like of shape (c, c)
        The true transition matrix.
    n_per_class : int or array-like of int, shape (c,)
        The number of rows of each true class, at least 1.

    Returns
    -------
    float
        The expected error.

    Raises
    ------
    ValueError
        If `T_true` is not valid or `n_per_class` is not made of positive integers.

    References
    ----------
    Diaconis, Zabell, "Closed Form Summation for Classical Distributions: Variations on a Theme of De Moivre",
    Statistical Science 6, 1991.

    Examples
    --------
    >>> round(sampling_limit([[0.8, 0.2], [0, 1]], 100), 4)
    0.0318
    """
    T_true = check_transition_matrix(T_true, name="T_true")
    n = np.broadcast_to(_check_n_per_class(n_per_class, len(T_true))[:, None], T_true.shape)
    deviation = np.vectorize(_binomial_mean_deviation, otypes=[float])(n, T_true)
    return float((deviation / n).sum() / np.abs(T_true).sum())


def _binomial_mean_deviation(n: int, p: float) -> float:
    """E|X - np| = 2 k C(n, k) p^k (1 - p)^(n - k + 1) for X ~ Binomial(n, p), with k = floor(np) + 1."""
    n, p = int(n), float(p)
    if not 0 < p < 1:
        return 0.0
    k = min(math.floor(n * p) + 1, n)  # n * p may round up to n
    log_choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return 2 * k * math.exp(log_choose + k * math.log(p) + (n - k + 1) * math.log1p(-p))


def _check_n_per_class(n_per_class: ArrayLike, n_classes: int) -> NDArray[np.integer]:
    n = np.asarray(n_per_class)
    if not np.issubdtype(n.dtype, np.integer) or n.shape not in {(), (n_classes,)} or n.min() < 1:
        raise ValueError(
            f"n_per_class={n_per_class!r}; give a positive integer, or one for each of the {n_classes} classes "
            "(a class without rows has no estimate)."
        )
    return np.broadcast_to(n, n_classes)


def _sorting_order(labels: ArrayLike, n_classes: int) -> NDArray[np.intp]:
    labels = np.asarray(labels)
    if labels.shape != (n_classes,) or len(np.unique(labels)) != n_classes:
        raise ValueError(
            f"labels={labels.tolist()!r}; give each of the {n_classes} classes of T_true once, in its order."
        )
    return np.argsort(labels)
