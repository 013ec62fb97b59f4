"""The posterior of the true label, given the noisy one."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import check_label_indices, check_probabilities, check_transition_matrix


def label_posterior(proba: ArrayLike, y_noisy: ArrayLike, T: ArrayLike) -> NDArray[np.float64]:
    """Probability of each true label, given the sample and its noisy label (Bayes' rule).

    ``P(true = i | x, noisy = j) = proba[i] T[i, j] / sum_k proba[k] T[k, j]``.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``.
    y_noisy : array-like of int, shape (n,)
        Noisy labels as class indices 0..c-1.
    T : array-like of shape (c, c)
        Transition matrix.

    Returns
    -------
    ndarray of shape (n, c), float64
        Rows sum to 1. Where `proba` and `T` together rule the noisy label out (the sum is 0), the label says
        nothing that the model could use, and the row of `proba` is returned.

    Raises
    ------
    ValueError
        If an input is not valid or the shapes do not fit.

    Examples
    --------
    >>> label_posterior([[0.5, 0.5], [0.5, 0.5]], [0, 1], [[1, 0], [0.5, 0.5]]).round(3)
    array([[0.667, 0.333],
           [0.   , 1.   ]])
    """
    proba = check_probabilities(proba)
    n_rows, n_classes = proba.shape
    T = check_transition_matrix(T, n_classes, "T")
    joint = proba * T[:, check_label_indices(y_noisy, n_classes, n_rows, "y_noisy")].T
    posterior = np.where(joint.sum(axis=1, keepdims=True) > 0, joint, proba)
    return posterior / posterior.sum(axis=1, keepdims=True)
