"""Shrinkage of T towards a prior, whose strength is estimated by empirical Bayes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, zeta

from ..labels._arrays import as_array
from ..transition._checks import check_transition_matrix
from ..transition._estimation import TINY, finite_log, normalise_rows

# candidate pseudo-counts per class, a tenth of a decade apart, since the maximum of the evidence is flat
_PRIOR_STRENGTHS = np.geomspace(0.1, 1e6, 71)
# first try every seventh strength, then the neighbours of the best
_STRIDE = 7

Prior = str | ArrayLike | None


def fitted_prior(prior: Prior, counts: NDArray) -> tuple[NDArray, float, float]:
    """Fit the prior matrix to counts; return it, its strength in pseudo-counts per class, and the log-evidence.

    The strength is 0 if most wrong labels are at entries with less than one pseudo-count: such a Dirichlet distribution
    has its modes at 0 and 1, so that the rows of T differ from the matrix, and must not be shrunk towards it.
    """
    given: Any = prior
    groups = [] if np.ndim(given) == 2 else _groups(given, counts)
    M = _rates(groups, counts) if groups else np.asarray(given, dtype=np.float64)
    evidence = Evidence(counts, M, groups)
    if not evidence.entries:  # the prior excludes all labels
        return M, 0.0, 0.0
    _, best = evidence.highest(_PRIOR_STRENGTHS[::_STRIDE])
    i = int(np.searchsorted(_PRIOR_STRENGTHS, best))
    highest, best = evidence.highest(_PRIOR_STRENGTHS[max(0, i - _STRIDE + 1) : i + _STRIDE])
    return M, 0.0 if best < least_strength(M) else best, highest


def shrunk_to_symmetric(T: NDArray, proba: NDArray, y: NDArray) -> NDArray[np.float64]:
    """Shrink T, whose rows are means of `proba` over the samples of each class, towards symmetric noise.

    A mean of n samples has the weight ``b / (b + v / n)``, with b the variance of the rows of T around symmetric noise
    of the mean rate, and v the variance of samples, both by the method of moments (Morris, "Parametric Empirical Bayes
    Inference", JASA 1983). The variance v is also taken around symmetric noise: this is larger than the variance within
    classes, which few samples estimate poorly. T becomes symmetric with one sample of each class, and is unchanged with
    many. The row of a class without samples is unchanged.
    """
    n = np.bincount(y, minlength=len(T))
    seen = n > 0
    correct = T.diagonal()[seen].mean()
    M = np.full(T.shape, (1 - correct) / (len(T) - 1))
    np.fill_diagonal(M, correct)
    single = ((proba - M[y]) ** 2).sum() / len(y)
    between = ((T - M)[seen] ** 2).sum(axis=1).mean() - single * (1 / n[seen]).mean()
    weight = between / (between + single / np.maximum(n, 1)) if between > 0 else np.zeros(len(T))
    return np.where(seen[:, None], M + weight[:, None] * (T - M), T)


def least_strength(M: NDArray) -> float:
    """Smallest strength at which half of the wrong labels are at entries with at least one pseudo-count."""
    rates = np.sort(M[~np.eye(len(M), dtype=bool)])[::-1]
    return float(1 / rates[np.searchsorted(np.cumsum(rates), rates.sum() / 2)]) if rates.any() else 0.0


def with_other_labels(prior: Prior, c: int, n_labels: int) -> Prior:
    """Extend the prior of c classes by labels that are not classes, as a separate superclass."""
    if prior is None or n_labels == c:
        return prior
    if np.ndim(prior) == 2:
        raise ValueError("prior is a matrix, but some labels are not classes; pass 'symmetric', superclasses or None.")
    groups = np.zeros(c, dtype=int) if isinstance(prior, str) else np.unique(np.asarray(prior), return_inverse=True)[1]
    return np.append(groups, np.full(n_labels - c, -1))


def _groups(prior: Prior, counts: NDArray) -> list[NDArray[np.bool_]]:
    """Groups of entries that share a rate: correct labels, and wrong labels within and outside of the superclass."""
    own = np.eye(len(counts), dtype=bool)
    given = np.zeros(len(counts)) if isinstance(prior, str) else np.asarray(prior)
    alike = given[:, None] == given
    return [group for group in (own, alike & ~own, ~alike) if counts[group].sum() > 0]


def _rates(groups: list[NDArray[np.bool_]], counts: NDArray) -> NDArray[np.float64]:
    """Matrix with the rate of each group in the counts; correct labels have the remaining probability of their row.

    The rate of a group is estimated from the rows that have such entries: a class that is alone in its superclass has
    no information about wrong labels within one.
    """
    own = np.eye(len(counts), dtype=bool)
    M = np.zeros(counts.shape)
    for group in groups:
        n_entries = group.sum(axis=1, keepdims=True)
        M += group * (counts[group].sum() / counts[n_entries[:, 0] > 0].sum()) / np.maximum(n_entries, 1)
    if (counts[own] > 0).any():
        M[own] = np.maximum(1 - np.where(own, 0, M).sum(axis=1), TINY)
    return normalise_rows(M, own.astype(np.float64))


class Evidence:
    """Log-evidence of counts under Dirichlet(a M), relative to the maximum log-likelihood, as a function of a.

    Rates of M that were estimated from the counts are integrated out too, by Laplace's method. `groups` are masks of
    entries that share such a rate.
    """

    def __init__(self, counts: NDArray, M: NDArray, groups: list[NDArray[np.bool_]]) -> None:
        counts = np.where(M > 0, counts, 0.0)  # ignore entries that the prior excludes
        seen = counts > 0
        self.of_rows = counts.sum(axis=1)
        self.maximum = float((counts[seen] * finite_log(normalise_rows(counts, M)[seen])).sum())
        self.rates = np.array([M[group].sum() for group in groups])
        within = [group & seen for group in groups] or [seen]
        self.entries = [(M[inside], counts[inside]) for inside in within if inside.any()]
        # zeta is slow, and the entries of a group share few rates
        self.distinct = [np.unique(of_group, return_inverse=True) for of_group, _ in self.entries]

    def highest(self, strengths: NDArray) -> tuple[float, float]:
        """Highest log-evidence, and its strength; the information is computed only where it can matter."""
        least = np.log((self.rates**2).sum()) if len(self.rates) else 0.0
        best = -np.inf, 0.0
        for given_rates, a in sorted(((self._given_rates(a), a) for a in strengths.tolist()), reverse=True):
            if given_rates - least / 2 < best[0]:
                break
            best = max(best, (given_rates - self._log_information(a) / 2, a))
        return best

    def _given_rates(self, a: float) -> float:
        """Log-evidence of a strength, if the rates were not estimated."""
        of_rows = gammaln(a) - gammaln(a + self.of_rows)
        of_groups = [(gammaln(a * M + counts) - gammaln(a * M)).sum() for M, counts in self.entries]
        return float(of_rows.sum() + sum(of_groups) - self.maximum)

    def _log_information(self, a: float) -> float:
        """Log-determinant of the information about the rates of the groups, which sum to 1.

        The information about the logarithm of a rate is at least that of one sample.
        """
        if not len(self.rates):
            return 0.0
        of_log_rate = []
        for (M, counts), (rates, places) in zip(self.entries, self.distinct, strict=True):
            prior = np.maximum(a * M, TINY)
            before = zeta(2.0, np.maximum(a * rates, TINY))[places]
            of_log_rate.append((prior**2 * (before - zeta(2.0, prior + counts))).sum())
        per_sample = np.maximum(of_log_rate, 1.0)
        return float(np.log(per_sample).sum() + np.log((self.rates**2 / per_sample).sum()))


def check_prior(prior: Prior, c: int) -> None:
    """Raise an error for a prior that `em_transition_matrix` does not accept."""
    if isinstance(prior, str) and prior != "symmetric":
        raise ValueError(f'prior={prior!r}; pass "symmetric", superclasses of shape ({c},), a matrix, or None.')
    if prior is None or isinstance(prior, str):
        return
    given = as_array(prior, "prior")
    if given.ndim == 2:
        check_transition_matrix(given, c, "prior")
    elif given.shape != (c,):
        raise ValueError(f"prior has shape {given.shape}; pass shape ({c},), one superclass per class.")
    elif not np.equal(given.astype(object), given.astype(object)).all():
        raise ValueError("prior has NaN; pass a superclass for each class.")
