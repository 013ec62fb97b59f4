"""Error of an estimated transition matrix, and expected error of counting with known true labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels._arrays import as_array, in_class_order
from ._checks import check_transition_matrix

# smaller entries of T count as 0: binom.pmf raises OverflowError near the smallest float64, 2e-308
_MIN_PROBA = 1e-200


def transition_error(T_true: ArrayLike, T_pred: ArrayLike) -> float:
    """Relative entry-wise error of a transition matrix, ``sum |T_true - T_pred| / sum |T_true|``.

    0 is exact; 2 is the worst. Compare with the error of the identity, the estimate "no noise".

    Parameters
    ----------
    T_true, T_pred : array-like of shape (c, c)
        True and estimated transition matrix. Two data frames with the same classes are compared by name.

    Returns
    -------
    float
        From 0 to 2, up to 1e-6 since the rows of T sum to 1 up to 1e-6.

    References
    ----------
    Shu, Zhao, Xu, Meng, "Meta Transition Adaptation for Robust Deep Learning with Noisy Labels", 2020.

    Examples
    --------
    >>> from noisytransition.transition import transition_error
    >>> transition_error([[0.75, 0.25], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
    0.25
    """
    classes = getattr(T_true, "columns", None) if hasattr(T_pred, "columns") else None
    T_true = check_transition_matrix(in_class_order(T_true, classes), name="T_true")
    T_pred = check_transition_matrix(in_class_order(T_pred, classes), len(T_true), name="T_pred")
    return float(np.abs(T_true - T_pred).sum() / np.abs(T_true).sum())


def sampling_limit(T_true: ArrayLike, n_per_class: ArrayLike) -> float:
    """Expected `transition_error` of counting if the true label of every sample were known.

    The sampling error of row-normalised counts is ``sum_ij E|Binomial(n_i, T[i, j]) / n_i - T[i, j]| / sum |T|``,
    computed exactly by De Moivre's formula. It is not a lower bound: shrinkage can reduce the error below it.

    Parameters
    ----------
    T_true : array-like of shape (c, c)
        True transition matrix.
    n_per_class : int or array-like of int, shape (c,)
        Number of samples of each true class, at least 1. If `T_true` is a data frame, a Series is matched by name.

    Returns
    -------
    float
        Expected error.

    References
    ----------
    Diaconis, Zabell, "Closed Form Summation for Classical Distributions: Variations on a Theme of De Moivre",
    Statistical Science 6, 1991.

    Examples
    --------
    >>> from noisytransition.transition import sampling_limit
    >>> round(sampling_limit([[0.8, 0.2], [0, 1]], 100), 4)
    0.0318
    """
    classes = getattr(T_true, "columns", None)
    T_true = check_transition_matrix(in_class_order(T_true, classes), name="T_true")
    n = as_array(in_class_order(n_per_class, classes), "n_per_class")
    if not np.issubdtype(n.dtype, np.integer) or n.shape not in {(), (len(T_true),)} or n.min() < 1:
        raise ValueError(f"n_per_class={n_per_class!r}; pass a positive integer, or one for each class.")
    n = np.broadcast_to(n, len(T_true))[:, None]
    return float((_binomial_mean_deviation(n, T_true) / n).sum() / np.abs(T_true).sum())


def _binomial_mean_deviation(n: NDArray[np.integer], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """E|X - np| = 2 k (1 - p) P(X = k) for X ~ Binomial(n, p), with k = floor(np) + 1."""
    from scipy.stats import binom  # slow to import

    p = np.where(p < _MIN_PROBA, 0.0, np.minimum(p, 1.0))  # entries may exceed 1 by rounding
    k = np.minimum(np.floor(n * p) + 1, n)  # n * p may round up to n
    return 2 * k * (1 - p) * binom.pmf(k, n, p)
