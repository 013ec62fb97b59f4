"""Test whether two sets of samples have the same means."""

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..labels._draw import design_effect
from ._rules import WARN_P

# eigenvalues of a covariance matrix below this share of the largest, or of 1, are rounding errors
_NOTHING = 1e-6
_ROUNDING = 1e-12
# differences of probabilities below this hardly change shares and accuracies, even if many samples show them
_DIFFERENT = 0.03


def relevant_difference(
    values: NDArray, others: NDArray, weights: NDArray | None, groups: NDArray | None
) -> NDArray[np.float64] | None:
    """Difference as by `mean_difference`, of probabilities; None if it is small or may be chance."""
    difference, pvalue = mean_difference(values, others, weights, groups)
    return None if pvalue >= WARN_P or np.abs(difference).max() <= _DIFFERENT else difference


def mean_difference(
    values: NDArray, others: NDArray, weights: NDArray | None = None, groups: NDArray | None = None
) -> tuple[NDArray[np.float64], float]:
    """Difference of the means of `values` of shape (m, k) and `others` of shape (n, k), and its p-value.

    Hotelling's test with the covariance of both. `weights` and `groups` of shape (m,) are those of `values`: the sum of
    squared weights and the design effect of the groups take the place of 1 / m.
    """
    of_values = np.ones((len(values), 1)) if weights is None else weights[:, None] / weights.mean()
    mean = (of_values * values).mean(axis=0)
    difference = mean - others.mean(axis=0)
    residuals = values - mean
    apart = others - others.mean(axis=0)
    degrees = len(values) + len(others) - 2
    covariance = (residuals.T @ residuals + apart.T @ apart) / max(degrees, 1)
    of_mean = (of_values**2).mean() / len(values) * design_effect(of_values * residuals, groups)
    sizes, directions = np.linalg.eigh(covariance)
    kept = sizes > max(_NOTHING * sizes.max(), _ROUNDING)
    k = int(kept.sum())
    left = degrees - k + 1
    if not k or left < 1:
        return difference, 1.0
    statistic = ((difference @ directions[:, kept]) ** 2 / sizes[kept]).sum() / (of_mean + 1 / len(others))
    return difference, float(special.fdtrc(k, left, statistic * left / (k * degrees)))
