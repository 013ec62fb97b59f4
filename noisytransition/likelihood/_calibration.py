"""Calibration of class probabilities by matrix scaling, fitted jointly with T to all labels.

The calibration map is affine in the logarithms of the probabilities, with a prior on its parameters. The estimate of T,
the selection of classifiers and the error bars use the same map.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from ..transition._checks import check_probabilities
from ..transition._estimation import TINY, finite_log, normalise_rows

# logit of a class with probability 0 in all samples, finite
_IMPOSSIBLE = -1e9
#: with more classes the matrix has too many entries for the clean samples; only scale and bias are fitted
MOST_CLASSES_WITH_MATRIX = 20
# prior precision of the contribution of a matrix entry to a logit (about 0.3), relative to the variance of the logits.
# Between 4 and 40 the error of T differs by 3 % (36 cells of examples/benchmarks/em_transition.py, seeds 0 to 4)
_MATRIX_PRECISION = 10.0
# lower bound of this variance, so that the prior is proper if all probabilities are equal
_SMALLEST_VARIANCE = 1e-6
# upper bound of the value that replaces a probability of 0: for one-hot probabilities, half of the smallest is 1/2
_HIGHEST_FLOOR = 0.05
# upper bound of the map's log-scale: exp overflows where the line search may go
_MAX_LOG_SCALE = 10.0
#: steps of one maximisation, which usually converges earlier
MAX_ITER = 1000
#: more iterations hardly increase the likelihood, and T does not improve (images of CIFAR-10, labels of people)
MOST_ITER = 500
# Iterations of the first maximisation, which compares candidates. If it needs more, later ones rescale the logits of T:
# the likelihood is nearly flat along logits of small entries. Not from the start: an under-trained network has other
# maxima, with a wrong T. After 60, T is worse in large problems with one T (examples/paper/many_seeds.py)
MAX_ITER_FIRST = 100
# added to the curvature of the mean loss along a logit of T, since an entry may have no samples
_LEAST_CURVATURE = 1e-4
# with many classes, T without a prior and the map overfit: simulated pair noise, 100 classes, error of T after 30, 60,
# 500 iterations 0.819, 0.819, 0.859
_MAX_ITER_MANY_CLASSES = 40
# with more classes, iterations are slow: 20 of a later maximisation, with rescaled logits of T, give the same error of
# T as 40 without (150 to 400 classes, five kinds of noise, 1 and 5 clean samples per class; 10 do not)
SLOW_CLASSES = 100
_MAX_ITER_AGAIN = 20
#: resolution of single precision: a network's smaller probabilities are indistinguishable from 0
SMALLEST_PROBA = 1e-7
# bounds of the logarithm of an inverse temperature: a factor from 1/20 to 7
_LOG_SCALES = (-3.0, 2.0)
#: the maximisation ends when the mean log-likelihood of a sample improves by less
TOLERANCE = 1e-7
# sums and products of exponentials of smaller logits neither overflow nor underflow
_LARGE_LOGIT = {"d": 300.0, "f": 80.0}
# a larger table of noisy samples is in single precision, which halves the time; sums are in double precision
_MOST_IN_DOUBLE = 2**17
# numbers in a block of samples: 256 or 512 KiB
_BLOCK_SIZE = 2**16


#: log-likelihood, counts of (true, noisy), and gradients by b and by the matrix
Sums = tuple[float, NDArray, NDArray, NDArray]


class Calibration(NamedTuple):
    """Map that calibrates probabilities by matrix scaling, ``softmax(A u + b)`` with u = log proba."""

    matrix: NDArray[np.float64]  # A, the linear map of the logarithms of the probabilities
    bias: NDArray[np.float64]  # b; minus infinity for a class with probability 0 in all samples
    floor: float = TINY  # smaller probabilities are raised to this

    def of_classes(self, c: int) -> "Calibration":
        """Map of the first classes, if all others have probability 0."""
        return Calibration(self.matrix[:c, :c], self.bias[:c], self.floor)

    def __call__(self, proba: ArrayLike) -> NDArray[np.float64]:
        """Calibrate probabilities from the classifier that the map was fitted to, shape (n, c)."""
        u = centred_logits(check_probabilities(proba, len(self.bias)), np.isneginf(self.bias), self.floor)
        if len(self.bias) > MOST_CLASSES_WITH_MATRIX:  # a product with the diagonal A would take c times as long
            return special.softmax(u * self.matrix.diagonal() + self.bias, axis=1)
        return special.softmax(u @ self.matrix.T + self.bias, axis=1)


class EMResult(NamedTuple):
    """Full result of `em_transition_matrix`: T with its counts, calibration, prior and evidence.

    Attributes
    ----------
    transition_matrix : ndarray of shape (c, c)
        Maximum-likelihood T, shrunk by the prior.
    counts : ndarray of shape (c, c)
        Expected number of samples of true class i and noisy label j, without the prior's pseudo-counts.
    calibration : Calibration or None
        Calibration map, callable with the same classifier's probabilities of other samples. None without clean samples.
    prior : ndarray of shape (c, c) or None
        Matrix that T was shrunk towards.
    strength : float
        Pseudo-counts of the prior per class.
    log_likelihood : float
        Maximum of the log-likelihood of noisy samples and known pairs, including the prior of T. If calibrated, also
        including the clean samples and the prior of the map.
    log_evidence : float
        Maximum of the log-likelihood, with T integrated out under its prior if there is one. Use it to compare the
        probabilities of several classifiers.
    converged : bool
        Whether the maximisation ended before `max_iter` steps. With calibration it always ends after 500.
    n_iter : int
        Steps of the last maximisation.
    """

    transition_matrix: NDArray[np.float64]
    counts: NDArray[np.float64]
    calibration: Calibration | None
    prior: NDArray[np.float64] | None
    strength: float
    log_likelihood: float
    log_evidence: float
    converged: bool
    n_iter: int


class CalibratedLikelihood:
    r"""Joint log-likelihood of T and the calibration map ``z = s u + B u + b``, with the prior of the map.

    Losses: of a noisy sample ``- log sum_i softmax(z)_i T[i, y]``; of a clean sample ``- log softmax(z + m)_y`` times
    its weight, with the log ratio m of the class priors; of a pair ``- log T[i, j]``. Log s and b have a unit normal
    prior, an entry of B a normal one with precision 10 times the variance of u, so that it adds about 0.3 to a logit.

    `pairs` of shape (c, c) counts samples with both labels known; `clean_weight` are the weights of clean samples, and
    `log_prior_ratio` is the log ratio of the class priors of clean and noisy samples.
    """

    def __init__(
        self,
        proba: NDArray,
        y: NDArray,
        proba_clean: NDArray,
        y_clean: NDArray,
        pairs: NDArray,
        clean_weight: NDArray | float = 1.0,
        log_prior_ratio: NDArray | float = 0.0,
        max_iter: int = MAX_ITER,
    ) -> None:
        self.c = len(pairs)
        self.pairs = pairs
        self.log_prior_ratio = log_prior_ratio
        self.max_iter = max_iter
        self.n_rows = len(y) + len(y_clean)
        self.with_matrix = self.c <= MOST_CLASSES_WITH_MATRIX
        order = np.argsort(y, kind="stable")
        self.n_clean = np.bincount(y_clean, minlength=self.c)
        both = np.concatenate([proba[order], proba_clean], dtype=np.float64)
        self.absent = ~(both.any(axis=0) | (self.n_clean > 0))
        self.floor = TINY
        if not both[:, ~self.absent].all():  # half of the smallest positive one, as from nearest neighbours and trees
            self.floor = float(np.clip(both.min(where=both > 0, initial=1) / 2, TINY, _HIGHEST_FLOOR))
        u = centred_logits(both, self.absent, self.floor)
        self.precision = map_precision(u, self.absent)
        self.clean_blocks = list(_in_blocks(u[len(y) :], y_clean))
        self.clean_weight = np.broadcast_to(clean_weight, len(y_clean))
        noisy = u[: len(y)].astype(np.float32 if y.size * self.c > _MOST_IN_DOUBLE else np.float64)
        self.rows = (_RowsOfFewClasses if self.with_matrix else _RowsByLabel)(noisy, y[order], self.c)
        self.x: NDArray | None = None  # result of the last maximisation

    def maximise(self, T: NDArray, pseudo_counts: NDArray | float = 0.0) -> EMResult:
        """Find the maximum by L-BFGS, adding `pseudo_counts` to the pairs.

        The first call has at most 100 iterations; a later one continues from it.
        """
        known = self.pairs + pseudo_counts
        most = MOST_ITER if self.with_matrix else _MAX_ITER_MANY_CLASSES
        if self.x is None:
            self.x = self.pack(0.0, np.zeros(self.c), np.zeros_like(T), finite_log(T))
            unit = np.ones(())
            most = min(most, MAX_ITER_FIRST)
        else:
            # units in which the loss has a similar curvature along all logits of T
            total = self.counts(self.x) + known
            curvature = total * (1 - normalise_rows(total, total)) / self.n_rows + _LEAST_CURVATURE
            unit = self.pack(1.0, np.ones(self.c), np.ones_like(T), 1 / np.sqrt(curvature))
            if self.c > SLOW_CLASSES:
                most = _MAX_ITER_AGAIN
        found = minimum(lambda x: self.objective(x, known), self.x, unit, min(most, self.max_iter))
        self.x = found.x
        counts = self.counts(self.x)
        T = normalise_rows(counts + known, special.softmax(self.unpack(self.x)[3], axis=1))
        converged = bool(found.success) or found.nit < self.max_iter  # or stopped early on purpose
        value = -found.fun * self.n_rows
        counts += self.pairs
        return EMResult(T, counts, self.calibration(self.x), None, 0.0, value, value, converged, found.nit)

    # ---- parameters
    def pack(self, log_scale: float, bias: NDArray, matrix: NDArray, logits_T: NDArray) -> NDArray[np.float64]:
        """Concatenate all parameters; without B for many classes."""
        return np.concatenate([[log_scale], bias, matrix.ravel() if self.with_matrix else [], logits_T.ravel()])

    def unpack(self, x: NDArray) -> tuple[float, NDArray, NDArray, NDArray]:
        """Split into log s, b, B and the logits of T."""
        c = self.c
        matrix = x[1 + c : -c * c].reshape(c, c) if self.with_matrix else np.zeros(())
        return x[0], x[1 : 1 + c], matrix, x[-c * c :].reshape(c, c)

    def calibration(self, x: NDArray) -> Calibration:
        """Calibration map of the parameters x."""
        _, A, bias = self.map(x)
        return Calibration(A, np.where(self.absent, -np.inf, bias), self.floor)

    def map(self, x: NDArray) -> tuple[float, NDArray, NDArray]:
        """Scale s, matrix A = s + B, and bias of the map, very low for classes with probability 0 in all samples."""
        log_scale, bias, matrix, _ = self.unpack(x)
        scale = float(np.exp(min(log_scale, _MAX_LOG_SCALE)))
        return scale, matrix + scale * np.eye(self.c), np.where(self.absent, _IMPOSSIBLE, bias)

    # ---- value and gradient
    def objective(self, x: NDArray, known: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Mean loss per sample, and its gradient."""
        log_T = _log_softmax(self.unpack(x)[3])
        T = np.exp(log_T)
        log_p_noisy, counts, grad_bias, grad_matrix = self.rows.sums(*self.map(x)[1:], T)
        counts = known + counts
        grad_T = counts - T * counts.sum(axis=1, keepdims=True)
        log_likelihood = log_p_noisy + float((known * log_T).sum())
        return self.with_clean_rows(x, log_likelihood, grad_bias, grad_matrix, grad_T)

    def with_clean_rows(
        self, x: NDArray, log_likelihood: float, grad_bias: NDArray, grad_matrix: NDArray, grad_T: NDArray
    ) -> tuple[float, NDArray[np.float64]]:
        """Mean loss per sample and its gradient: add clean samples and priors to sums of noisy samples and pairs."""
        log_scale, bias, matrix, _ = self.unpack(x)
        scale, A, offset = self.map(x)
        offset = (offset + self.log_prior_ratio)[:, None]
        for rows, u, places in self.clean_blocks:
            weight = self.clean_weight[rows]
            z = A @ u if self.with_matrix else scale * u
            log_p = _log_softmax(z + offset, axis=0)
            residual = -weight * np.exp(log_p)
            residual.reshape(-1)[places] += weight
            grad_bias = grad_bias + residual.sum(axis=1)
            # of the matrix, or of its diagonal
            grad_matrix = grad_matrix + (residual @ u.T if self.with_matrix else (residual * u).sum(axis=1))
            log_likelihood += float(weight @ log_p.take(places))
        prior = -(log_scale**2 + (bias**2).sum() + self.precision * (matrix**2).sum()) / 2
        gradient = self.pack(
            scale * (np.trace(grad_matrix) if self.with_matrix else grad_matrix.sum()) - log_scale,
            grad_bias - bias,
            grad_matrix - self.precision * matrix if self.with_matrix else matrix,
            grad_T,
        )
        return -(log_likelihood + prior) / self.n_rows, -gradient / self.n_rows

    def counts(self, x: NDArray) -> NDArray[np.float64]:
        """Expected number of noisy samples of each true and noisy label."""
        T = np.exp(_log_softmax(self.unpack(x)[3]))
        return self.rows.sums(*self.map(x)[1:], T)[1]


# ---------------------------------------------------------------------------- sums over the noisy samples
class _RowsOfFewClasses:
    """Noisy samples with logits ``A u + b``, in blocks of shape (c, n); `u` has shape (n, c)."""

    def __init__(self, u: NDArray, y: NDArray, c: int) -> None:
        self.c = c
        self.dtype = u.dtype
        self.blocks = [(of_block, y[rows], places) for rows, of_block, places in _in_blocks(u, y)]

    def sums(self, A: NDArray, bias: NDArray, T: NDArray) -> Sums:
        """Sums over all samples; the gradient by the matrix has shape (c, c)."""
        log_likelihood = 0.0
        counts = np.zeros((self.c, self.c))
        grad_bias = np.zeros(self.c)
        grad_matrix = np.zeros((self.c, self.c))
        of_noisy, of_true = (np.ascontiguousarray(a, dtype=self.dtype) for a in (T.T, T))
        linear = A.astype(self.dtype)
        b = bias.astype(self.dtype)[:, None]
        for u, _, places in self.blocks:
            p = linear @ u
            p += b
            p = _exp(p, axis=0)
            inv_norm = 1 / p.sum(axis=0)
            likelihood = np.maximum((of_noisy @ p).take(places) * inv_norm, TINY**2)
            log_likelihood += float(np.log(likelihood).sum(dtype=np.float64))
            of_label = np.zeros_like(p)
            of_label.reshape(-1)[places] = inv_norm / likelihood
            counts += p @ of_label.T
            p *= of_true @ of_label - inv_norm  # posterior minus softmax: gradient by logits
            grad_bias += p.sum(axis=1)
            grad_matrix += p @ u.T
        return log_likelihood, T * counts, grad_bias, grad_matrix


class _RowsByLabel:
    """Noisy samples of many classes, sorted by label, with logits ``s u + b``; a block needs one column of T."""

    def __init__(self, u: NDArray, y: NDArray, c: int) -> None:
        self.c = c
        self.u = u
        most = max(1, _BLOCK_SIZE // c)
        edges = np.concatenate([[0], np.bincount(y, minlength=c).cumsum()])
        self.blocks: list[tuple[int, slice]] = []
        for label, (first, end) in enumerate(pairwise(edges.tolist())):
            self.blocks += [(label, slice(i, min(i + most, end))) for i in range(first, end, most)]

    def sums(self, A: NDArray, bias: NDArray, T: NDArray) -> Sums:
        """Sums over all samples, without storing posteriors; the gradient is by the matrix's diagonal only."""
        log_likelihood = 0.0
        counts = np.zeros((self.c, self.c))
        grad_bias = np.zeros(self.c)
        grad_diagonal = np.zeros(self.c)
        scale = float(A[0, 0])
        b = bias.astype(self.u.dtype)
        columns = np.ascontiguousarray(T.T, dtype=self.u.dtype)
        for label, rows in self.blocks:
            u = self.u[rows]
            column = columns[label]
            p = scale * u
            p += b
            p = _exp(p, axis=1)
            sums = p.sum(axis=1)
            likelihood = np.maximum(p @ column / sums, TINY**2)
            log_likelihood += float(np.log(likelihood).sum(dtype=np.float64))
            factors = np.stack([1 / (likelihood * sums), 1 / sums])
            by_posterior, inv_norm = factors @ p
            by_posterior *= column
            counts[label] += by_posterior
            grad_bias += by_posterior - inv_norm
            p *= u
            by_posterior, inv_norm = factors @ p
            grad_diagonal += column * by_posterior - inv_norm
        return log_likelihood, counts.T, grad_bias, grad_diagonal


def _in_blocks(u: NDArray, y: NDArray) -> Iterator[tuple[slice, NDArray, NDArray[np.intp]]]:
    """Yield blocks of samples: their rows, `u` with shape (c, n), and the flat indices of their labels in it."""
    most = max(1, _BLOCK_SIZE // u.shape[1])
    for rows in (slice(i, i + most) for i in range(0, len(y), most)):
        of_block = np.array(u[rows].T, order="C")  # a view would keep all of u in memory
        yield rows, of_block, y[rows] * of_block.shape[1] + np.arange(of_block.shape[1])


def _exp(z: NDArray, axis: int) -> NDArray[np.float64]:
    """Exponentiate logits in place. If some are large, divide each sample by its largest value."""
    if max(z.max(), -z.min()) > _LARGE_LOGIT[z.dtype.char]:
        z -= z.max(axis=axis, keepdims=True)
    return np.exp(z, out=z)


# ---------------------------------------------------------------------------- helpers
def minimum(
    objective: Callable[[NDArray], tuple[float, NDArray]], x: NDArray, unit: NDArray, max_iter: int, bounds: Any = None
) -> Any:
    """Result of L-BFGS from x, with parameters and bounds in these units; x of the result is unscaled."""

    def in_units(z: NDArray) -> tuple[float, NDArray]:
        value, gradient = objective(z * unit)
        return value, gradient * unit

    options = {"maxiter": max_iter, "ftol": TOLERANCE, "maxcor": 20}
    found: Any = optimize.minimize(in_units, x / unit, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    found.x = found.x * unit
    return found


def _log_softmax(z: NDArray, axis: int = 1) -> NDArray[np.float64]:
    """Log-softmax, several times faster than scipy's for small arrays."""
    z = z - z.max(axis=axis, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=axis, keepdims=True))


def centred_logits(proba: NDArray, absent: NDArray | None = None, floor: float = TINY) -> NDArray[np.float64]:
    """Logarithms of probabilities, centred in each row; 0 for classes with probability 0 in all rows."""
    u = np.log(np.maximum(proba, floor))
    absent = np.equal(proba, 0).all(axis=0) if absent is None else absent
    u -= u.mean(axis=1, keepdims=True, where=~absent)
    u[:, absent] = 0
    return u


def map_precision(u: NDArray, absent: NDArray) -> float:
    """Precision of the prior of an entry of B, given the logits `u`."""
    return _MATRIX_PRECISION * max(float(u.var(axis=1, where=~absent).mean()), _SMALLEST_VARIANCE)


def map_scores(proba: NDArray, residual: NDArray) -> NDArray[np.float64]:
    """Scores of the map's parameters at the identity, shape (n, n_map): log s, b and, unless there are too many, B.

    `residual` is the gradient of the log-likelihood of each sample by its logits, shape (n, c).
    """
    u = centred_logits(proba)
    n, c = proba.shape
    scores = [(residual * u).sum(axis=1, keepdims=True), residual]
    if c <= MOST_CLASSES_WITH_MATRIX:
        scores.append((residual[:, :, None] * u[:, None]).reshape(n, -1))
    return np.hstack(scores)


def map_prior(proba: NDArray) -> NDArray[np.float64]:
    """Prior precision of the parameters in `map_scores`, shape (n_map,)."""
    c = proba.shape[1]
    precision = map_precision(centred_logits(proba), np.equal(proba, 0).all(axis=0))
    return np.concatenate([np.ones(1 + c), np.full(c * c if c <= MOST_CLASSES_WITH_MATRIX else 0, precision)])


# ---------------------------------------------------------------------------- temperature
def tempered_log_loss(proba: NDArray, y: NDArray, weights: NDArray | float = 1.0) -> NDArray[np.float64]:
    """Weighted log-loss of each sample, at the temperature that minimises its mean (Guo et al., 2017)."""
    u = np.log(np.maximum(proba, SMALLEST_PROBA))
    of_label = u[np.arange(len(y)), y]

    def loss(log_scale: float) -> NDArray[np.float64]:
        scale = np.exp(log_scale)
        return weights * (np.log(np.exp(scale * u).sum(axis=1)) - scale * of_label)

    best: Any = optimize.minimize_scalar(lambda s: loss(s).sum(), bounds=_LOG_SCALES, method="bounded")
    return loss(best.x)
