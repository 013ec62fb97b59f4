"""Error bars of T, from the Fisher information in noisy, clean and paired labels."""

from __future__ import annotations
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, special

from ..labels._arrays import check_label_indices
from ..transition._checks import check_level, check_probabilities, check_transition_matrix
from ..transition._estimation import TINY, normalise_rows
from ._calibration import map_prior, map_scores
from ._em import check_counts

#: with more classes, the information about T is too large to invert
MOST_CLASSES = 50
# samples per block
_CHUNK = 4096
# precision of the prior of an entry of T: a standard error of 0.5 without data
_PRIOR_PRECISION = 4.0
# lowest location of an entry truncated at 0, in scales below 0: beyond, the tail probability underflows
_MAX_DEPTH = 30.0
# an entry is fixed at 0 if its location is this many scales below 0; 1 and 6 give nearly the same widths and coverage
# (simulated data of 2 to 10 classes)
_HELD = 3.0


class TransitionUncertainty(NamedTuple):
    """Standard errors and intervals of T, from `transition_uncertainty`.

    Each entry, except the largest of its row, has a normal distribution truncated at 0.

    Attributes
    ----------
    transition_matrix : ndarray of shape (c, c)
        Estimated T.
    location : ndarray of shape (c, c)
        Mean of the normal distribution: the estimate, or a lower value for an entry at 0 if the likelihood increases
        towards negative values.
    scale : ndarray of shape (c, c)
        Standard deviation of the normal distribution, before truncation.
    std : ndarray of shape (c, c)
        Standard errors.
    """

    transition_matrix: NDArray[np.float64]
    location: NDArray[np.float64]
    scale: NDArray[np.float64]
    std: NDArray[np.float64]

    def interval(self, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bounds of every entry, each one-sided at ``(1 + level) / 2``.

        If the lower bound is 0, the flip may never occur.
        """
        T = self.transition_matrix
        share = (1 + check_level(level)) / 2
        z = special.ndtri(share)
        low = np.maximum(T - z * self.scale, 0)
        # quantile of the truncated normal distribution
        above = self.location - self.scale * special.ndtri((1 - share) * special.ndtr(self.location / self.scale))
        is_largest = np.arange(T.shape[1]) == T.argmax(axis=1)[:, None]
        high = np.where(is_largest, T + z * self.scale, np.maximum(above, T))
        return low, np.minimum(high, 1)

    def widened(self, difference: NDArray) -> TransitionUncertainty:
        """Standard errors that include a difference of T."""
        return self._replace(scale=np.hypot(self.scale, difference), std=np.hypot(self.std, difference))

    def of_classes(self, c: int) -> TransitionUncertainty:
        """Error bars of the first rows of T."""
        return TransitionUncertainty._make(of[:c] for of in self)


def transition_uncertainty(
    proba: ArrayLike,
    y_noisy: ArrayLike,
    T: ArrayLike,
    *,
    proba_clean: ArrayLike | None = None,
    counts: ArrayLike | None = None,
) -> TransitionUncertainty:
    r"""Estimate error bars of T that include the uncertainty of the classifier's calibration.

    They are derived from the information in the joint likelihood of T and the calibration map
    (`em_transition_matrix`): the clean samples limit the error of the map, which propagates to T. See
    :doc:`/methods/maximum_likelihood` for the formula. Shrinkage of T does not count as information: if it was strong,
    the bars are longer than the spread of T. The bars assume that *one* T holds for all samples, and that such a map
    can calibrate the probabilities.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label of the noisy samples, out-of-sample and calibrated (`EMResult.calibration`).
    y_noisy : array-like of int, shape (n,)
        Noisy labels as class indices 0..c-1.
    T : array-like of shape (c, c)
        Maximum-likelihood transition matrix (`em_transition_matrix`).
    proba_clean : array-like of shape (n_clean, c), optional
        Probabilities of the clean samples. Without them the classifier is assumed to be exact, and the bars are too
        short.
    counts : array-like of shape (c, c), optional
        Numbers of samples whose true (i) and noisy (j) labels are both known.

    Returns
    -------
    TransitionUncertainty
        With `std` and ``interval(level)``. Entries of a row of T without data have standard errors of about 0.3.

    Examples
    --------
    >>> import numpy as np
    >>> from noisytransition.likelihood import transition_uncertainty
    >>> proba, y = np.eye(2)[[0] * 100 + [1] * 100], np.repeat([0, 1, 1], [80, 20, 100])
    >>> found = transition_uncertainty(proba, y, [[0.8, 0.2], [0, 1]])
    >>> found.std.round(2)  # sqrt(0.8 * 0.2 / 100); none of 100 flipped
    array([[0.04, 0.04],
           [0.01, 0.01]])
    """
    proba = _checked(proba)
    n, c = proba.shape
    if c > MOST_CLASSES:
        raise ValueError(f"proba has {c} classes; error bars support at most {MOST_CLASSES}.")
    T = check_transition_matrix(T, c, "T")
    y = check_label_indices(y_noisy, c, n, "y_noisy")
    if impossible := int(((proba * T.T[y]).sum(axis=1) == 0).sum()):
        raise ValueError(f"{impossible} of {n} labels have no probability under T and proba; pass T without zeros.")
    of_clean = proba[:0] if proba_clean is None else _checked(proba_clean, c, "proba_clean")
    return error_bars(proba, y, T, of_clean, check_counts(counts, c))


def error_bars(
    proba: NDArray,
    y: NDArray,
    T: NDArray,
    proba_clean: NDArray,
    counts: NDArray,
    design_effects: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> TransitionUncertainty:
    """Error bars of `transition_uncertainty`, from valid arguments.

    The information in noisy samples, clean samples and counts is divided by their design effects.
    """
    of_noisy, of_clean, of_counts = design_effects
    found = _information(proba, y, T, counts * (of_noisy / of_counts))
    slope, info_T, info_map_T, info_map = (of / of_noisy for of in found)
    info_T += _PRIOR_PRECISION * np.eye(len(info_T))
    if len(proba_clean):
        info_map += _clean_information(proba_clean, np.ones(len(proba_clean))) / of_clean + np.diag(map_prior(proba))
        info_T -= info_map_T.T @ np.linalg.solve(info_map, info_map_T)
    return _cut_at_zero(T, slope, info_T)


def leave_one_out(
    proba: NDArray, y: NDArray, T: NDArray, of_clean: NDArray, y_clean: NDArray, weights: NDArray, counts: NDArray
) -> NDArray[np.float64]:
    r"""Approximate probabilities of each clean sample, shape (n_clean, c), by a calibration fitted without it.

    Without a clean sample of weight w, one Newton step moves its logits by ``-w A (1 - w V A)^{-1} r``, with the
    residual ``r = [label] - p``, ``V = diag(p) - p p^T``, and A the covariance of the logits, from the information
    about the calibration if T is unknown.

    Parameters are as in `transition_uncertainty`, with calibrated probabilities `of_clean`; `counts` include the
    pseudo-counts of the prior of T.

    References
    ----------
    Rad, Maleki, "A Scalable Estimate of the Out-of-Sample Prediction Error via Approximate Leave-One-Out
    Cross-Validation", JRSS B 2020.
    """
    c = len(T)
    _, info_T, info_map_T, info_map = _information(proba, y, T, counts)
    info_T += _PRIOR_PRECISION * np.eye(len(info_T))
    info_map += np.diag(map_prior(proba)) - info_map_T @ np.linalg.solve(info_T, info_map_T.T)
    info_map += _clean_information(of_clean, weights)
    covariance = np.linalg.pinv(info_map, hermitian=True)
    most = max(1, _CHUNK // c)
    blocks = (slice(i, i + most) for i in range(0, len(y_clean), most))
    return np.concatenate([_without_each(of_clean[i], y_clean[i], weights[i], covariance) for i in blocks])


def _without_each(p: NDArray, y: NDArray, weights: NDArray, covariance: NDArray) -> NDArray[np.float64]:
    """Probabilities after a Newton step away from each sample."""
    unit = np.eye(p.shape[1])
    w = weights[:, None, None]
    by_map = np.stack([map_scores(p, np.broadcast_to(logit, p.shape)) for logit in unit], axis=1)
    A = by_map @ covariance @ by_map.transpose(0, 2, 1)
    V = p[:, :, None] * (unit - p[:, None])
    step = w * A @ np.linalg.solve(unit - w * V @ A, (unit[y] - p)[:, :, None])
    return special.softmax(np.log(np.maximum(p, TINY)) - step[:, :, 0], axis=1)


def _checked(proba: ArrayLike, c: int | None = None, name: str = "proba") -> NDArray[np.float64]:
    """Valid probabilities of at least one sample."""
    array = check_probabilities(proba, c, name)
    if not len(array):
        raise ValueError(f"{name} has no rows; pass at least one.")
    return normalise_rows(array)


def _free_entries(T: NDArray) -> tuple[NDArray[np.intp], ...]:
    """Rows and columns of all entries except the largest of each row, which is one minus their sum."""
    return np.nonzero(np.arange(len(T)) != T.argmax(axis=1)[:, None])


def _cut_at_zero(T: NDArray, slope: NDArray, information: NDArray) -> TransitionUncertainty:
    """Normal approximation of each free entry, truncated at 0, and of the largest of each row."""
    at = _free_entries(T)
    scale = np.empty_like(T)
    location = T.copy()
    std = np.empty_like(T)
    covariance = _covariance(T[at], slope, information)
    scale[at] = np.sqrt(np.diag(covariance))
    location[at], shorter = _cut_normal(T[at], scale[at], slope)
    std[at] = scale[at] * shorter
    covariance = covariance * shorter * shorter[:, None]
    for i, largest in enumerate(T.argmax(axis=1)):
        of_row = at[0] == i
        std[i, largest] = scale[i, largest] = math.sqrt(covariance[np.ix_(of_row, of_row)].sum())
    return TransitionUncertainty(T, location, scale, std)


def _covariance(T: NDArray, slope: NDArray, information: NDArray) -> NDArray[np.float64]:
    """Covariance of the free entries; entries that the likelihood fixes at 0 vary one at a time.

    Otherwise an entry could increase while others fall below 0.
    """
    held = np.zeros(len(T), dtype=bool)
    covariance = np.zeros_like(information)
    while True:
        inside = np.flatnonzero(~held)
        outside = np.flatnonzero(held)
        inverse = np.linalg.inv(information[np.ix_(inside, inside)])
        cross = information[np.ix_(outside, inside)]
        alone = information[outside, outside] - np.einsum("ij,jk,ik->i", cross, inverse, cross)
        covariance[:] = 0
        covariance[np.ix_(inside, inside)] = inverse
        covariance[outside, outside] = 1 / alone
        variance = np.diag(covariance)
        now = held | ((variance > T**2) & (T + variance * slope < -_HELD * np.sqrt(variance)))
        if (now == held).all():
            return covariance
        held = now


def _cut_normal(T: NDArray, scale: NDArray, slope: NDArray) -> tuple[NDArray, NDArray]:
    """Locations of normal distributions truncated at 0, and the factors by which this reduces their std."""
    beyond = np.minimum(slope, 0) * (scale > T)  # elsewhere the slope is due to the shrinkage of T
    location = T + np.maximum(scale**2 * beyond, -_MAX_DEPTH * scale)
    cut = -location / scale
    hazard = np.exp(-(cut**2) / 2) / math.sqrt(2 * math.pi) / special.ndtr(-cut)
    return location, np.sqrt(np.maximum(1 + cut * hazard - hazard**2, TINY))


def _information(proba: NDArray, y: NDArray, T: NDArray, counts: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Slope along the free entries of T; information about them, about map and T, and about the map."""
    c = len(T)
    n_map = len(map_prior(proba[:1]))
    slope = (counts / np.maximum(T, TINY)).T
    info_T = np.stack([np.diag(of_column) for of_column in (counts / np.maximum(T, TINY) ** 2).T])
    info_map_T = np.zeros((n_map, c, c))
    info_map = np.zeros((n_map, n_map))
    for start in range(0, len(y), _CHUNK):
        p = proba[start : start + _CHUNK]
        labels = y[start : start + _CHUNK]
        joint = p * T.T[labels]
        likelihood = joint.sum(axis=1, keepdims=True)
        ratio = p / likelihood
        scores = map_scores(p, joint / likelihood - p)
        info_map += scores.T @ scores
        for j in np.unique(labels):  # a sample has information about the column of T of its label
            mine = labels == j
            slope[j] += ratio[mine].sum(axis=0)
            info_T[j] += ratio[mine].T @ ratio[mine]
            info_map_T[:, j] += scores[mine].T @ ratio[mine]
    # derivative of the entries of T, column by column, by the free ones: shape (n_free, c * c)
    rows, columns = _free_entries(T)
    entries = sparse.eye_array(T.size, format="csr")
    by_free = entries[c * columns + rows] - entries[c * T.argmax(axis=1)[rows] + rows]
    info_T = (by_free @ sparse.block_diag(info_T, format="csr") @ by_free.T).toarray()
    return by_free @ slope.ravel(), info_T, (by_free @ info_map_T.reshape(n_map, -1).T).T, info_map


def _clean_information(proba: NDArray, weights: NDArray) -> NDArray:
    """Expected information about the map in clean samples."""
    total = np.zeros(())
    for start in range(0, len(proba), _CHUNK):
        p = proba[start : start + _CHUNK]
        for label, one_hot in enumerate(np.eye(proba.shape[1])):
            scores = map_scores(p, one_hot - p) * np.sqrt(weights[start : start + _CHUNK] * p[:, label])[:, None]
            total = total + scores.T @ scores
    return total
