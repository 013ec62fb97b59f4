"""Estimates of the transition matrix from class probabilities or from labels."""

from __future__ import annotations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ..labels._arrays import check_label_indices, is_number
from ._checks import check_finite, check_probabilities, check_transition_matrix

#: keeps logarithms and quotients finite; far below any rate that data could distinguish from 0
TINY = 1e-12


def gold_transition_matrix(proba: ArrayLike, y: ArrayLike, *, missing: ArrayLike | None = None) -> NDArray[np.float64]:
    """Average the noisy-label probabilities of the clean samples of each class (Gold Loss Correction).

    ``T[i] = mean of proba[n] over the clean samples n with y[n] = i``.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *noisy* label of the clean samples, from a model trained on noisy labels.
    y : array-like of int, shape (n,)
        Clean labels as class indices 0..c-1.
    missing : array-like of shape (c, c), optional
        A transition matrix, for example from `anchor_transition_matrix`. It supplies the rows of classes without clean
        samples.

    Returns
    -------
    ndarray of shape (c, c), float64

    References
    ----------
    Hendrycks et al., "Using Trusted Data to Train Deep Networks on Labels Corrupted by Severe Noise", NeurIPS 2018.

    Examples
    --------
    >>> from noisytransition.transition import gold_transition_matrix
    >>> gold_transition_matrix([[0.75, 0.25], [0.25, 0.75], [0.25, 0.75]], [0, 0, 1])
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    proba = check_probabilities(proba)
    n_rows, n_classes = proba.shape
    y = check_label_indices(y, n_classes, n_rows)
    T = np.zeros((n_classes, n_classes))
    np.add.at(T, y, proba)
    if missing is not None:
        absent = np.setdiff1d(np.arange(n_classes), y)
        T[absent] = check_transition_matrix(missing, n_classes, "missing")[absent]
    return _rows_of_all_classes(T, "pass missing=, a transition matrix with their rows")


def anchor_transition_matrix(
    proba: ArrayLike, *, percentile: float | Literal["auto"] | None = None
) -> NDArray[np.float64]:
    """Estimate T from the noisy-label probabilities at anchor points.

    ``T[i] = proba[anchor of i]``, where the anchor of class i is the sample with the highest ``proba[:, i]``.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *noisy* label, from a model trained on noisy labels.
    percentile : float in (0, 100], "auto" or None
        Ignore samples with ``proba[:, i]`` above this percentile of the column as outliers. None is the same as 100. A
        constant such as 97 ignores *all* samples of a class rarer than 3 %, so that its anchor is from another class.
        "auto" depends on the rarest class, ``100 (1 - 0.3 min prior)``. The prior of a class is the smaller of its mean
        probability and its share of ``proba.argmax(axis=1)``, since the mean probability of a rare class is high if
        many labels are flipped to it.

    Returns
    -------
    ndarray of shape (c, c), float64

    References
    ----------
    Patrini et al., "Making Deep Neural Networks Robust to Label Noise: a Loss Correction Approach", CVPR 2017.

    Examples
    --------
    >>> from noisytransition.transition import anchor_transition_matrix
    >>> anchor_transition_matrix([[0.75, 0.25], [0.5, 0.5], [0.125, 0.875]])
    array([[0.75 , 0.25 ],
           [0.125, 0.875]])
    """
    proba = check_probabilities(proba)
    if not len(proba):
        raise ValueError("proba has no rows; pass at least one.")
    highest: Any = 100.0 if percentile is None else percentile
    if percentile == "auto":
        share = np.bincount(proba.argmax(axis=1), minlength=proba.shape[1]) / len(proba)
        highest = float(100 * (1 - 0.3 * min(proba.mean(axis=0).min(), share.min())))
    if not is_number(highest) or not 0 < highest <= 100:
        raise ValueError(f'percentile={percentile!r}; pass None, "auto" or a number above 0 and at most 100.')
    # "lower" gives a value of the column itself, so that at least one sample is at or below it
    limits = np.percentile(proba, highest, axis=0, method="lower")
    return normalise_rows(proba[np.where(proba <= limits, proba, -np.inf).argmax(axis=0)])


def count_transition_matrix(
    y_true: ArrayLike, y_noisy: ArrayLike, n_classes: int | None = None, *, smoothing: float = 0.0
) -> NDArray[np.float64]:
    """Estimate T by counting pairs of true and noisy labels.

    ``T[i, j] = (#(true i, noisy j) + smoothing) / (#(true i) + c smoothing)``.

    Parameters
    ----------
    y_true, y_noisy : array-like of int, shape (n,)
        Class indices 0..c-1 of the same samples.
    n_classes : int, optional
        Number c of classes. Default: the highest index + 1.
    smoothing : float
        Added to every count (the parameter of a symmetric Dirichlet prior).

    Returns
    -------
    ndarray of shape (c, c), float64

    Examples
    --------
    >>> from noisytransition.transition import count_transition_matrix
    >>> count_transition_matrix([0, 0, 0, 0, 1], [0, 0, 0, 1, 1])
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """
    y_true = check_label_indices(y_true, n_classes, name="y_true")
    y_noisy = check_label_indices(y_noisy, n_classes, len(y_true), name="y_noisy")
    check_finite(smoothing, "smoothing")
    if n_classes is None:
        n_classes = int(max(y_true.max(initial=-1), y_noisy.max(initial=-1))) + 1
    counts = pair_counts(y_true, y_noisy, n_classes) + smoothing
    return _rows_of_all_classes(counts, "set smoothing > 0, which makes their rows uniform")


def confusion_transition_matrix(proba: ArrayLike, y_noisy: ArrayLike) -> NDArray[np.float64]:
    """Estimate T as the soft confusion matrix of predictions and noisy labels.

    ``T[i, j]`` is the share of noisy label j among all samples, weighted by ``proba[n, i]``.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Class probabilities, from a model trained on noisy labels.
    y_noisy : array-like of int, shape (n,)
        Noisy labels of the same samples as class indices 0..c-1.

    Returns
    -------
    ndarray of shape (c, c), float64

    References
    ----------
    Goldberger, Ben-Reuven, "Training Deep Neural-Networks Using a Noise Adaptation Layer", ICLR 2017, section 3.

    Examples
    --------
    >>> from noisytransition.transition import confusion_transition_matrix
    >>> confusion_transition_matrix([[0.75, 0.25], [0.75, 0.25], [0.25, 0.75]], [0, 1, 1])
    array([[0.42857143, 0.57142857],
           [0.2       , 0.8       ]])
    """
    proba = check_probabilities(proba)
    n_rows, n_classes = proba.shape
    y = check_label_indices(y_noisy, n_classes, n_rows, name="y_noisy")
    return _rows_of_all_classes(proba.T @ np.eye(n_classes)[y], "remove columns of proba that have probability 0")


def _rows_of_all_classes(weights: NDArray, advice: str) -> NDArray[np.float64]:
    """Divide rows by their sums; raise if a class has no samples."""
    if (absent := np.flatnonzero(weights.sum(axis=1) == 0)).size:
        raise ValueError(f"no samples of classes {absent.tolist()} of 0..{len(weights) - 1}; add some, or {advice}.")
    return normalise_rows(weights)


def floor_transition_matrix(T: NDArray, floor: float) -> NDArray[np.float64]:
    """Raise every entry to at least `floor`, and scale the rest of its row down."""
    return floor + (1 - len(T) * floor) * normalise_rows(np.maximum(T, floor) - floor)


def pair_counts(first: NDArray, second: NDArray, n_classes: int, weights: NDArray | None = None) -> NDArray:
    """Count the samples with first label i and second label j; without samples whose second label is missing (-1)."""
    known = second >= 0
    of_known = None if weights is None else weights[known]
    codes = (n_classes * first + second)[known]
    return np.bincount(codes, of_known, minlength=n_classes**2).reshape(n_classes, n_classes)


def finite_log(p: NDArray) -> NDArray[np.float64]:
    """Logarithm of probabilities, finite at 0."""
    return np.log(np.maximum(p, TINY))


def normalise_rows(weights: NDArray, otherwise: NDArray | float = np.nan) -> NDArray[np.float64]:
    """Divide rows by their sums; `otherwise` replaces empty rows."""
    sums = weights.sum(axis=1, keepdims=True)
    return np.where(sums > 0, weights / np.where(sums > 0, sums, 1), otherwise)


def jeffreys_interval(share: NDArray, n: NDArray, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of shares estimated from n samples, with Jeffreys' prior."""
    a = n * share + 0.5
    b = n * (1 - share) + 0.5
    return special.betaincinv(a, b, (1 - level) / 2), special.betaincinv(a, b, (1 + level) / 2)
