"""Which labels are wrong, and what they should be: the posterior of the true label put to use."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import check_rate
from ._posterior import label_posterior


def label_quality(proba: ArrayLike, y_noisy: ArrayLike, T: ArrayLike) -> NDArray[np.float64]:
    """Probability that each given label is right: ``P(true = y | x, noisy = y)``.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``, best of rows that the classifier was not trained on.
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
    Of two rows alike, the one whose label is seldom given by mistake is the more trustworthy:

    >>> label_quality([[0.5, 0.5], [0.5, 0.5]], [0, 1], [[1, 0], [0.5, 0.5]]).round(3)
    array([0.667, 1.   ])
    """
    posterior = label_posterior(proba, y_noisy, T)
    return posterior[np.arange(len(posterior)), np.asarray(y_noisy, dtype=np.intp)]


def find_label_issues(
    proba: ArrayLike, y_noisy: ArrayLike, T: ArrayLike, *, threshold: float = 0.5
) -> NDArray[np.intp]:
    """Rows whose label is probably wrong, the most doubtful first.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``, best of rows that the classifier was not trained on.
    y_noisy : array-like of int, shape (n,)
        Given labels as class indices 0..c-1.
    T : array-like of shape (c, c)
        Transition matrix.
    threshold : float in [0, 1], default=0.5
        Rows are listed whose `label_quality` is below this; 0.5: labels that are more probably wrong than right.

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
    ``proba[n, y]`` alone; Bayes' rule weighs it against the probability of each flip.

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
    """Labels with those replaced whose true class is all but certain.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``, best of rows that the classifier was not trained on.
    y_noisy : array-like of int, shape (n,)
        Given labels as class indices 0..c-1.
    T : array-like of shape (c, c)
        Transition matrix.
    threshold : float in [0, 1], default=0.9
        A row gets its most probable true class if the posterior of that class is at least this.

    Returns
    -------
    ndarray of int, shape (n,)
        A copy; rows below the threshold keep the label that they have.

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
