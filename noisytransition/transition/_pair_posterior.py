"""T where it differs between rows: by a posterior that is fitted to rows of which both labels are known."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from ._estimation import finite_log, normalise_rows
from ._uncertainty import TransitionUncertainty

# precision of the prior of an entry of M, which then adds about 0.3 to a logit; 4 and 30 are as good (design half of
# examples/benchmarks/zoo)
_PRECISION = 10.0
# bounds of the logarithms of both powers
_MOST_LOG_POWER = 3.0
# a flip of which T has less is not told apart from one that never happens
_SMALLEST_RATE = 1e-3
# log of the Bayes factor above which evidence is "positive" (Kass and Raftery, 1995)
_POSITIVE_EVIDENCE = 1.0


class PairEstimate(NamedTuple):
    """T by the posterior that verified pairs ask for.

    Attributes
    ----------
    transition_matrix : ndarray of shape (c, c)
    std : ndarray of shape (c, c)
        Standard errors, if the one T is known exactly.
    counts : ndarray of shape (c, c)
        Expected numbers of rows of each true (i) and noisy (j) label.
    powers : ndarray of shape (2,)
        Of the classifier's probabilities, and of T; (1, 1) where one T is true for all rows.
    log_evidence : float
        Log of the Bayes factor against the posterior under one T.
    """

    transition_matrix: NDArray[np.float64]
    std: NDArray[np.float64]
    counts: NDArray[np.float64]
    powers: NDArray[np.float64]
    log_evidence: float

    def error_bars(self, std: NDArray | float = 0.0) -> TransitionUncertainty:
        """Error bars, with the standard errors of the one T, which count with its power."""
        T, both = self.transition_matrix, np.sqrt(self.std**2 + (self.powers[1] * std) ** 2)
        return TransitionUncertainty(T, T, both, both)


class _Posterior(NamedTuple):
    """Posterior of the true label, ``P(i | x, j) ~ proba[i]^a T[i, j]^b exp(M[i, j])``."""

    log_T: NDArray
    powers: NDArray
    #: ``M[i, j]`` at ``[j, i]``
    offsets: NDArray

    def factors(self, proba: NDArray, noisy: NDArray) -> NDArray[np.float64]:
        """Logarithms that the powers multiply, shape (n, c, 2)."""
        return np.stack([finite_log(proba), self.log_T.T[noisy]], axis=-1)

    def moments(self, proba: NDArray, j: int) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Of the true labels of rows with noisy label j: sums of their means, and of their covariances.

        Covariances are those of the one-hot label, of it with the log-posterior's slopes in the logarithms of both
        powers, and of these slopes.
        """
        slopes = self.factors(proba, np.full(len(proba), j)) * self.powers
        q = special.softmax(slopes.sum(axis=-1) + self.offsets[j], axis=1)
        mean = np.einsum("nc,ncp->np", q, slopes)
        own = np.diag(q.sum(axis=0)) - q.T @ q
        cross = np.einsum("nc,ncp->cp", q, slopes) - q.T @ mean
        return q.sum(axis=0), own, cross, np.einsum("nc,ncp,ncr->pr", q, slopes, slopes) - mean.T @ mean


def revised_by_pairs(
    proba: NDArray,
    y_noisy: NDArray,
    T: NDArray,
    *,
    proba_pairs: NDArray,
    y_pairs: NDArray,
    y_noisy_pairs: NDArray,
    counts: NDArray,
) -> PairEstimate | None:
    r"""T by the posterior of the true label that verified pairs ask for, if they contradict one T for all rows.

    One T means that a noisy label tells as much of the true one in every row. People, rules and models err on hard
    rows more often, so that both label and classifier fail together. How much each of them tells is fitted to the
    pairs, by maximum a posteriori::

        P(i | x, j) ~ proba[i]^a T[i, j]^b exp(M[i, j])

    with unit normal priors of log a and log b, and a normal one of M. T is then the mean of these posteriors over
    *all* noisy rows, as in a step of expectation-maximisation, with the pairs as counts. Under one T, a = b = 1 and
    M = 0. T stays as it is (None) unless the log of the Bayes factor against that, by Laplace's method, is above 1.

    The standard errors are those of a, b and M by the delta method, and of the sampling of the rows.

    Parameters
    ----------
    proba, proba_pairs : ndarray of shape (n, c) and (n_pairs, c)
        Calibrated, out-of-sample probabilities of the true label.
    y_noisy : ndarray of int, shape (n,)
    T : ndarray of shape (c, c)
        The most likely one T.
    y_pairs, y_noisy_pairs : ndarray of int, shape (n_pairs,)
    counts : ndarray of shape (c, c)
        Of all pairs, also those without such probabilities.

    Returns
    -------
    PairEstimate or None

    References
    ----------
    Genest, Zidek, "Combining Probability Distributions: A Critique and an Annotated Bibliography", 1986 (logarithmic
    pools). Kass, Raftery, "Bayes Factors", 1995.
    """
    posterior, gain = _fitted(proba_pairs, y_pairs, y_noisy_pairs, T)
    of_label = [proba_pairs[y_noisy_pairs == j] for j in range(len(T))]
    information, log_det = np.eye(2), 0.0
    for j, pairs in enumerate(of_label):
        inverse, cross, both = _information(posterior, pairs, j)
        information += both - cross.T @ inverse @ cross
        log_det -= np.linalg.slogdet(inverse * _PRECISION)[1]
    evidence = gain - (log_det + np.linalg.slogdet(information)[1]) / 2
    if evidence <= _POSITIVE_EVIDENCE:
        return None
    counts, variance, slopes = counts.astype(np.float64), np.zeros_like(T), np.zeros((*T.shape, 2))
    for j, pairs in enumerate(of_label):
        inverse, cross, _ = _information(posterior, pairs, j)
        of_rows, own, own_cross, _ = posterior.moments(proba[y_noisy == j], j)
        counts[:, j] += of_rows
        variance[:, j] = np.einsum("ik,kl,il->i", own, inverse, own)
        slopes[:, j] = own_cross - own @ inverse @ cross
    total = counts + T  # one more row by T itself: a class without any keeps its T
    std = _standard_errors(total, variance, slopes, np.linalg.inv(information))
    return PairEstimate(normalise_rows(total), std, counts, posterior.powers, float(evidence))


def _fitted(proba: NDArray, y: NDArray, noisy: NDArray, T: NDArray) -> tuple[_Posterior, float]:
    """Posterior that fits the pairs best, and by how much their log-posterior is above that under one T."""
    c, rows = len(T), np.arange(len(y))
    start = _Posterior(np.log(np.maximum(T, _SMALLEST_RATE)), np.ones(2), np.zeros((c, c)))
    factors = start.factors(proba, noisy)

    def loss(x: NDArray) -> tuple[float, NDArray]:
        powers, offsets = np.exp(x[:2]), x[2:].reshape(c, c)
        log_q = special.log_softmax(factors @ powers + offsets[noisy], axis=1)
        residual, of_offsets = np.exp(log_q), _PRECISION * offsets
        residual[rows, y] -= 1
        np.add.at(of_offsets, noisy, residual)
        value = (x[:2] @ x[:2] + _PRECISION * (offsets**2).sum()) / 2 - log_q[rows, y].sum()
        of_powers = powers * np.einsum("nc,ncp->p", residual, factors) + x[:2]
        return value, np.concatenate([of_powers, of_offsets.ravel()])

    at_one = np.zeros(2 + c * c)
    bounds = [(-_MOST_LOG_POWER, _MOST_LOG_POWER)] * 2 + [(None, None)] * (c * c)
    best: Any = optimize.minimize(loss, at_one, jac=True, method="L-BFGS-B", bounds=bounds)
    fitted = start._replace(powers=np.exp(best.x[:2]), offsets=best.x[2:].reshape(c, c))
    return fitted, float(loss(at_one)[0] - best.fun)


def _information(posterior: _Posterior, pairs: NDArray, j: int) -> tuple[NDArray, NDArray, NDArray]:
    """Of the pairs with noisy label j: inverse of that about M[:, j]; that about it and the powers; about the powers.

    Expected information; with its prior for M. Columns of M share no pairs, so the whole is an arrow.
    """
    _, own, cross, both = posterior.moments(pairs, j)
    return np.linalg.inv(own + _PRECISION * np.eye(len(own))), cross, both


def _standard_errors(counts: NDArray, variance: NDArray, slopes: NDArray, of_powers: NDArray) -> NDArray[np.float64]:
    """Standard errors of the normalised counts.

    Parameters
    ----------
    counts : ndarray of shape (c, c)
    variance : ndarray of shape (c, c)
        Of the counts at fixed powers, by M, whose columns are independent there.
    slopes : ndarray of shape (c, c, 2)
        Of the counts in the logarithms of the powers, M following.
    of_powers : ndarray of shape (2, 2)
        Covariance of these.
    """
    n = counts.sum(axis=1, keepdims=True)
    T = counts / n
    of_offsets = ((1 - 2 * T) * variance + T**2 * variance.sum(axis=1, keepdims=True)) / n**2
    slopes = (slopes - T[:, :, None] * slopes.sum(axis=1, keepdims=True)) / n[:, :, None]
    return np.sqrt(of_offsets + np.einsum("ijp,pr,ijr->ij", slopes, of_powers, slopes) + T * (1 - T) / n)
