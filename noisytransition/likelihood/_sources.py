"""Estimate a transition matrix for each of several sources of labels, and their weights in the posterior."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse, special

from ..labels._arrays import shortened
from ..labels._draw import design_effect
from ..transition._estimation import finite_log, normalise_rows
from ._class_prior import mean_difference
from ._periods import shares_along_time
from ._rules import EVIDENCE, N_FOLDS, WARN_P

# Maximum number of EM steps, and tolerance of T
_MAX_STEPS = 200
_SOURCES_TOLERANCE = 1e-4
# Pseudo-counts per class of the common T, from which the evidence selects
_SOURCE_STRENGTHS = np.geomspace(0.5, 1000, 23)
# Pseudo-counts of each entry of the common T
_SMALLEST_COUNT = 1e-3
# Candidate precisions of the weights around their mean; infinite: one common weight
_PRECISIONS = (np.inf, 100.0, 10.0, 1.0)
# The weight of one source has nearly the prior of the mean
_OF_ONE = 1e6
# Prior precision of the mean weight around 1
_OF_MEAN = 4.0
# Expected verified labels from which the distribution of a source's number is nearly normal (Cochran, 1954)
_EXPECTED = 5


# counts of the labels of each source, and common shares, to shares and log-evidence of each source
Shares = Callable[[NDArray, NDArray], tuple[NDArray[np.float64], NDArray[np.float64]]]


class Dependence(NamedTuple):
    """Test whether sources err independently given the true class: all pairs of sources together, and each pair."""

    correlation: float  # of the errors of two sources in verified samples; 0 without such samples
    pvalue: float  # one-sided, of both tests (Bonferroni)
    pair: NDArray  # names of the two sources, if their own correlation is more certain; else empty


class SourceFit(NamedTuple):
    """Transition matrices and weights of several sources, of shape (n_sources,) if not said."""

    names: NDArray
    matrices: NDArray[np.float64]  # T of each source, shrunk towards the common T: (n_sources, c, d)
    weights: NDArray[np.float64]  # exponents of the likelihoods in the posterior; 1 for independent sources
    log_evidence: NDArray[np.float64]  # log Bayes factor of a separate T against the common T
    n_labels: NDArray[np.intp]
    n_verified: NDArray[np.intp]  # labels in verified samples
    right: NDArray[np.float64]  # share of correct labels
    dependence: Dependence

    def reasons(self) -> dict[str, str]:
        """Entries of `diagnostics_` about the sources."""
        found = {}
        correlation, pvalue, pair = self.dependence
        if pvalue < WARN_P:
            who = " and ".join(map(str, pair)) if len(pair) else "sources"
            fact = f"errors in verified samples have a correlation of {correlation:.2f}"
            weight = f"labels have a mean weight of {self.weights.mean():.2f}"
            found["dependent_sources"] = f"{who} err together: {fact}, and {weight}"
        most = [s for s in np.argsort(-self.log_evidence)[:5] if self.log_evidence[s] > EVIDENCE]
        if most:
            named = ", ".join(f"{self.names[s]!s} ({self.right[s]:.0%} correct)" for s in most)
            found["sources_differ"] = f"T differs between sources, most for {named} (see source_summary)"
        if not self.n_verified.any():
            fact = "the posterior assumes that sources err independently"
            found["sources_not_verified"] = f"no label of a source is verified: {fact}. Verify some to test this"
        return found


def fit_sources(
    proba: NDArray,
    codes: NDArray[np.integer],
    true: NDArray[np.intp],
    names: NDArray,
    n_labels: int,
    *,
    are_periods: bool = False,
    groups: NDArray | None = None,
) -> SourceFit:
    """Estimate T of each source, and the weights that predict held-out verified samples best.

    T of independent sources is estimated by expectation-maximisation (Dawid and Skene, 1979), with P(true | x) in place
    of class priors. If verified samples select weights below 1, T is estimated from the weighted posterior.

    `proba` of shape (n, c) are calibrated, and out-of-fold for verified samples. `codes` of shape (n, n_sources) and
    `true` of shape (n,) are labels, -1 if missing. The first c of the `n_labels` labels are the classes.
    T of periods, which are in the order of time, is smoothed along time. `groups` of shape (n,) are those of dependent
    samples.
    """
    labels = _Labels(proba, codes, n_labels, shares_along_time if are_periods else shrunk_shares)
    c = proba.shape[1]
    matrices, weights, posterior = _weighted(labels, true)
    counts = labels.counts(posterior)
    given = codes >= 0
    right = (np.einsum("sii,si->s", matrices[:, :, :c], counts.sum(axis=2)) + 0.5) / (given.sum(axis=0) + 1)
    one_T = (counts * np.log(_common(counts))).sum(axis=(1, 2))
    return SourceFit(
        names,
        matrices,
        weights,
        log_evidence=labels.shrunk(counts)[1] - one_T,
        n_labels=given.sum(axis=0),
        n_verified=(given & (true >= 0)[:, None]).sum(axis=0),
        right=right,
        dependence=_dependence(codes, true, matrices, names, groups),
    )


def _weighted(labels: "_Labels", true: NDArray[np.intp]) -> tuple[NDArray, NDArray, NDArray]:
    """T of each source, its weight in the posterior, and the posterior. Weights are 1 unless samples are verified."""
    matrices, posterior = labels.independent(true)
    weights = np.ones(len(matrices))
    folds = list(_folds(labels.codes, true))
    pools = [labels.pool(rows, labels.independent(known)[0], true) for rows, known in folds]
    precision = _select_precision(pools) if pools else None
    if precision is None:
        return matrices, weights, posterior
    weights = _merged(pools).best_weights(precision)
    weighted = labels.posterior(matrices, weights, np.full_like(true, -1))
    pools = [labels.pool(rows, labels.matrices(_certain(weighted, known)), true) for rows, known in folds]
    posterior = _certain(weighted, true)
    return labels.matrices(posterior), _merged(pools).best_weights(precision), posterior


def log_likelihood(codes: NDArray[np.integer], matrices: NDArray, weights: NDArray) -> NDArray[np.float64]:
    """Sum over sources of ``weights[s] log T_s[:, label by s]``, of shape (n, c)."""
    return _weighted_logs(_indicators(codes, matrices.shape[2]), matrices, weights)


def _weighted_logs(indicators: sparse.csr_array, matrices: NDArray, weights: NDArray) -> NDArray[np.float64]:
    of_labels = (finite_log(matrices) * weights[:, None, None]).transpose(0, 2, 1)
    return indicators @ of_labels.reshape(-1, of_labels.shape[2])


# ---------------------------------------------------------------------------- matrices
class _Labels:
    """Labels by all sources, and calibrated probabilities of the same samples."""

    def __init__(self, proba: NDArray, codes: NDArray[np.integer], n_labels: int, shares: Shares) -> None:
        self.log_proba = finite_log(proba)
        self.codes = codes
        self.n_labels = n_labels
        self.shares = shares
        self.indicators = _indicators(codes, n_labels)

    def independent(self, true: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Estimate T of independent sources and P(true | x, labels), starting from votes."""
        c = self.log_proba.shape[1]
        n_sources = self.codes.shape[1]
        votes = self.indicators @ np.tile(np.eye(self.n_labels, c), (n_sources, 1))
        posterior = _certain(special.softmax(self.log_proba + np.log(0.5 + votes), axis=1), true)
        matrices = self.matrices(posterior)
        for _ in range(_MAX_STEPS):
            posterior = self.posterior(matrices, np.ones(n_sources), true)
            last = matrices
            matrices = self.matrices(posterior)
            if np.abs(matrices - last).max() < _SOURCES_TOLERANCE:
                break
        return matrices, posterior

    def posterior(self, matrices: NDArray, weights: NDArray, true: NDArray[np.intp]) -> NDArray[np.float64]:
        """P(true | x, labels); 0 or 1 for verified samples."""
        log_labels = _weighted_logs(self.indicators, matrices, weights)
        return _certain(special.softmax(self.log_proba + log_labels, axis=1), true)

    def counts(self, posterior: NDArray) -> NDArray[np.float64]:
        """Expected number of labels of each source, true class and label, of shape (n_sources, c, d)."""
        counts = (self.indicators.T @ posterior).reshape(-1, self.n_labels, posterior.shape[1])
        return counts.transpose(0, 2, 1)

    def matrices(self, posterior: NDArray) -> NDArray[np.float64]:
        """T of each source, shrunk towards the common T, or smoothed along time."""
        return self.shrunk(self.counts(posterior))[0]

    def shrunk(self, counts: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Shrink T of each source by the evidence; return the matrices and the log-evidence of each source.

        Sources differ more in the share of wrong labels than in the classes of wrong labels, so both are shrunk
        separately.
        """
        n_sources, c, d = counts.shape
        off = ~np.eye(c, d, dtype=bool)
        flips = counts[:, off].reshape(n_sources, c, d - 1)
        wrong = flips.sum(axis=2)
        right_or_wrong = np.stack([counts.sum(axis=2) - wrong, wrong], axis=2)
        (is_right, one), (flip, other) = (self.shares(of, _common(of)) for of in (right_or_wrong, flips))
        matrices = np.empty_like(counts)
        matrices[:, ~off] = is_right[:, :, 0]
        matrices[:, off] = (is_right[:, :, 1:] * flip).reshape(n_sources, -1)
        return matrices, one + other

    def pool(self, rows: NDArray[np.intp], matrices: NDArray, true: NDArray[np.intp]) -> "_Pool":
        """Collect the likelihoods of these verified samples for the choice of weights."""
        codes = self.codes[rows]
        of_labels = np.log(matrices)[np.arange(codes.shape[1]), :, codes]
        log_proba = self.log_proba[rows]
        return _Pool(log_proba, np.where((codes >= 0)[:, :, None], of_labels, 0.0), _certain(log_proba, true[rows]))


def _certain(posterior: NDArray, true: NDArray[np.intp]) -> NDArray[np.float64]:
    """Replace posteriors of verified samples by 0 and 1."""
    return np.where((true >= 0)[:, None], np.eye(posterior.shape[1])[true], posterior)


def _indicators(codes: NDArray[np.integer], n_labels: int) -> sparse.csr_array:
    """One-hot labels: row n has a 1 at ``s * n_labels + j`` for label j by source s."""
    rows, sources = np.nonzero(codes >= 0)
    columns = sources * n_labels + codes[rows, sources]
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(codes), codes.shape[1] * n_labels))


def _common(counts: NDArray) -> NDArray[np.float64]:
    """Estimate T of all sources together."""
    return normalise_rows(counts.sum(axis=0) + _SMALLEST_COUNT)


def shrunk_shares(counts: NDArray, common: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shrink the rows of each source towards the common rows; return them and the log-evidence of each source."""
    strength = max(_SOURCE_STRENGTHS, key=lambda a: _log_evidence(counts, a * common).sum())
    total = counts + strength * common
    return total / total.sum(axis=2, keepdims=True), _log_evidence(counts, strength * common)


def _log_evidence(counts: NDArray, prior: NDArray) -> NDArray[np.float64]:
    """Dirichlet-multinomial log-likelihood of the counts of each source (Minka, 2000)."""
    of_entries = (special.gammaln(counts + prior) - special.gammaln(prior)).sum(axis=(1, 2))
    n = counts.sum(axis=2)
    a = prior.sum(axis=1)
    return of_entries + (special.gammaln(a) - special.gammaln(n + a)).sum(axis=1)


# ---------------------------------------------------------------------------- sources that err together
def _dependence(
    codes: NDArray[np.integer], true: NDArray[np.intp], matrices: NDArray, names: NDArray, groups: NDArray | None
) -> Dependence:
    """Test the correlation of errors of two sources in the same verified sample, given its true class.

    Of all pairs together, and of each pair whose expected number of common errors makes the sum nearly normal.
    """
    rows = true >= 0
    given = codes[rows] >= 0
    of_true = true[rows]
    group = None if groups is None else groups[rows]
    error = np.where(given, 1 - matrices[:, of_true, of_true].T, 0.0)  # probability, of shape (n_verified, n_sources)
    residual = np.where(given, (codes[rows] != of_true[:, None]) - error, 0.0)
    std = np.sqrt(error * (1 - error))
    common = sparse.triu(sparse.csr_array(error).T @ sparse.csr_array(error), k=1).tocoo()
    pairs = np.column_stack(common.coords)[common.data >= _EXPECTED]
    tests = [Dependence(*_correlation(residual, std, group), names[:0])]
    for pair in pairs:
        correlation, pvalue = _correlation(residual[:, pair], std[:, pair], group)
        tests.append(Dependence(correlation, len(pairs) * pvalue, names[pair]))
    best = min(tests, key=lambda test: test.pvalue)
    return best._replace(pvalue=min(2 * best.pvalue, 1.0))


def _correlation(residual: NDArray, std: NDArray, groups: NDArray | None) -> tuple[float, float]:
    """Correlation of errors of these sources, and its one-sided p-value."""
    products = _products(residual)
    total = float(_products(std).sum())
    if total <= 0:
        return 0.0, 1.0
    error = float((_products(std**2).sum() * design_effect(products[:, None], groups)) ** 0.5)
    found = max(float(products.sum()), 0.0)
    return found / total, float(special.ndtr(-found / error))


def _products(values: NDArray) -> NDArray[np.float64]:
    """Sum of the products of two sources in each sample, over all pairs."""
    return (values.sum(axis=1) ** 2 - (values**2).sum(axis=1)) / 2


def from_other_sources(
    codes: NDArray[np.integer], true: NDArray[np.intp], names: NDArray, weights: NDArray, groups: NDArray | None
) -> dict[str, str]:
    """Reason by name, if verified samples have labels of other sources than the rest; arrays have a row per sample."""
    verified = true >= 0
    given = codes >= 0
    of_verified = np.arange(verified.sum()) if groups is None else groups[verified]
    common = given.mean(axis=0) * len(np.unique(of_verified)) >= _EXPECTED
    if not common.any() or verified.all():
        return {}
    values = given[:, common].astype(np.float64)
    difference, pvalue = mean_difference(values[verified], values[~verified], weights[verified], of_verified)
    if pvalue >= WARN_P:
        return {}
    most = np.abs(difference).argmax()
    usual = values[~verified, most].mean()
    absent = names[common][~values[verified].any(axis=0)]
    none = f" No label of {shortened([str(name) for name in absent])} is verified." if len(absent) else ""
    fact = f"{usual + difference[most]:.0%} of the verified samples have a label of {names[common][most]!s}"
    advice = "T, class shares and accuracies are those of the verified sources; verify some samples of each source"
    return {"from_other_sources": f"{fact}, and {usual:.0%} of the others.{none} {advice}"}


def _folds(codes: NDArray, true: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the verified samples of each fold, and the verified labels of all other folds."""
    verified = np.flatnonzero((true >= 0) & (codes >= 0).any(axis=1))
    for k in range(N_FOLDS if len(verified) >= 2 * N_FOLDS else 0):
        known = true.copy()
        known[verified[k::N_FOLDS]] = -1
        yield verified[k::N_FOLDS], known


def _select_precision(pools: Sequence["_Pool"]) -> float | None:
    """Select the precision of the weights around their mean; None for weights 1 (independent sources).

    Candidates, from simple to complex, are weights 1, one common weight, and separate weights. The simplest candidate
    whose log-loss on held-out verified samples is within one standard error of the best is selected.
    """
    ones = np.ones(pools[0].logs.shape[1])
    losses = [np.concatenate([pool.losses(ones) for pool in pools])]
    for precision in _PRECISIONS:
        others = [_merged([*pools[:k], *pools[k + 1 :]]).best_weights(precision) for k in range(len(pools))]
        losses.append(np.concatenate([pool.losses(weights) for pool, weights in zip(pools, others, strict=True)]))
    best = min(losses, key=np.mean)
    rises = [of_samples - best for of_samples in losses]
    chosen = next(k for k, rise in enumerate(rises) if rise.mean() <= rise.std() / len(rise) ** 0.5)
    return (None, *_PRECISIONS)[chosen]


class _Pool(NamedTuple):
    """Logarithmic opinion pool of verified samples: ``P(true | x, labels) ~ proba prod_s T_s[true, label s]^weight_s``.

    Weights below 1 correct for sources that err together (Genest and Zidek, 1986).
    """

    log_proba: NDArray  # of shape (n, c)
    logs: NDArray  # log-likelihoods of the label of each source, of shape (n, n_sources, c)
    true: NDArray  # 1 at the true class, else 0, of shape (n, c)

    def log_posterior(self, weights: NDArray) -> NDArray[np.float64]:
        return special.log_softmax(self.log_proba + np.einsum("nsc,s->nc", self.logs, weights), axis=1)

    def losses(self, weights: NDArray) -> NDArray[np.float64]:
        """Log-loss of each sample."""
        return -(self.true * self.log_posterior(weights)).sum(axis=1)

    def best_weights(self, precision: float) -> NDArray[np.float64]:
        """Maximise the posterior of non-negative weights: normal around their mean, which is normal around 1."""
        n_sources = self.logs.shape[1]
        if np.isinf(precision):  # one source gives all labels
            together = self._replace(logs=self.logs.sum(axis=1, keepdims=True))
            return together.best_weights(_OF_ONE).repeat(n_sources)

        def loss(weights: NDArray) -> tuple[float, NDArray]:
            log_p = self.log_posterior(weights)
            slope = np.einsum("nsc,nc->s", self.logs, np.exp(log_p) - self.true)
            mean = (precision * weights.sum() + _OF_MEAN) / (precision * n_sources + _OF_MEAN)  # most probable
            pull = precision * (weights - mean)
            return (weights - 1) @ pull / 2 - (self.true * log_p).sum(), slope + pull

        bounds = [(0.0, None)] * n_sources
        best: Any = optimize.minimize(loss, np.ones(n_sources), jac=True, method="L-BFGS-B", bounds=bounds)
        return best.x


def _merged(pools: Sequence[_Pool]) -> _Pool:
    return _Pool(*(np.concatenate(of) for of in zip(*pools, strict=True)))
