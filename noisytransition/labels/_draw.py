"""Weights of verified samples that were not drawn at random, and a test of a draw by suspicion."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import as_floats
from ._groups import design_effect

# verified samples were chosen as suspicious if the mean share of other samples with a less probable given label is
# below 1/2 by _LOWER, and by _ERRORS standard errors
_ERRORS, _LOWER = 4.0, 0.1


def is_balanced(n_clean: NDArray) -> bool:
    """Whether all classes have the same number of clean samples, at least two."""
    return bool(n_clean[0] > 1 and not np.ptp(n_clean))


def is_chosen_by_suspicion(
    of_verified: NDArray,
    given: NDArray,
    of_others: NDArray,
    given_of_others: NDArray,
    groups: NDArray | None = None,
) -> bool:
    """Whether given labels of verified samples are less probable than the same labels of other samples.

    A rank-sum test within each given label (Wilcoxon, 1945) on out-of-sample probabilities. `groups` are those of
    dependent verified samples.
    """
    score = np.zeros(len(given))
    variance = 0.0
    for j in np.intersect1d(given, given_of_others):
        mine = of_verified[given == j, j]
        others = np.sort(of_others[given_of_others == j, j])
        n = len(others)
        lower = (np.searchsorted(others, mine, side) for side in ("left", "right"))
        score[given == j] = sum(lower) / (2 * n) - 0.5
        variance += len(mine) * (len(mine) + n + 1) / (12 * n)
    variance *= design_effect(score[:, None], groups)
    return bool(score.sum() < -max(_ERRORS * variance**0.5, _LOWER * len(given)))


def weights_of_labels(of_verified: NDArray, of_all: NDArray) -> NDArray[np.float64]:
    r"""Weight of each given label with which verified samples have the given labels of all (post-stratification).

    With n_j of n verified samples and a share s_j of all samples, a verified sample has label j with a probability that
    has a Dirichlet prior ``K s``. The weight is s_j divided by its posterior mean ``(n_j + K s_j) / (n + K)``: near 1
    for labels with few samples, and 1 for all labels if the counts differ no more than those of a draw at random.
    K is estimated by moments: the chi-squared statistic has the mean ``(c - 1) (n + K) / (1 + K)``. See Holt, Smith,
    1979, and Gelman, Little, "Poststratification into Many Categories Using Hierarchical Logistic Regression", 1997.
    """
    n = of_verified.sum()
    shares = of_all / max(of_all.sum(), 1)
    possible = shares > 0
    expected = n * shares[possible]
    chi2 = ((of_verified[possible] - expected) ** 2 / np.maximum(expected, np.finfo(float).tiny)).sum()
    ratio = chi2 / max(possible.sum() - 1, 1)
    if ratio <= 1:
        return np.ones(len(of_all))
    K = max(n - ratio, 0) / (ratio - 1)
    drawn = of_verified + K * shares
    return np.divide((n + K) * shares, drawn, out=np.ones(len(of_all)), where=drawn > 0)


def weights_by_given_label(given: NDArray, of_label: NDArray) -> NDArray[np.float64]:
    """Weights of samples, with mean 1, from those of their given labels; 1 if the given label is missing (-1)."""
    known = given >= 0
    each = of_label[given[known]]
    weights = np.ones(len(given))
    weights[known] = each / each.mean() if each.any() else 1.0
    return weights


def inverse_probability_weights(drawn: NDArray) -> NDArray[np.float64]:
    """Weights, with mean 1, of samples drawn with these probabilities."""
    return 1 / drawn / (1 / drawn).mean()


def relative_probabilities(
    given: ArrayLike | None, is_verified: NDArray[np.bool_], n_others: int = 0
) -> NDArray | None:
    """Probabilities with which clean samples were drawn, relative to random sampling; None if all were random.

    `given` is missing for samples drawn at random, and ignored for unverified ones. `n_others` further clean samples
    come last.
    """
    if given is None:
        return None
    drawn = as_floats(given, "verified_probability")
    if drawn.shape != is_verified.shape:
        raise ValueError(
            f"verified_probability has shape {drawn.shape} for {len(is_verified)} samples; pass one per sample, "
            "missing if it was drawn at random or not verified."
        )
    drawn = np.append(np.where(np.isnan(drawn), 1.0, drawn)[is_verified], np.ones(n_others))
    if not ((drawn > 0) & np.isfinite(drawn)).all():
        raise ValueError(
            f"verified_probability is between {drawn.min():g} and {drawn.max():g} for verified samples; pass finite "
            "numbers above 0, since these samples were drawn."
        )
    return None if (drawn == 1).all() else drawn
