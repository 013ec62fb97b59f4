"""Two explanations of verified pairs that contradict one T: T differs between samples, or true labels are wrong."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from ._channels import LogLinear
from ._estimation import POSITIVE_EVIDENCE, TINY, finite_log, normalise_rows
from ._uncertainty import MOST_CLASSES, TransitionUncertainty

# precision of the prior of an entry of M, which then adds about 0.3 to a logit; 4 and 30 perform equally well (design
# half of examples/benchmarks/zoo)
_PRECISION = 10.0
# bounds of the logarithms of both powers
_MOST_LOG_POWER = 3.0
# smaller entries of T are raised to this, or to 0.1 / c if that is less
_SMALLEST_RATE = 1e-3

# upper bound of the share of wrong true labels; at 0.8, correct ones that contradict rule-based labels seemed wrong
_LARGEST_SHARE = 0.3


class PairEstimate(NamedTuple):
    """T from a posterior that is fitted to verified pairs.

    `std` are standard errors without the error of the one T (None for more than 50 classes), `counts` expected numbers
    of samples of each true (i) and noisy (j) label. The `channel` has the powers of the classifier's probabilities and
    of T, (1, 1) if one T holds. `log_evidence` is the log of the Bayes factor against the posterior under one T.
    """

    transition_matrix: NDArray[np.float64]
    std: NDArray[np.float64] | None
    counts: NDArray[np.float64]
    channel: LogLinear
    log_evidence: float

    def error_bars(self, std: NDArray | float = 0.0) -> TransitionUncertainty | None:
        """Error bars that include (approximately) `std`, the standard errors of the one T, times its power."""
        if self.std is None:
            return None
        T, both = self.transition_matrix, np.sqrt(self.std**2 + (self.channel.powers[1] * std) ** 2 + TINY)
        return TransitionUncertainty(T, T, both, both)


def _of_rows(channel: LogLinear, proba: NDArray, j: int) -> tuple[NDArray, NDArray]:
    """Posterior of samples with noisy label j, and derivatives of its logarithm by the logarithms of the powers."""
    slopes = channel.factors(proba, np.full(len(proba), j)) * channel.powers
    return special.softmax(slopes.sum(axis=-1) + channel.offsets[j], axis=1), slopes


def _covariances(channel: LogLinear, proba: NDArray, j: int) -> tuple[NDArray, NDArray]:
    """Covariances of the one-hot true label with itself and with the slopes, summed over noisy label j."""
    q, slopes = _of_rows(channel, proba, j)
    return np.diag(q.sum(axis=0)) - q.T @ q, _with_slopes(q, slopes)


def _with_slopes(q: NDArray, slopes: NDArray) -> NDArray[np.float64]:
    """Covariance of the one-hot true label, with posterior q, and the slopes; summed over samples, shape (c, 2)."""
    return np.einsum("nc,ncp->cp", q, slopes) - q.T @ np.einsum("nc,ncp->np", q, slopes)


def fit_pair_posterior(
    proba: NDArray,
    y_noisy: NDArray,
    T: NDArray,
    *,
    proba_pairs: NDArray,
    y_pairs: NDArray,
    y_noisy_pairs: NDArray,
    counts: NDArray,
    offset: NDArray | float = 0.0,
) -> PairEstimate | None:
    r"""Estimate T from a posterior fitted to verified pairs, if these contradict one T for all samples.

    Under one T, a noisy label is equally informative for every sample. But people, rules and models err more often on
    hard samples, on which the classifier errs too. The posterior of the true label is fitted to the pairs by maximum a
    posteriori::

        P(i | x, j) ~ proba[i]^a T[i, j]^b exp(M[i, j])

    with unit normal priors of log a and log b, and a normal prior of M. T is then the mean of these posteriors over
    *all* noisy samples, as in a step of expectation-maximisation, with the pairs as counts. Under one T, a = b = 1 and
    M = 0. Return None unless the log of the Bayes factor against one T, by Laplace's method, is above 1.

    The standard errors combine the errors of a, b and M, by the delta method, and the sampling error.

    Parameters
    ----------
    proba, proba_pairs : ndarray of shape (n, c) and (n_pairs, c)
        Calibrated, out-of-sample probabilities of the true label.
    T : ndarray of shape (c, c)
        Maximum-likelihood T.
    counts : ndarray of shape (c, c)
        Counts of all pairs, including pairs without such probabilities.
    offset : ndarray of shape (c,) or float, default=0.0
        Log ratio of the class priors of the pairs and the noisy samples.

    References
    ----------
    Genest, Zidek, "Combining Probability Distributions: A Critique and an Annotated Bibliography", 1986 (logarithmic
    pools). Kass, Raftery, "Bayes Factors", 1995.
    """
    of_pairs, gain = _fitted(proba_pairs, y_pairs, y_noisy_pairs, T, offset)
    posterior = of_pairs._replace(offsets=of_pairs.offsets - offset)
    pairs, rows = ([p[y == j] for j in range(len(T))] for p, y in ((proba_pairs, y_noisy_pairs), (proba, y_noisy)))
    log_det, information = _information(of_pairs, pairs)
    evidence = gain - log_det / 2
    # the pairs also helped to calibrate the probabilities, so this evidence is not fully out-of-sample; the design half
    # of examples/benchmarks/zoo has no false alarm
    if evidence <= POSITIVE_EVIDENCE:
        return None
    counts = counts + np.stack([_of_rows(posterior, p, j)[0].sum(axis=0) for j, p in enumerate(rows)], axis=1)
    total = counts + T  # a class without samples keeps its row of T
    std = None
    if len(T) <= MOST_CLASSES:
        std = _standard_errors(total, (of_pairs, posterior), (pairs, rows), information)
    return PairEstimate(normalise_rows(total), std, counts, posterior, float(evidence))


def wrong_true_labels(
    proba: NDArray, y: NDArray, noisy: NDArray, T: NDArray, offset: NDArray | float = 0.0
) -> tuple[float, NDArray[np.float64]]:
    """Log-evidence that some true labels are wrong at random, under one T, and the probability of each to be wrong.

    ``P(y | x, j) = (1 - e) q_y + e / c``, with q the posterior under one T, and e estimated by maximum likelihood. The
    log-evidence against e = 0 is by Schwarz's criterion.
    """
    c, rows = len(T), np.arange(len(y))
    right = special.softmax(finite_log(proba) + finite_log(T.T[noisy]) + offset, axis=1)[rows, y]

    def loss(e: float) -> float:
        return float(-finite_log((1 - e) * right + e / c).sum())

    best: Any = optimize.minimize_scalar(loss, bounds=(0.0, _LARGEST_SHARE), method="bounded")
    wrong = best.x * (1 - 1 / c) / c  # a random label may be correct
    evidence = loss(0.0) - best.fun - np.log(max(len(y), 1)) / 2
    return float(evidence), wrong / ((1 - best.x) * right + best.x / c)


def _fitted(proba: NDArray, y: NDArray, noisy: NDArray, T: NDArray, offset: NDArray | float) -> tuple[LogLinear, float]:
    """Posterior fitted to the pairs, and the gain in log-posterior over one T."""
    c, rows = len(T), np.arange(len(y))
    start = LogLinear(np.log(np.maximum(T, min(_SMALLEST_RATE, 0.1 / c))), np.ones(2), np.zeros((c, c)))
    factors = start.factors(proba, noisy)

    def loss(x: NDArray) -> tuple[float, NDArray]:
        powers, offsets = np.exp(x[:2]), x[2:].reshape(c, c)
        log_q = special.log_softmax(factors @ powers + offsets[noisy] + offset, axis=1)
        residual, of_offsets = np.exp(log_q), _PRECISION * offsets
        residual[rows, y] -= 1
        np.add.at(of_offsets, noisy, residual)
        value = (x[:2] @ x[:2] + _PRECISION * (offsets**2).sum()) / 2 - log_q[rows, y].sum()
        of_powers = powers * np.einsum("nc,ncp->p", residual, factors) + x[:2]
        return value, np.concatenate([of_powers, of_offsets.ravel()])

    at_one, most = np.zeros(2 + c * c), np.full(2 + c * c, np.inf)
    most[:2] = _MOST_LOG_POWER
    bounds = optimize.Bounds(-most, most)
    best: Any = optimize.minimize(loss, at_one, jac=True, method="L-BFGS-B", bounds=bounds)
    fitted = start._replace(powers=np.exp(best.x[:2]), offsets=best.x[2:].reshape(c, c) + offset)
    return fitted, float(loss(at_one)[0] - best.fun)


# Columns of M share no pairs, so the expected information (with the priors) is an arrow matrix: a block for each column
# of M, and two rows for the powers.
def _information(posterior: LogLinear, pairs: list[NDArray]) -> tuple[float, NDArray]:
    """Log-determinant of the information relative to the prior, and the marginal information about the powers.

    The block of a column is a diagonal minus a low-rank product, inverted by Woodbury's identity.
    """
    log_det, of_powers = 0.0, np.eye(2)
    for j, proba in enumerate(pairs):
        if not len(proba):
            continue
        q, slopes = _of_rows(posterior, proba, j)
        mean, cross = np.einsum("nc,ncp->np", q, slopes), _with_slopes(q, slopes)
        diagonal = q.sum(axis=0) + _PRECISION
        root: Any = np.linalg.qr(q, mode="r")  # root.T @ root is q.T @ q
        inner = np.eye(len(root)) - (root / diagonal) @ root.T
        log_det += np.log(diagonal / _PRECISION).sum() + np.linalg.slogdet(inner)[1]
        scaled = cross / diagonal[:, None]
        along = root @ scaled
        of_powers += np.einsum("nc,ncp,ncr->pr", q, slopes, slopes) - mean.T @ mean
        of_powers -= cross.T @ scaled + along.T @ np.linalg.solve(inner, along)
    return float(log_det + np.linalg.slogdet(of_powers)[1]), of_powers


def _standard_errors(
    counts: NDArray, posteriors: Sequence[LogLinear], proba: Sequence[list[NDArray]], information: NDArray
) -> NDArray[np.float64]:
    """Standard errors of the normalised counts, from the errors of M and the powers and from sampling.

    `posteriors` and `proba` each hold first the pairs, then the noisy samples.
    """
    c, variance, slopes = len(counts), np.zeros_like(counts), np.zeros((*counts.shape, 2))
    for j in range(c):
        (of_pairs, pairs_cross), (own, cross) = (
            _covariances(q, p[j], j) for q, p in zip(posteriors, proba, strict=True)
        )
        inverse = np.linalg.inv(of_pairs + _PRECISION * np.eye(c))
        variance[:, j] = np.einsum("ik,kl,il->i", own, inverse, own)
        slopes[:, j] = cross - own @ inverse @ pairs_cross
    n = counts.sum(axis=1, keepdims=True)
    T = counts / n
    of_offsets = ((1 - 2 * T) * variance + T**2 * variance.sum(axis=1, keepdims=True)) / n**2
    slopes = (slopes - T[:, :, None] * slopes.sum(axis=1, keepdims=True)) / n[:, :, None]
    of_powers = np.einsum("ijp,pr,ijr->ij", slopes, np.linalg.inv(information), slopes)
    return np.sqrt(of_offsets + of_powers + T * (1 - T) / n)
