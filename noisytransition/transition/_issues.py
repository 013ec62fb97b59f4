"""Label issues and corrected labels, from the posterior of the true label."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import check_rate
from ._posterior import label_posterior


def label_quality(proba: ArrayLike, y_noisy: ArrayLike, T: ArrayLike) -> NDArray[np.float64]:
    """Probability that each given label is correct: ``P(true = y | x, noisy = y)``.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``, preferably of rows not used in training.
    y_noisy : array-like of int, shape (n,)
        Given labels as class indices 0..c-1.
    T : array-like of shape (c, c)
        Transition matrix.

    Returns
    -------
    ndarray of shape (n,), float64
        Entry of the given label in each row of `label_posterior`.

    Raises
    ------
    ValueError
        If an input is not valid or the shapes do not fit.

    Examples
    --------
    The rows have equal probabilities, but only true class 1 is ever labelled 1:

    >>> label_quality([[0.5, 0.5], [0.5, 0.5]], [0, 1], [[1, 0], [0.5, 0.5]]).round(3)
    array([0.667, 1.   ])
    """
    posterior = label_posterior(proba, y_noisy, T)
    return posterior[np.arange(len(posterior)), np.asarray(y_noisy, dtype=np.intp)]


def find_label_issues(
    proba: ArrayLike, y_noisy: ArrayLike, T: ArrayLike, *, threshold: float = 0.5
) -> NDArray[np.intp]:
    """Rows whose label is probably wrong, by rising probability of being correct.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``, preferably of rows not used in training.
    y_noisy : array-like of int, shape (n,)
        Given labels as class indices 0..c-1.
    T : array-like of shape (c, c)
        Transition matrix.
    threshold : float in [0, 1], default=0.5
        Rows with a `label_quality` below this are returned; 0.5: labels that are more probably wrong than correct.

    Returns
    -------
    ndarray of int, shape (n_issues,)
        Indices of rows by rising `label_quality`; equal ones in the order of the rows.

    Raises
    ------
    ValueError
        If an input is not valid or the shapes do not fit.

    References
    ----------
    Northcutt, Jiang, Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels", JAIR 70, 2021, rank by
    ``proba[n, y]`` alone, without the probabilities of the flips.

    Examples
    --------
    >>> T = [[0.9, 0.1], [0.3, 0.7]]
    >>> find_label_issues([[0.9, 0.1], [0.3, 0.7], [0.1, 0.9]], [0, 0, 0], T)
    array([2])
    """
    check_rate(threshold, "threshold")
    quality = label_quality(proba, y_noisy, T)
    order = np.argsort(quality, kind="stable")
    return order[quality[order] < threshold]


def relabel(proba: ArrayLike, y_noisy: ArrayLike, T: ArrayLike, *, threshold: float = 0.9) -> NDArray[np.intp]:
    """Replace the labels of rows whose true class is almost certain.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``, preferably of rows not used in training.
    y_noisy : array-like of int, shape (n,)
        Given labels as class indices 0..c-1.
    T : array-like of shape (c, c)
        Transition matrix.
    threshold : float in [0, 1], default=0.9
        A row gets its most probable true class if the posterior of that class is at least this.

    Returns
    -------
    ndarray of int, shape (n,)
        A copy; rows below the threshold keep their label.

    Raises
    ------
    ValueError
        If an input is not valid or the shapes do not fit.

    Examples
    --------
    >>> relabel([[0.01, 0.99], [0.4, 0.6]], [0, 0], [[0.9, 0.1], [0.3, 0.7]])
    array([1, 0])
    """
    check_rate(threshold, "threshold")
    posterior = label_posterior(proba, y_noisy, T)
    return np.where(posterior.max(axis=1) >= threshold, posterior.argmax(axis=1), np.asarray(y_noisy, dtype=np.intp))
