"""Posterior probabilities of the true label, given T."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels._arrays import class_indices, in_class_order
from ._checks import check_count, check_probabilities, check_transition_matrix
from ._estimation import normalise_rows

# smallest denominator: far above the smallest float64, far below any relevant probability
_MIN_DENOMINATOR = 1e-300
# smallest initial value, as a share of 1/c: the multiplicative update never leaves 0. A choice, not measured.
_MIN_START = 1e-3


def label_posterior(
    proba: ArrayLike, y_noisy: ArrayLike, T: ArrayLike, *, classes: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Compute the probability of each true label, given features and noisy label (Bayes' rule).

    ``P(true = i | x, noisy = j) = proba[i] T[i, j] / sum_k proba[k] T[k, j]``.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``.
    y_noisy : array-like of shape (n,)
        Noisy labels: class indices 0..c-1, text, or any labels in `classes`.
    T : array-like of shape (c, c)
        Transition matrix.
    classes : array-like of shape (c,), optional
        Labels in the order of the columns of `proba` and `T`. Default for text: the c sorted labels of `y_noisy`.

    Returns
    -------
    ndarray of shape (n, c), float64
        Rows sum to 1. If the noisy label has probability 0 under `proba` and `T`, the row of `proba` is returned.

    Examples
    --------
    >>> from noisytransition.transition import label_posterior
    >>> label_posterior([[0.5, 0.5], [0.5, 0.5]], [0, 1], [[1, 0], [0.5, 0.5]]).round(3)
    array([[0.667, 0.333],
           [0.   , 1.   ]])
    """
    n_rows, n_classes = check_probabilities(proba).shape
    (codes,), order = class_indices(n_classes, n_rows, classes, y_noisy=y_noisy)
    proba = check_probabilities(in_class_order(proba, order, rows=False))
    T = check_transition_matrix(in_class_order(T, order), n_classes, "T")
    proba = normalise_rows(proba)
    return normalise_rows(proba * T.T[codes], proba)


def denoise_proba(noisy_proba: ArrayLike, T: ArrayLike, *, n_iter: int = 5) -> NDArray[np.float64]:
    r"""Solve ``noisy_proba = proba @ T`` for the probabilities of the *true* label.

    A classifier trained on noisy labels without correction predicts noisy labels. Starting from `noisy_proba`, each
    iteration reduces the Kullback-Leibler divergence from ``proba @ T`` (Richardson-Lucy deconvolution)::

        proba[i] <- proba[i] * sum_j T[i, j] noisy_proba[j] / (proba @ T)[j]

    Many iterations amplify the errors of the classifier, as the inverse of T does. Use few (early stopping) unless
    `noisy_proba` is almost exact.

    Parameters
    ----------
    noisy_proba : array-like of shape (n, c)
        Probabilities of the *noisy* label, ``P(noisy = j | x)``; or shares of noisy labels, in one row.
    T : array-like of shape (c, c)
        Transition matrix. If both are data frames, it is matched to the column names of `noisy_proba`.
    n_iter : int, default=5
        Number of iterations. Use 1000 for shares, or if `noisy_proba` is exact.

    Returns
    -------
    ndarray of shape (n, c), float64
        ``P(true = i | x)``, classes as in `noisy_proba`; rows sum to 1. A row with probability 0 under `T` is returned
        unchanged.

    References
    ----------
    Richardson, "Bayesian-Based Iterative Method of Image Restoration", 1972.

    Examples
    --------
    >>> from noisytransition.transition import denoise_proba
    >>> denoise_proba([[0.8, 0.2], [0.4, 0.6], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]], n_iter=1000).round(3)
    array([[1.   , 0.   ],
           [0.333, 0.667],
           [0.   , 1.   ]])
    """
    noisy = check_probabilities(noisy_proba, name="noisy_proba")
    n_classes = noisy.shape[1]
    T = check_transition_matrix(in_class_order(T, getattr(noisy_proba, "columns", None)), n_classes, "T")
    proba = normalise_rows(np.maximum(noisy, _MIN_START / n_classes), noisy)
    for _ in range(check_count(n_iter, 1, "n_iter")):
        proba = proba * ((noisy / np.maximum(proba @ T, _MIN_DENOMINATOR)) @ T.T)
    return normalise_rows(proba, noisy)
