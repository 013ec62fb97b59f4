"""Posterior of the true label given the noisy one: by one T, or fitted to verified pairs that contradict one T."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from ..transition._estimation import finite_log, normalise_rows
from ._rules import EVIDENCE

#: precision of the prior of an entry of M, which then adds about 0.3 to a logit; 4 and 30 perform equally well (design
# half of examples/benchmarks/zoo)
PRECISION = 10.0
# upper bound of the share of wrong true labels; at 0.8, correct ones that contradict rule-based labels seemed wrong
_LARGEST_SHARE = 0.3
# smaller entries of T are raised to this share of a uniform one
_SMALLEST_RATE = 0.01


# ---------------------------------------------------------------------------- models of the noisy label of a sample
def floored(T: NDArray) -> NDArray[np.float64]:
    """T without small entries, whose logarithms would have much weight in a pool."""
    return np.maximum(T, _SMALLEST_RATE / len(T))


class OneT(NamedTuple):
    """One T for all samples."""

    transition_matrix: NDArray[np.float64]

    def posterior(self, proba: NDArray, noisy: NDArray[np.intp]) -> NDArray[np.float64]:
        """P(true | x, label) by Bayes' rule, shape (n, c); P(true | x) if the label is impossible."""
        return normalise_rows(proba * self.transition_matrix.T[noisy], proba)

    def of_classes(self, c: int) -> "OneT":
        """Channel of the first true classes."""
        return OneT(self.transition_matrix[:c])


class LogLinear(NamedTuple):
    """Posterior of the true label, ``P(i | x, j) ~ p_i^a T[i, j]^b exp(M[i, j])``.

    ``offsets[j, i]`` is M[i, j], and `powers` has a and b; log T is finite.
    """

    log_T: NDArray[np.float64]
    powers: NDArray[np.float64]
    offsets: NDArray[np.float64]

    def posterior(self, proba: NDArray, noisy: NDArray[np.intp]) -> NDArray[np.float64]:
        """P(true | x, label), shape (n, c)."""
        return special.softmax(self.factors(proba, noisy) @ self.powers + self.offsets[noisy], axis=1)

    def of_classes(self, c: int) -> "LogLinear":
        """Channel of the first true classes."""
        return LogLinear(self.log_T[:c], self.powers, self.offsets[:, :c])

    def factors(self, proba: NDArray, noisy: NDArray) -> NDArray[np.float64]:
        """Logarithms of probabilities and of T, which the powers multiply; shape (n, c, 2)."""
        return np.stack([finite_log(proba), self.log_T.T[noisy]], axis=-1)


Channel = OneT | LogLinear


# ---------------------------------------------------------------------------- two explanations of pairs
class PairEstimate(NamedTuple):
    """T from a posterior that is fitted to verified pairs.

    `counts` are expected numbers of samples of each true (i) and noisy (j) label. `log_evidence` is the log of the
    Bayes factor against the posterior under one T.
    """

    channel: LogLinear
    transition_matrix: NDArray[np.float64]
    counts: NDArray[np.float64]
    log_evidence: float


def fit_pair_posterior(
    proba: NDArray,
    y_noisy: NDArray,
    T: NDArray,
    pairs: tuple[NDArray, NDArray, NDArray],
    counts: NDArray,
    log_prior_ratio: NDArray | float = 0.0,
    effect: float = 1.0,
) -> PairEstimate | None:
    r"""Estimate T from a posterior fitted to verified pairs, if these contradict one T for all samples.

    Under one T, a noisy label is equally informative for every sample. But people, rules and models err more often on
    hard samples, on which the classifier errs too. The posterior of the true label is fitted to the pairs by maximum a
    posteriori::

        P(i | x, j) ~ proba[i]^a T[i, j]^b exp(M[i, j])

    with unit normal priors of log a and log b, and a normal prior of M. T is then the mean of these posteriors over
    *all* noisy samples, as in a step of expectation-maximisation, with the pairs as counts. Under one T, a = b = 1 and
    M = 0. Return None unless the log of the Bayes factor against one T, by Laplace's method, is above 3.

    Probabilities are calibrated and out-of-sample. `pairs` are those of the verified samples, with their true and noisy
    labels; `counts` of shape (c, c) include pairs without probabilities. `log_prior_ratio` compares the class priors of
    the pairs and the noisy samples. The log-likelihood of dependent pairs is divided by their design effect.

    References
    ----------
    Genest, Zidek, "Combining Probability Distributions: A Critique and an Annotated Bibliography", 1986 (logarithmic
    pools). Kass, Raftery, "Bayes Factors", 1995.
    """
    of_pairs, gain = fit_channel(*pairs, T, log_prior_ratio, effect)
    proba_pairs, _, noisy_of_pairs = pairs
    evidence = gain - _log_det(of_pairs, proba_pairs, noisy_of_pairs, effect) / 2
    # the pairs also helped to calibrate the probabilities, so this evidence is not fully out-of-sample; the design half
    # of examples/benchmarks/zoo has no false alarm
    if evidence <= EVIDENCE:
        return None
    channel = of_pairs._replace(offsets=of_pairs.offsets - log_prior_ratio)
    posterior = channel.posterior(proba, y_noisy)
    counts = counts + np.stack([posterior[y_noisy == j].sum(axis=0) for j in range(len(T))], axis=1)
    # a class without samples keeps its row of T
    return PairEstimate(channel, normalise_rows(counts + T), counts, float(evidence))


def wrong_true_labels(
    proba: NDArray, y: NDArray, noisy: NDArray, T: NDArray, log_prior_ratio: NDArray | float = 0.0, effect: float = 1.0
) -> tuple[float, NDArray[np.float64]]:
    """Log-evidence that some true labels are wrong at random, under one T, and the probability of each to be wrong.

    ``P(y | x, j) = (1 - e) q_y + e / c``, with q the posterior under one T, and e estimated by maximum likelihood. The
    log-evidence against e = 0 is by Schwarz's criterion.
    """
    c = len(T)
    rows = np.arange(len(y))
    right = special.softmax(finite_log(proba) + finite_log(T.T[noisy]) + log_prior_ratio, axis=1)[rows, y]

    def loss(e: float) -> float:
        return float(-finite_log((1 - e) * right + e / c).sum())

    best: Any = optimize.minimize_scalar(loss, bounds=(0.0, _LARGEST_SHARE), method="bounded")
    wrong = best.x * (1 - 1 / c) / c  # a random label may be correct
    evidence = (loss(0.0) - best.fun) / effect - np.log(max(len(y) / effect, 1)) / 2
    return float(evidence), wrong / ((1 - best.x) * right + best.x / c)


def fit_channel(
    proba: NDArray, y: NDArray, noisy: NDArray, T: NDArray, log_prior_ratio: NDArray | float = 0.0, effect: float = 1.0
) -> tuple[LogLinear, float]:
    """Posterior fitted to the pairs, whose log-likelihood is divided by `effect`, and the gain over one T."""
    c = len(T)
    rows = np.arange(len(y))
    start = LogLinear(np.log(floored(T)), np.ones(2), np.zeros((c, c)))  # one T, except for small entries
    factors = start.factors(proba, noisy)

    def loss(x: NDArray) -> tuple[float, NDArray]:
        powers = np.exp(x[:2])
        offsets = x[2:].reshape(c, c)
        log_q = special.log_softmax(factors @ powers + offsets[noisy] + log_prior_ratio, axis=1)
        residual = np.exp(log_q) / effect
        of_offsets = PRECISION * offsets
        residual[rows, y] -= 1 / effect
        np.add.at(of_offsets, noisy, residual)
        value = (x[:2] @ x[:2] + PRECISION * (offsets**2).sum()) / 2 - log_q[rows, y].sum() / effect
        of_powers = powers * np.einsum("nc,ncp->p", residual, factors) + x[:2]
        return value, np.concatenate([of_powers, of_offsets.ravel()])

    at_one = np.zeros(2 + c * c)
    best: Any = optimize.minimize(loss, at_one, jac=True, method="L-BFGS-B")
    fitted = start._replace(powers=np.exp(best.x[:2]), offsets=best.x[2:].reshape(c, c) + log_prior_ratio)
    return fitted, float(loss(at_one)[0] - best.fun)


# Columns of M share no pairs, so the expected information (with the priors) is an arrow matrix: a block for each column
# of M, and two rows for the powers.
def _log_det(posterior: LogLinear, proba: NDArray, noisy: NDArray, effect: float) -> float:
    """Log-determinant of the information relative to the prior; slopes are derivatives by the logs of the powers.

    The block of a column is a diagonal minus a low-rank product, inverted by Woodbury's identity.
    """
    log_det = 0.0
    of_powers = np.eye(2)
    for j in np.unique(noisy):
        mine = noisy == j
        slopes = posterior.factors(proba[mine], noisy[mine]) * posterior.powers
        q = special.softmax(slopes.sum(axis=-1) + posterior.offsets[j], axis=1)
        mean = np.einsum("nc,ncp->np", q, slopes)
        variance = np.einsum("nc,ncp,ncr->pr", q, slopes, slopes) - mean.T @ mean
        # covariance of the one-hot true label and the slopes
        cross = (np.einsum("nc,ncp->cp", q, slopes) - q.T @ mean) / effect
        diagonal = q.sum(axis=0) / effect + PRECISION
        root: Any = np.linalg.qr(q, mode="r") / effect**0.5  # root.T @ root is q.T @ q / effect
        inner = np.eye(len(root)) - (root / diagonal) @ root.T
        log_det += np.log(diagonal / PRECISION).sum() + np.linalg.slogdet(inner)[1]
        scaled = cross / diagonal[:, None]
        along = root @ scaled
        of_powers += variance / effect
        of_powers -= cross.T @ scaled + along.T @ np.linalg.solve(inner, along)
    return float(log_det + np.linalg.slogdet(of_powers)[1])
