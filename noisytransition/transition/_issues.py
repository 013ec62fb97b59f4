"""Label issues and corrected labels, from the posterior of the true label."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._checks import check_rate
from ._labels import as_positions, class_names, like_series
from ._posterior import posterior_arguments, posterior_blocks


def label_quality(proba: ArrayLike, y_noisy: ArrayLike, T: ArrayLike, *, classes: ArrayLike | None = None) -> Any:
    """Probability that each given label is correct: ``P(true = y | x, noisy = y)``.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``, preferably of rows not used in training.
    y_noisy : array-like of shape (n,)
        Given labels: class indices 0..c-1, text, or any labels that `classes` has.
    T : array-like of shape (c, c)
        Transition matrix.
    classes : array-like of shape (c,), optional
        The labels in the order of the columns of `proba` and `T`, as in `label_posterior`.

    Returns
    -------
    ndarray of shape (n,), float64, or Series
        Entry of the given label in each row of `label_posterior`. A Series with the same index if `y_noisy` is one.

    Examples
    --------
    The rows have equal probabilities, but only true class 1 is ever labelled 1:

    >>> from noisytransition.transition import label_quality
    >>> label_quality([[0.5, 0.5], [0.5, 0.5]], [0, 1], [[1, 0], [0.5, 0.5]]).round(3)
    array([0.667, 1.   ])
    """
    given, codes, T = posterior_arguments(proba, y_noisy, T, classes)
    quality = np.empty(len(given))
    for rows, posterior in posterior_blocks(given, codes, T):
        quality[rows] = posterior[np.arange(len(posterior)), codes[rows]]
    return like_series(quality, y_noisy, "label_quality")


def find_label_issues(
    proba: ArrayLike, y_noisy: ArrayLike, T: ArrayLike, *, threshold: float = 0.5, classes: ArrayLike | None = None
) -> Any:
    """Rows whose label is probably wrong, by rising probability of being correct.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``, preferably of rows not used in training.
    y_noisy : array-like of shape (n,)
        Given labels: class indices 0..c-1, text, or any labels that `classes` has.
    T : array-like of shape (c, c)
        Transition matrix.
    threshold : float in [0, 1], default=0.5
        Rows with a `label_quality` below this are returned; 0.5: labels that are more probably wrong than correct.
    classes : array-like of shape (c,), optional
        The labels in the order of the columns of `proba` and `T`, as in `label_posterior`.

    Returns
    -------
    ndarray of int, shape (n_issues,), or Series
        Positions of rows by rising `label_quality`; equal ones in the order of the rows. If `y_noisy` is a pandas
        Series, a Series of these positions that has the index of these rows.

    References
    ----------
    Northcutt, Jiang, Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels", JAIR 70, 2021, rank by
    ``proba[n, y]`` alone, without the probabilities of the flips.

    Examples
    --------
    >>> from noisytransition.transition import find_label_issues
    >>> T = [[0.9, 0.1], [0.3, 0.7]]
    >>> find_label_issues([[0.9, 0.1], [0.3, 0.7], [0.1, 0.9]], [0, 0, 0], T)
    array([2])
    """
    check_rate(threshold, "threshold")
    quality = np.asarray(label_quality(proba, y_noisy, T, classes=classes))
    order = np.argsort(quality, kind="stable")
    return as_positions(order[quality[order] < threshold], y_noisy)


def relabel(
    proba: ArrayLike, y_noisy: ArrayLike, T: ArrayLike, *, threshold: float = 0.9, classes: ArrayLike | None = None
) -> Any:
    """Replace the labels of rows whose true class is almost certain.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``, preferably of rows not used in training.
    y_noisy : array-like of shape (n,)
        Given labels: class indices 0..c-1, text, or any labels that `classes` has.
    T : array-like of shape (c, c)
        Transition matrix.
    threshold : float in [0, 1], default=0.9
        A row gets its most probable true class if the posterior of that class is at least this.
    classes : array-like of shape (c,), optional
        The labels in the order of the columns of `proba` and `T`, as in `label_posterior`.

    Returns
    -------
    ndarray of shape (n,), or Series
        A copy; rows below the threshold keep their label. A Series with the same index if `y_noisy` is one.

    Examples
    --------
    >>> from noisytransition.transition import relabel
    >>> relabel([[0.01, 0.99], [0.4, 0.6]], [0, 0], [[0.9, 0.1], [0.3, 0.7]])
    array([1, 0])
    >>> relabel([[0.01, 0.99], [0.4, 0.6]], ["cat", "cat"], [[0.9, 0.1], [0.3, 0.7]], classes=["cat", "dog"])
    array(['dog', 'cat'], dtype='<U3')
    """
    check_rate(threshold, "threshold")
    given, codes, T = posterior_arguments(proba, y_noisy, T, classes)
    for rows, posterior in posterior_blocks(given, codes, T):
        codes[rows] = np.where(posterior.max(axis=1) >= threshold, posterior.argmax(axis=1), codes[rows])
    named = class_names(y_noisy, given.shape[1], classes)
    return like_series(codes if named is None else named[codes], y_noisy, getattr(y_noisy, "name", None))
