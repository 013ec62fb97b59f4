"""How samples were drawn: groups, weights of verified samples, and a test of a draw by suspicion."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import as_floats
from ._columns import read_names

# verified samples were chosen as suspicious if the mean share of other samples with a less probable given label is
# below 1/2 by _LOWER, and by _ERRORS standard errors
_ERRORS, _LOWER = 4.0, 0.1


# ---------------------------------------------------------------------------- groups, such as images of a patient
def read_groups(groups: Any, n: int, n_separate: int = 0) -> NDArray[np.intp] | None:
    """Read the groups of n samples of X as codes; each of the separate clean samples that follow is a group.

    None if no group has several samples. Raises a ValueError if the group of a sample is missing.
    """
    if groups is None:
        return None
    names, codes = read_names(groups, n, "groups")
    if n_missing := int((codes < 0).sum()):
        raise ValueError(f"groups is missing for {n_missing} of {n} samples. Pass a group for each sample.")
    if len(names) == n:
        return None
    return np.append(codes, len(names) + np.arange(n_separate))


def of_samples(both: tuple[NDArray, NDArray] | None, noisy: Any, clean: Any) -> tuple[NDArray, NDArray] | None:
    """Values of some noisy and of some clean samples; None without values."""
    return None if both is None else (both[0][noisy], both[1][clean])


def in_order_of_appearance(groups: NDArray) -> NDArray[np.intp]:
    """Number the groups by their first sample."""
    _, first, codes = np.unique(groups, return_index=True, return_inverse=True)
    return first.argsort().argsort()[codes]


def sums_by_group(values: NDArray, groups: NDArray | None) -> NDArray[np.float64]:
    """Sums of the rows of each group, shape (n_groups, k); without groups, the rows."""
    if groups is None:
        return values
    names, codes = np.unique(groups, return_inverse=True)
    sums = np.zeros((len(names), *values.shape[1:]))
    np.add.at(sums, codes, values)
    return sums


def design_effect(residuals: NDArray, groups: NDArray | None) -> float:
    """Variance of the sum of residuals by groups, relative to that of independent samples, at least 1.

    It is between 1 and the size of the groups, which have as much information as the number of samples divided by it.
    See Kish, "Survey Sampling", 1965, and Rao, Scott, "The Analysis of Categorical Data from Complex Sample Surveys",
    1981, whose mean design effect of several quantities this is.
    """
    total = (residuals**2).sum()
    if not total:
        return 1.0
    return max(float((sums_by_group(residuals, groups) ** 2).sum() / total), 1.0)


def variance_of_mean(values: NDArray, weights: NDArray, groups: NDArray | None = None) -> NDArray[np.float64]:
    """Estimate the variance of a weighted mean by linearisation (Hájek), of independent groups."""
    shares = weights / weights.sum()
    errors = sums_by_group(shares[:, None] * (values - shares @ values), groups)
    n = len(errors)
    return (errors**2).sum(axis=0) * n / max(n - 1, 1)


def effective_size(weights: NDArray, groups: NDArray | None = None) -> float:
    """Number of samples, or groups, of equal weights with a mean as precise as the weighted one (Kish, 1965)."""
    of_draws = sums_by_group(weights, groups)
    return float(of_draws.sum() ** 2 / (of_draws**2).sum())


# ---------------------------------------------------------------------------- draws of verified samples
def is_balanced(n_clean: NDArray) -> bool:
    """Whether all classes have the same number of clean samples, at least two."""
    return bool(n_clean[0] > 1 and not np.ptp(n_clean))


def is_chosen_by_suspicion(
    proba: NDArray, noisy: NDArray, proba_of_others: NDArray, noisy_of_others: NDArray, groups: NDArray | None = None
) -> bool:
    """Whether given labels of verified samples are less probable than the same labels of other samples.

    A rank-sum test within each given label (Wilcoxon, 1945) on out-of-sample probabilities. `groups` are those of
    dependent verified samples.
    """
    score = np.zeros(len(noisy))
    variance = 0.0
    for j in np.intersect1d(noisy, noisy_of_others):
        verified = proba[noisy == j, j]
        others = np.sort(proba_of_others[noisy_of_others == j, j])
        n = len(others)
        lower = (np.searchsorted(others, verified, side) for side in ("left", "right"))
        score[noisy == j] = sum(lower) / (2 * n) - 0.5
        variance += len(verified) * (len(verified) + n + 1) / (12 * n)
    variance *= design_effect(score[:, None], groups)
    return bool(score.sum() < -max(_ERRORS * variance**0.5, _LOWER * len(noisy)))


def weights_of_labels(n_verified: NDArray, n_all: NDArray) -> NDArray[np.float64]:
    r"""Weight of each given label with which verified samples have the given labels of all (post-stratification).

    With n_j of n verified samples and a share s_j of all samples, a verified sample has label j with a probability that
    has a Dirichlet prior ``K s``. The weight is s_j divided by its posterior mean ``(n_j + K s_j) / (n + K)``: near 1
    for labels with few samples, and 1 for all labels if the counts differ no more than those of a draw at random.
    K is estimated by moments: the chi-squared statistic has the mean ``(c - 1) (n + K) / (1 + K)``. See Holt, Smith,
    1979, and Gelman, Little, "Poststratification into Many Categories Using Hierarchical Logistic Regression", 1997.
    """
    n = n_verified.sum()
    shares = n_all / max(n_all.sum(), 1)
    possible = shares > 0
    expected = n * shares[possible]
    chi2 = ((n_verified[possible] - expected) ** 2 / np.maximum(expected, np.finfo(float).tiny)).sum()
    ratio = chi2 / max(possible.sum() - 1, 1)
    if ratio <= 1:
        return np.ones(len(n_all))
    K = max(n - ratio, 0) / (ratio - 1)
    drawn = n_verified + K * shares
    return np.divide((n + K) * shares, drawn, out=np.ones(len(n_all)), where=drawn > 0)


def weights_of_draw(drawn: NDArray | None, noisy: NDArray, label_weights: NDArray) -> NDArray[np.float64]:
    """Weights of samples, with mean 1, by the probabilities of their draw; if these are unknown, by given label.

    `label_weights` are those of the given labels. A sample whose given label is missing (-1) has weight 1.
    """
    if drawn is not None:
        return 1 / drawn / (1 / drawn).mean()
    has_label = noisy >= 0
    weights = np.ones(len(noisy))
    each = label_weights[noisy[has_label]]
    weights[has_label] = each / each.mean() if each.any() else 1.0
    return weights


def relative_probabilities(
    probability: ArrayLike | None, is_verified: NDArray[np.bool_], n_others: int = 0
) -> NDArray | None:
    """Probabilities with which clean samples were drawn, relative to random sampling; None if all were random.

    `probability` is missing for samples drawn at random, and ignored for unverified ones. `n_others` further clean
    samples come last.
    """
    if probability is None:
        return None
    drawn = as_floats(probability, "verified_probability")
    if drawn.shape != is_verified.shape:
        raise ValueError(f"verified_probability has shape {drawn.shape}; pass a number for each sample.")
    drawn = np.append(np.where(np.isnan(drawn), 1.0, drawn)[is_verified], np.ones(n_others))
    if not ((drawn > 0) & np.isfinite(drawn)).all():
        raise ValueError(f"verified_probability is {drawn.min():g} to {drawn.max():g}; pass finite numbers above 0.")
    return None if (drawn == 1).all() else drawn


def relative_weights(sample_weight: ArrayLike, is_verified: NDArray[np.bool_], n_others: int) -> NDArray[np.float64]:
    """Weights relative to the mean of unverified samples, without those of weight 0; 1 for `n_others` that follow."""
    from sklearn.utils.validation import _check_sample_weight

    rows = np.empty((len(is_verified), 1))
    weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    is_noisy = ~is_verified & (weights > 0)
    if is_noisy.any():
        weights = weights / weights[is_noisy].max()  # equal weights become exactly 1
        weights = weights / weights[is_noisy].mean()
    return np.append(weights, np.ones(n_others))
