"""Probabilities of the true label, and labels that are probably wrong."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import (
    blocks_of_rows,
    check_count,
    check_probabilities,
    check_rate,
    check_transition_matrix,
    checked_probabilities,
)
from ._estimation import normalise_rows
from ._labels import as_positions, class_indices, class_names, in_class_order, like_series

# smallest denominator: far above the smallest float64, far below any probability that matters
_MIN_DENOMINATOR = 1e-300
# smallest start, as a share of 1/c: the update is multiplicative and never leaves 0. A choice, not measured.
_MIN_START = 1e-3


def label_posterior(
    proba: ArrayLike, y_noisy: ArrayLike, T: ArrayLike, *, classes: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Probability of each true label, given the sample and its noisy label (Bayes' rule).

    ``P(true = i | x, noisy = j) = proba[i] T[i, j] / sum_k proba[k] T[k, j]``.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``.
    y_noisy : array-like of shape (n,)
        Noisy labels: class indices 0..c-1, text, or any labels that `classes` has.
    T : array-like of shape (c, c)
        Transition matrix.
    classes : array-like of shape (c,), optional
        The labels in the order of the columns of `proba` and `T`. Default: of text the sorted labels of `y_noisy`,
        which must be c.

    Returns
    -------
    ndarray of shape (n, c), float64
        Rows sum to 1. Where the noisy label has probability 0 under `proba` and `T`, the row of `proba` is returned.

    Examples
    --------
    >>> from noisytransition.transition import label_posterior
    >>> label_posterior([[0.5, 0.5], [0.5, 0.5]], [0, 1], [[1, 0], [0.5, 0.5]]).round(3)
    array([[0.667, 0.333],
           [0.   , 1.   ]])
    """
    given, codes, T = posterior_arguments(proba, y_noisy, T, classes)
    found = np.empty(given.shape)
    for rows, posterior in posterior_blocks(given, codes, T):
        found[rows] = posterior
    return found


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


def denoise_proba(noisy_proba: ArrayLike, T: ArrayLike, *, n_iter: int = 5) -> NDArray[np.float64]:
    r"""Solve ``noisy_proba = proba @ T`` for the probabilities of the *true* label.

    A classifier that was trained on noisy labels without a correction predicts noisy labels. Each iteration, starting
    from `noisy_proba`, reduces the Kullback-Leibler divergence from ``proba @ T`` (Richardson-Lucy deconvolution)::

        proba[i] <- proba[i] * sum_j T[i, j] noisy_proba[j] / (proba @ T)[j]

    In the limit, errors of the classifier are amplified as by the inverse of T. Few iterations (early stopping) are
    therefore better than many, unless `noisy_proba` is almost exact.

    Parameters
    ----------
    noisy_proba : array-like of shape (n, c)
        Probabilities of the *noisy* label, ``P(noisy = j | x)``; or shares of noisy labels, in one row.
    T : array-like of shape (c, c)
        Transition matrix. If both are data frames, by the names of the columns of `noisy_proba`.
    n_iter : int, default=5
        Number of iterations; 1000 for shares, or where `noisy_proba` is known.

    Returns
    -------
    ndarray of shape (n, c), float64
        ``P(true = i | x)``, classes as in `noisy_proba`; rows sum to 1. A row that has probability 0 under `T` is
        returned as it is.

    References
    ----------
    Richardson, "Bayesian-Based Iterative Method of Image Restoration", 1972. Patrini, Rozza, Menon, Nock, Qu, CVPR
    2017 (the inverse of T, of losses).

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
    found = normalise_rows(np.maximum(noisy, _MIN_START / n_classes), noisy)
    for _ in range(check_count(n_iter, 1, "n_iter")):
        found = found * ((noisy / np.maximum(found @ T, _MIN_DENOMINATOR)) @ T.T)
    return normalise_rows(found, noisy)


# ---------------------------------------------------------------------------- blocks of rows
def posterior_arguments(
    proba: ArrayLike, y_noisy: ArrayLike, T: ArrayLike, classes: ArrayLike | None
) -> tuple[NDArray, NDArray[np.intp], NDArray[np.float64]]:
    """Validated probabilities, which are not copied, noisy labels as class indices, and T."""
    given = checked_probabilities(proba)
    n_rows, n_classes = given.shape
    named = class_names(y_noisy, n_classes, classes)
    codes = class_indices(y_noisy, n_classes, n_rows, "y_noisy", named)
    order = np.arange(n_classes) if named is None else named
    if hasattr(proba, "columns"):
        given = checked_probabilities(in_class_order(proba, order, rows=False))
    return given, codes, check_transition_matrix(in_class_order(T, order), n_classes, "T")


def posterior_blocks(
    proba: NDArray, codes: NDArray[np.intp], T: NDArray[np.float64]
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Rows of `label_posterior`, block by block, and which rows they are."""
    for rows in blocks_of_rows(*proba.shape):
        of_class = proba[rows].astype(np.float64, copy=False)
        joint = of_class * T[:, codes[rows]].T
        posterior = np.where(joint.sum(axis=1, keepdims=True) > 0, joint, of_class)
        yield rows, posterior / posterior.sum(axis=1, keepdims=True)
