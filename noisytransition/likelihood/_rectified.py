"""T and its error bars from verified pairs by design, whatever the reason for which the labels are wrong."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..labels._draw import sums_by_group
from ..transition._estimation import TINY, normalise_rows
from ._pair_posterior import PRECISION
from ._uncertainty import TransitionUncertainty

#: the variance that the posteriors imply counts as this number of verified samples: few residuals may all be 0
PSEUDO_SAMPLES = 20.0


class Rectified(NamedTuple):
    """T from the pairs, and its variance. `of_posteriors` is the variance of a T that only rests on the posteriors."""

    transition_matrix: NDArray[np.float64]
    variance: NDArray[np.float64]
    of_posteriors: NDArray[np.float64]

    def bias_of(self, T: NDArray) -> NDArray[np.float64]:
        """Estimated bias of another T, shape (c, c): the distance d, less if this has a large variance v.

        Its square is ``w d**2``, with ``w = d**2 / (d**2 + v)`` of each row.
        """
        return self._weights(T) ** 0.5 * (self.transition_matrix - T)

    def mean_with(self, model: TransitionUncertainty) -> TransitionUncertainty:
        """Weighted mean with T of a model, which has less variance v_m, but a bias.

        The weights of the rectified T are w, and the variance of the mean is ``(1 - w) (v_m + d**2) + w v``. `model`
        has the standard errors of the one T that the posteriors start from.
        """
        T = model.transition_matrix
        distance = self.transition_matrix - T
        w = self._weights(T)
        v_m = model.std**2 + self.of_posteriors
        std = np.sqrt((1 - w) * (v_m + distance**2) + w * self.variance)
        mean = T + w * distance
        return TransitionUncertainty(mean, mean, std, std)

    def _weights(self, T: NDArray) -> NDArray[np.float64]:
        """Weight w of each row."""
        beyond = ((self.transition_matrix - T) ** 2).sum(axis=1, keepdims=True)
        return beyond / (beyond + self.variance.sum(axis=1, keepdims=True) + TINY)


def rectified(
    T: NDArray,
    of_noisy: NDArray,
    noisy: NDArray[np.intp],
    of_pairs: NDArray,
    true: NDArray[np.intp],
    noisy_of_pairs: NDArray[np.intp],
    weights: NDArray,
    sizes: NDArray,
    design: NDArray,
    groups: NDArray | None = None,
) -> Rectified:
    r"""Correct T of the posteriors by the residuals of verified pairs.

    Among the samples with a given label, the share of a true class is the mean posterior q of all of them, plus the
    mean residual ``1[true] - q`` of verified ones. It is unbiased for any q that has not seen them, if they are drawn
    at random among those with the same given label, or have the weights of their draw. These shares, times the numbers
    of given labels, are the counts whose rows give a rectified T.

    `sizes` are the numbers of all samples by given label, up to a factor. `design` has the weights of unverified
    samples and then of pairs in the population, `groups` are those of dependent pairs. Posteriors have shape (n, c) for
    unverified and (m, c) for verified samples.

    References
    ----------
    Angelopoulos, Bates, Fannjiang, Jordan, Zrnic, "Prediction-Powered Inference", Science 2023.
    """
    posteriors = np.concatenate([of_noisy, of_pairs])
    labels = np.concatenate([noisy, noisy_of_pairs])
    if groups is None:
        groups = np.arange(len(true))
    shares, of_shares, of_model = np.zeros((3, *T.shape))
    for j in np.unique(labels):
        samples = [of[labels == j] for of in (posteriors, design)]
        pairs = [of[noisy_of_pairs == j] for of in (of_pairs, true, weights, groups)]
        shares[:, j], of_shares[:, j], of_model[:, j] = _shares(*samples, *pairs)
    counts = np.maximum(shares * sizes, 0)
    total = counts.sum(axis=1, keepdims=True) + TINY
    counted = normalise_rows(counts, T)
    variance = _of_rows(counted, of_shares * sizes**2, total) + counted * (1 - counted) / total
    m = len(np.unique(groups))
    return Rectified(counted, variance * m / max(m - 2, 1), _of_rows(T, of_model * sizes**2, total))


def _of_rows(T: NDArray, variance: NDArray, total: NDArray) -> NDArray[np.float64]:
    """Variances of counts as those of their rows divided by their sums (delta method)."""
    return ((1 - 2 * T) * variance + T**2 * variance.sum(axis=1, keepdims=True)) / total**2


def _shares(
    of_all: NDArray, design: NDArray, of_pairs: NDArray, true: NDArray[np.intp], weights: NDArray, groups: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Shares of true classes among the samples with a given label, their variances, and those of a mean posterior."""
    m = len(np.unique(groups))
    mean = np.average(of_all, axis=0, weights=design)
    if not weights.any():
        return mean, mean * (1 - mean), mean * (1 - mean)
    w = (weights / weights.sum())[:, None]
    residual = np.eye(of_all.shape[1])[true] - of_pairs
    spread = of_pairs * (1 - of_pairs)
    variance = (sums_by_group(w * residual, groups) ** 2).sum(axis=0)
    beyond = np.maximum((w**2 * spread).sum(axis=0) - variance, 0)
    variance += beyond * PSEUDO_SAMPLES / (m + PSEUDO_SAMPLES) + of_all.var(axis=0) / len(of_all)
    # an error of an offset of the logits shifts all posteriors
    of_model = spread.mean(axis=0) ** 2 / (PRECISION + spread.sum(axis=0))
    return mean + (w * residual).sum(axis=0), variance, of_model
