"""Detection of how verified samples were drawn: at random, by given label, or as suspicious; and their weights."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ._arrays import as_floats

# p-value below which verified samples were not drawn at random
_SURE = 1e-3
# labels with fewer expected verified samples are merged, as usual for a chi-squared test
_FEW = 5.0
# verified samples were chosen as suspicious if the mean share of other samples with a less probable given label is
# below 1/2 by _LOWER, and by _ERRORS standard errors
_ERRORS, _LOWER = 4.0, 0.1


class Draw(NamedTuple):
    """How verified samples were drawn: by given label, as suspicious, or with known probabilities.

    If the draw depends only on features and given labels, and every sample counts once, the likelihood of all labels
    needs no weights (Rubin, "Inference and Missing Data", 1976).
    """

    by_label: bool = False
    by_suspicion: bool = False
    by_probability: bool = False

    @property
    def is_unknown(self) -> bool:
        """Whether clean samples were not drawn at random, with unknown probabilities."""
        return self.by_label or self.by_suspicion


def is_balanced(n_clean: NDArray) -> bool:
    """Whether all classes have the same number of clean samples, at least two."""
    return bool(n_clean[0] > 1 and not np.ptp(n_clean))


def is_drawn_by_label(of_verified: NDArray, of_all: NDArray) -> bool:
    """Whether given labels of verified and of all samples, counted by label, differ (chi-squared test)."""
    n = of_verified.sum()
    expected = n * of_all / max(of_all.sum(), 1)
    few = expected < _FEW
    found, expected = (np.append(counts[~few], counts[few].sum()) for counts in (of_verified, expected))
    found, expected = found[expected > 0], expected[expected > 0]
    if len(expected) < 2:
        return False
    return bool(special.chdtrc(len(expected) - 1, ((found - expected) ** 2 / expected).sum()) < _SURE)


def is_chosen_by_suspicion(of_verified: NDArray, given: NDArray, of_others: NDArray, given_of_others: NDArray) -> bool:
    """Whether given labels of verified samples are less probable than the same labels of other samples.

    A rank-sum test within each given label (Wilcoxon, 1945) on out-of-sample probabilities.
    """
    total, variance = 0.0, 0.0
    for j in np.intersect1d(given, given_of_others):
        mine, others = of_verified[given == j, j], np.sort(of_others[given_of_others == j, j])
        m, n = len(mine), len(others)
        lower = (np.searchsorted(others, mine, side) for side in ("left", "right"))
        total += float((sum(lower) / (2 * n) - 0.5).sum())
        variance += m * (m + n + 1) / (12 * n)
    return total < -max(_ERRORS * variance**0.5, _LOWER * len(given))


def weights_by_given_label(given: NDArray, of_all: NDArray, n_clean: NDArray, by_label: bool | None = None) -> NDArray:
    """Weights, with mean 1, that give verified samples the given-label distribution of all; 1 if drawn at random.

    Samples with the same given label are assumed to be drawn at random. `given` has class indices of verified samples;
    -1 if missing, with weight 1. `of_all` and `n_clean` of shape (c,) are the numbers of all samples by given label and
    of verified samples by class; if the latter are equal, verified samples are stratified by class. `by_label`: whether
    the draw is by given label, if this is known.
    """
    known, weights = given >= 0, np.ones(len(given))
    of_verified = np.bincount(given[known], minlength=len(of_all))
    if by_label is None:
        by_label = not is_balanced(n_clean) and is_drawn_by_label(of_verified, of_all)
    if by_label:
        each = of_all / np.maximum(of_verified, 1)
        weights[known] = each[given[known]] / each[given[known]].mean()
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
