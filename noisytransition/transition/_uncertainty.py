"""How far T may be off: error bars from the information in noisy, clean and paired labels."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ._calibration import map_prior, map_scores
from ._checks import check_label_indices, check_level, check_probabilities, check_transition_matrix
from ._em import check_counts
from ._estimation import TINY, normalise_rows

#: with more, the information about T is too large a matrix to invert
MOST_CLASSES = 50
# rows at a time
_CHUNK = 4096
# precision of the prior of an entry of T: without any data a standard error of 0.5
_PRIOR_PRECISION = 4.0
# difference of entries that are the same but for rounding in single precision
_ROUNDING = 1e-6
# lowest location of an entry that is cut off at 0, in scales below 0: the tail probability underflows beyond
_MAX_DEPTH = 30.0
# an entry is held at 0 if its location is so many scales below 0; with 1 and 6 widths and coverage are nearly the same
# (made data of 2 to 10 classes)
_HELD = 3.0


class TransitionUncertainty(NamedTuple):
    """Standard errors and intervals of T, from `transition_uncertainty`.

    Each entry off the largest of its row is normal around `location`, with standard deviation `scale`, cut off at 0.

    Attributes
    ----------
    transition_matrix : ndarray of shape (c, c)
        T whose errors these are.
    location : ndarray of shape (c, c)
        The estimate; below it for an entry at 0 whose likelihood is still rising towards negative values.
    scale : ndarray of shape (c, c)
        Standard deviation of that normal distribution.
    std : ndarray of shape (c, c)
        Standard errors.
    others : tuple of TransitionUncertainty
        Other estimates from the same rows; intervals hold those of all.
    """

    transition_matrix: NDArray[np.float64]
    location: NDArray[np.float64]
    scale: NDArray[np.float64]
    std: NDArray[np.float64]
    others: "tuple[TransitionUncertainty, ...]" = ()

    def interval(self, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bounds of every entry, each one-sided at ``(1 + level) / 2``.

        Where the lower bound is 0, the flip may not happen at all.
        """
        T, share = self.transition_matrix, (1 + check_level(level)) / 2
        z = special.ndtri(share)
        low = np.maximum(T - z * self.scale, 0)
        above = self.location + self.scale * _cut_quantile(-self.location / self.scale, share)
        high = np.minimum(np.where(_largest_of_rows(T), T + z * self.scale, np.maximum(above, T)), 1)
        lows, highs = zip((low, high), *(bars.interval(level) for bars in self.others), strict=True)
        return np.min(lows, axis=0), np.max(highs, axis=0)

    def around(self, T: NDArray[np.float64]) -> "TransitionUncertainty":
        """Error bars of a T that was made from this one: as wide around it, and reaching over these."""
        same = np.abs(T - self.transition_matrix) <= _ROUNDING
        if same.all():
            return self._replace(transition_matrix=T)
        location = np.where(same, self.location, T)
        return TransitionUncertainty(T, location, self.scale, self.std).joined(self)

    def of_classes(self, c: int) -> "TransitionUncertainty":
        """Error bars of the first rows of T."""
        others = tuple(bars.of_classes(c) for bars in self.others)
        T, location, scale, std = (of[:c] for of in self[:4])
        return TransitionUncertainty(T, location, scale, std, others)

    def joined(self, *others: "TransitionUncertainty") -> "TransitionUncertainty":
        """Error bars that reach over those of other estimates from the same rows.

        The variance is the mean of all, taken around this estimate (Buckland, Burnham, Augustin, "Model Selection: An
        Integral Part of Inference", 1997, with equal weights).
        """
        T = self.transition_matrix
        variances = [bars.std**2 + (bars.transition_matrix - T) ** 2 for bars in (self, *others)]
        return self._replace(std=np.sqrt(np.mean(variances, axis=0)), others=others)


def transition_uncertainty(
    proba: ArrayLike,
    y_noisy: ArrayLike,
    T: ArrayLike,
    *,
    proba_meta: ArrayLike | None = None,
    counts: ArrayLike | None = None,
) -> TransitionUncertainty:
    r"""Find error bars of T that hold the uncertainty of the classifier too.

    They come from the information in the joint likelihood of T and of the map that calibrates the classifier
    (`em_transition_matrix`): clean rows tell how far off the classifier may be, and what that would do to T is in T's
    errors. :doc:`/methods/maximum_likelihood` has the formula. Shrinkage of T is not counted as information: where it
    was strong, the bars are longer than the spread of T. They are those of *one* T that holds for all rows, and of
    posteriors that such a map can set right; a classifier that is wrong otherwise is not in them.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, out-of-sample and calibrated (`EMResult.calibration`), of the noisy rows.
    y_noisy : array-like of int, shape (n,)
        Noisy labels as class indices 0..c-1.
    T : array-like of shape (c, c)
        Their most likely transition matrix (`em_transition_matrix`).
    proba_meta : array-like of shape (n_meta, c), optional
        The same of the clean rows. Without them the classifier is taken as known, and the bars are too short.
    counts : array-like of shape (c, c), optional
        Numbers of rows whose true (i) and noisy (j) label are both known.

    Returns
    -------
    TransitionUncertainty
        With `std` and ``interval(level)``. A row of T without any data has standard errors of about 0.3.

    Examples
    --------
    >>> import numpy as np
    >>> from noisytransition.transition import transition_uncertainty
    >>> proba, y = np.eye(2)[[0] * 100 + [1] * 100], np.repeat([0, 1, 1], [80, 20, 100])
    >>> found = transition_uncertainty(proba, y, [[0.8, 0.2], [0, 1]])
    >>> found.std.round(2)  # sqrt(0.8 * 0.2 / 100); none of 100 flipped
    array([[0.04, 0.04],
           [0.01, 0.01]])
    """
    proba = _checked(proba)
    n, c = proba.shape
    if c > MOST_CLASSES:
        raise ValueError(f"{c} classes are too many: error bars are for up to {MOST_CLASSES}.")
    T = check_transition_matrix(T, c, "T")
    y = check_label_indices(y_noisy, c, n, "y_noisy")
    if (impossible := int(((proba * T.T[y]).sum(axis=1) == 0).sum())) or not n:
        raise ValueError(
            f"T and proba give {impossible} of {n} rows' labels no probability; at least one row is needed, and the "
            "most likely T (em_transition_matrix), or one with a floor (floor_transition_matrix)."
        )
    known = np.zeros((c, c)) if counts is None else check_counts(counts, c)
    meta = None if proba_meta is None else _checked(proba_meta, c, "proba_meta")
    slope, of_T, of_both, of_map = _noisy_information(proba, y, T)
    slope += known / np.maximum(T, TINY)
    of_T[:, np.arange(c), np.arange(c)] += (known / np.maximum(T, TINY) ** 2).T
    free = _Free(T)
    information = free.of_blocks(of_T) + _PRIOR_PRECISION * np.eye(len(free.rows))
    if meta is not None:
        of_map += _clean_information(meta) + np.diag(map_prior(proba))
        both = free.of_vectors(of_both)
        information -= both.T @ np.linalg.solve(of_map, both)
    return _cut_at_zero(T, free, free.of_vectors(slope), information)


def _checked(proba: ArrayLike, c: int | None = None, name: str = "proba") -> NDArray[np.float64]:
    """Probabilities of at least one row."""
    array = check_probabilities(proba, c, name)
    if not len(array):
        raise ValueError(f"{name} has no rows; give at least one.")
    return normalise_rows(array)


class _Free:
    """Entries of T that may move: all but the largest of each row, which makes up for them."""

    def __init__(self, T: NDArray) -> None:
        self.rows, self.columns = np.nonzero(~_largest_of_rows(T))
        self.largest = T.argmax(axis=1)[self.rows]

    def of_vectors(self, values: NDArray) -> NDArray[np.float64]:
        """Derivatives with respect to the free entries, from those to all of T in the last two dimensions."""
        return values[..., self.rows, self.columns] - values[..., self.rows, self.largest]

    def of_blocks(self, blocks: NDArray) -> NDArray[np.float64]:
        """Information about the free entries, from that about each column j of T, ``blocks[j]``."""
        total = np.zeros((len(self.rows), len(self.rows)))
        for one, sign in ((self.columns, 1), (self.largest, -1)):
            for other, other_sign in ((self.columns, 1), (self.largest, -1)):
                alike = one[:, None] == other
                total += sign * other_sign * alike * blocks[one[:, None], self.rows[:, None], self.rows]
        return total


def _cut_at_zero(T: NDArray, free: _Free, slope: NDArray, information: NDArray) -> TransitionUncertainty:
    """Normal approximation of each free entry, cut off at 0; the largest of each row is what they leave."""
    at, scale, location, std = (free.rows, free.columns), np.empty_like(T), T.copy(), np.empty_like(T)
    covariance = _covariance(T[at], slope, information)
    scale[at] = np.sqrt(np.diag(covariance))
    location[at], shorter = _cut_normal(T[at], scale[at], slope)
    std[at] = scale[at] * shorter
    covariance = covariance * shorter * shorter[:, None]
    for i, largest in enumerate(T.argmax(axis=1)):
        std[i, largest] = scale[i, largest] = math.sqrt(covariance[np.ix_(free.rows == i, free.rows == i)].sum())
    return TransitionUncertainty(T, location, scale, std)


def _covariance(T: NDArray, slope: NDArray, information: NDArray) -> NDArray[np.float64]:
    """Covariance of the free entries; those that the likelihood holds at 0 vary one at a time.

    Otherwise an entry could rise by as much as others fall below 0, which they cannot.
    """
    held, covariance = np.zeros(len(T), dtype=bool), np.zeros_like(information)
    while True:
        inside, outside = np.flatnonzero(~held), np.flatnonzero(held)
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
    """Locations of normal numbers that are cut off at 0, and factors by which that shortens standard deviations."""
    beyond = np.minimum(slope, 0) * (scale > T)  # above, the slope is that of a prior which T was shrunk by
    location = T + np.maximum(scale**2 * beyond, -_MAX_DEPTH * scale)
    cut = -location / scale
    hazard = np.exp(-(cut**2) / 2) / math.sqrt(2 * math.pi) / special.ndtr(-cut)
    return location, np.sqrt(np.maximum(1 + cut * hazard - hazard**2, TINY))


def _noisy_information(proba: NDArray, y: NDArray, T: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Summed scores of T, and sums of outer products of scores: of T (its columns), of the map and T, of the map."""
    c, n_map = len(T), len(map_prior(proba[:1]))
    slope, of_T = np.zeros((c, c)), np.zeros((c, c, c))
    of_both, of_map = np.zeros((n_map, c, c)), np.zeros((n_map, n_map))
    for start in range(0, len(y), _CHUNK):
        p, labels = proba[start : start + _CHUNK], y[start : start + _CHUNK]
        joint = p * T.T[labels]
        likelihood = joint.sum(axis=1, keepdims=True)
        of_row, scores = p / likelihood, map_scores(p, joint / likelihood - p)
        of_map += scores.T @ scores
        for j in np.unique(labels):
            mine = labels == j
            slope[:, j] += of_row[mine].sum(axis=0)
            of_T[j] += of_row[mine].T @ of_row[mine]
            of_both[:, :, j] += scores[mine].T @ of_row[mine]
    return slope, of_T, of_both, of_map


def _clean_information(proba: NDArray) -> NDArray:
    """Expected information of the map in clean rows: each label with its probability."""
    total = np.zeros(())
    for start in range(0, len(proba), _CHUNK):
        p = proba[start : start + _CHUNK]
        for label, one_hot in enumerate(np.eye(proba.shape[1])):
            scores = map_scores(p, one_hot - p) * np.sqrt(p[:, [label]])
            total = total + scores.T @ scores
    return total


def _largest_of_rows(T: NDArray) -> NDArray[np.bool_]:
    return np.arange(T.shape[1]) == T.argmax(axis=1)[:, None]


def _cut_quantile(cut: NDArray, share: float) -> NDArray:
    """Quantile of a standard normal number that is known to be above `cut`."""
    return -special.ndtri((1 - share) * special.ndtr(-cut))
