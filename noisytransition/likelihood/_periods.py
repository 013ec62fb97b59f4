"""Smooth the transition matrices of periods along time."""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

# Standard deviations of a step of the logits from a period to the next, from which the evidence selects: from nearly
# constant to independent
_STEPS = 2.0 ** np.arange(-5, 3)
# Newton's method: largest number of iterations, longest change of a logit, and tolerance
_MAX_ITERATIONS = 50
_LONGEST = 1.0
_LOGIT_TOLERANCE = 1e-6


def shares_along_time(counts: NDArray, common: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of k labels in the rows of each period, smoothed, and the log-evidence of each period.

    The logits of each label against all later labels (continuation ratios) are random walks around those of the
    `common` shares of shape (c, k): one walk of each logit, or one of all together, as the evidence selects. `counts`
    have the shape (n_periods, c, k). See Fahrmeir, Tutz, "Multivariate
    Statistical Modelling Based on Generalized Linear Models", 2001, chapter 8.
    """
    n_periods = len(counts)
    if counts.shape[2] == 1:
        return np.ones(counts.shape), np.zeros(n_periods)
    left = counts[..., ::-1].cumsum(axis=2)[..., ::-1]  # this label and later ones
    left_of_common = common[..., ::-1].cumsum(axis=1)[..., ::-1]
    of_label, of_left = (n[..., :-1].reshape(n_periods, -1).T for n in (counts, left))
    level = special.logit((common / left_of_common)[:, :-1]).reshape(-1, 1)
    walks = [_maximum(of_label, of_left, level, step, n) for step in _STEPS for n in {1, len(level)}]
    share, log_evidence = max(walks, key=lambda walk: walk[1].sum())
    share = share.T.reshape(n_periods, counts.shape[1], -1)
    one = np.ones((*counts.shape[:2], 1))
    not_before = np.concatenate([one, (1 - share).cumprod(axis=2)], axis=2)
    return np.concatenate([share, one], axis=2) * not_before, log_evidence


def _maximum(n: NDArray, total: NDArray, level: NDArray, step: float, n_walks: int) -> tuple[NDArray, NDArray]:
    """Maximise the posterior of random walks by Newton's method, with Laplace's approximation of the evidence.

    All logits share one walk, or each has its own. The first step is as long as the walk of all periods. Return the
    shares of shape (n_logits, n_periods), and the log-evidence of each period, with an equal part of what all have in
    common.
    """
    n_periods = n.shape[1]
    precision = np.full((n_walks, n_periods), 2.0)
    precision[:, -1] = 1.0
    precision[:, 0] -= 1 - 1 / n_periods
    precision /= step**2
    between = np.full((n_walks, n_periods), -1 / step**2)
    between[:, 0] = 0.0  # between the last period of a walk and the first of the next

    def of_walks(values: NDArray) -> NDArray:
        return values.reshape(n_walks, -1, n_periods).sum(axis=1)

    apart = np.zeros((n_walks, n_periods))
    for _ in range(_MAX_ITERATIONS):
        share = special.expit(level + apart)
        pull = precision * apart
        pull[:, 1:] += between[:, 1:] * apart[:, :-1]
        pull[:, :-1] += between[:, 1:] * apart[:, 1:]
        curvature = precision + of_walks(total * share * (1 - share))
        factor = linalg.cholesky_banded(np.stack([between.ravel(), curvature.ravel()]))
        slope = of_walks(n - total * share) - pull
        change = linalg.cho_solve_banded((factor, False), slope.ravel()).reshape(slope.shape)
        if np.abs(change).max() < _LOGIT_TOLERANCE:
            break
        apart += np.clip(change, -_LONGEST, _LONGEST)
    of_period = (special.xlogy(n, share) + special.xlog1py(total - n, -share)).sum(axis=0)
    of_prior = -(apart * pull).sum() / 2 - n_walks * (n_periods * np.log(step) + np.log(n_periods) / 2)
    return share, of_period + (of_prior - np.log(factor[1]).sum()) / n_periods
