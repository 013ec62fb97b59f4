"""Maximum likelihood of the transition matrix, given class probabilities: expectation-maximisation."""

from __future__ import annotations
import warnings
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels._arrays import as_floats, check_label_indices
from ..transition._checks import check_count, check_finite, check_probabilities, check_transition_matrix
from ..transition._estimation import TINY, finite_log, normalise_rows
from ._calibration import (
    MAX_ITER,
    MAX_ITER_FIRST,
    MOST_CLASSES_WITH_MATRIX,
    SLOW_CLASSES,
    TOLERANCE,
    CalibratedLikelihood,
    EMResult,
)
from ._shrinkage import Prior, check_prior, fitted_prior, least_strength

# share of the uniform matrix in the initial T: an entry that starts at 0 stays at 0
_UNIFORM_SHARE = 0.1
# strength and counts converge in one to three rounds; 2 of 180 fits (examples/benchmarks/em_transition.py) need over 8.
# More rounds, until the prior's rate converges too, improve T under one T and worsen it on human labels (zoo)
_MAX_ROUNDS = 10
# pseudo-counts per class with which T almost equals the prior
_STRONG = 1e6
# an extrapolation keeps at least this share of an entry, since an entry at 0 stays at 0
_SMALLEST_RATIO = 0.05


def em_transition_matrix(
    proba: ArrayLike,
    y_noisy: ArrayLike,
    *,
    init: ArrayLike | None = None,
    prior: Prior = "symmetric",
    proba_clean: ArrayLike | None = None,
    y_clean: ArrayLike | None = None,
    clean_weight: float = 1.0,
    counts: ArrayLike | None = None,
    max_iter: int = MAX_ITER,
    tol: float = 1e-5,
    full_output: bool = False,
) -> NDArray[np.float64] | EMResult:
    r"""Estimate T by maximum likelihood, given probabilities of the *true* label from any classifier.

    Maximise ``sum_n log sum_i proba[n, i] T[i, y_n]`` by expectation-maximisation::

        q[n, i] = proba[n, i] T[i, y_n] / sum_k proba[n, k] T[k, y_n]
        C[i, j] = sum of q[n, i] over the samples with y_n = j
        T[i, j] = (C[i, j] + a prior[i, j]) / (sum_j C[i, j] + a)

    with a pseudo-counts of the prior for each class, selected by the evidence.

    The probabilities should be out-of-sample: a classifier that memorised the labels makes T close to the identity.
    With clean samples, matrix scaling calibrates the probabilities. It is fitted jointly with T on all labels::

        proba <- softmax(s log proba + B log proba + b)

    Log s and b have a unit normal prior, B a tighter one; with more than 20 classes B = 0.
    See :doc:`/methods/maximum_likelihood` for the statistics.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``, of the noisy samples.
    y_noisy : array-like of int, shape (n,)
        Noisy labels as class indices 0..c-1.
    init : array-like of shape (c, c), optional
        Initial T. Default: uniform, so that the first step gives the soft confusion matrix.
    prior : "symmetric", array-like of shape (c,) or (c, c), or None, default="symmetric"
        Target of the shrinkage. "symmetric": one noise rate, all wrong labels equally likely. Of shape (c,): the
        superclass of each class; wrong labels are equally likely within the superclass, and outside of it. Of shape
        (c, c): a transition matrix. None: no shrinkage. The number of pseudo-counts per class maximises the evidence of
        the counts, which ignores entries of 0 in the prior.
    proba_clean, y_clean : array-like of shape (n_clean, c) and int of shape (n_clean,), optional
        Out-of-sample probabilities and true labels of clean samples, to calibrate `proba`. The classifier must not be
        trained on these samples.
    clean_weight : float, default=1.0
        Weight of a clean sample in the calibration; 1 gives the likelihood. If T differs between samples, a larger
        weight, such as n / n_clean, reduces the error of T (:doc:`/trust`).
    counts : array-like of shape (c, c), optional
        Numbers of further samples whose true (i) and noisy (j) labels are both known.
    max_iter : int, default=1000
        Maximum number of steps of one maximisation.
    tol : float, default=1e-5
        Without clean samples, stop when no entry of T changes by more than this.
    full_output : bool, default=False
        Return an `EMResult` instead of the matrix alone.

    Returns
    -------
    ndarray of shape (c, c), float64, or EMResult
        Rows sum to 1. A class with probability 0 in all samples keeps its row of `init` (or of the prior).

    Raises
    ------
    ValueError
        If an input is invalid, or only one of `proba_clean` and `y_clean` is given.

    Warns
    -----
    UserWarning
        If T has not converged after `max_iter` steps.

    References
    ----------
    * Dempster, Laird, Rubin, "Maximum Likelihood from Incomplete Data via the EM Algorithm", 1977.
    * Varadhan, Roland, "Simple and Globally Convergent Methods for Accelerating the Convergence of Any EM
      Algorithm", 2008.
    * Minka, "Estimating a Dirichlet distribution", 2000 (the evidence).
    * Guo, Pleiss, Sun, Weinberger, "On Calibration of Modern Neural Networks", ICML 2017 (matrix scaling).
    * Kull et al., "Beyond Temperature Scaling: Obtaining Well-Calibrated Multi-Class Probabilities with Dirichlet
      Calibration", NeurIPS 2019 (matrix scaling of log-probabilities, with a prior).

    Examples
    --------
    >>> from noisytransition.likelihood import em_transition_matrix
    >>> proba = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]]
    >>> em_transition_matrix(proba, [0, 0, 1, 1, 1], prior=None).round(2)
    array([[0.72, 0.28],
           [0.  , 1.  ]])
    """
    proba = check_probabilities(proba)
    c = proba.shape[1]
    if c < 2 or not proba.size:
        raise ValueError(f"proba has shape {proba.shape}; pass at least one row and two columns.")
    check_prior(prior, c)
    check_finite(clean_weight, "clean_weight")
    check_finite(tol, "tol")
    T = np.full((c, c), 1 / c) if init is None else check_transition_matrix(init, c, "init")
    if (proba_clean is None) != (y_clean is None):
        raise ValueError("only one of proba_clean and y_clean was given; pass both or none.")
    proba_clean = check_probabilities(np.empty((0, c)) if proba_clean is None else proba_clean, c, "proba_clean")
    found = first_maximum(
        proba,
        check_label_indices(y_noisy, c, len(proba), "y_noisy"),
        proba_clean,
        check_label_indices(() if y_clean is None else y_clean, c, len(proba_clean), "y_clean"),
        T,
        prior,
        check_counts(counts, c),
        clean_weight,
        max_iter=check_count(max_iter, 1, "max_iter"),
        tol=tol,
    ).finish()
    return found if full_output else found.transition_matrix


class Likelihood:
    """Log-likelihood of T given uncalibrated probabilities: noisy samples, and samples with both labels known."""

    def __init__(self, proba: NDArray, y: NDArray, pairs: NDArray, max_iter: int = MAX_ITER, tol: float = 1e-5) -> None:
        order = np.argsort(y, kind="stable")
        self.n = len(y)
        self.max_iter = max_iter
        self.tol = tol
        self.pairs = pairs
        # samples of noisy label j form one block, so that counting only needs matrix-vector products
        ends = np.bincount(y, minlength=len(pairs)).cumsum()
        self.blocks = np.split(proba[order].astype(np.float64, copy=False), ends[:-1])

    def maximise(self, T: NDArray, pseudo_counts: NDArray | float = 0.0, row_gain: float = -np.inf) -> EMResult:
        """Find the maximum by expectation-maximisation, accelerated by SQUAREM.

        Stop when no entry of T changes by more than `tol`, or the mean log-likelihood of a sample by less than
        `row_gain`.
        """
        # a step reads and writes T column by column
        T = np.asfortranarray(T)
        known = self.pairs + pseudo_counts
        log_likelihood, one, counts = self.step(T, known)
        n_iter = 1
        gain = np.inf
        while np.abs(T - one).max() > self.tol and n_iter < self.max_iter and gain >= row_gain:
            of_one = self.step(one, known)
            beyond = _extrapolated(T, one, of_one[1])
            of_beyond = self.step(beyond, known)
            T, (now, one, counts) = (beyond, of_beyond) if of_beyond[0] >= of_one[0] else (one, of_one)
            gain = (now - log_likelihood) / self.n
            log_likelihood = now
            n_iter += 1
        converged = bool(np.abs(T - one).max() <= self.tol)
        return EMResult(one, counts + self.pairs, None, None, 0.0, log_likelihood, log_likelihood, converged, n_iter)

    def step(self, T: NDArray, known: NDArray) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Log-likelihood at T, T after one step of expectation-maximisation, and expected counts of (true, noisy)."""
        counts = np.empty(T.shape, order="F")
        likelihoods = []
        for j, block in enumerate(self.blocks):  # each block fits the processor's cache
            likelihood = np.maximum(block @ T[:, j], TINY**2)
            counts[:, j] = (1 / likelihood) @ block
            likelihoods.append(likelihood)
        counts *= T
        log_likelihood = float(np.log(np.concatenate(likelihoods)).sum()) + float((known * finite_log(T)).sum())
        return log_likelihood, normalise_rows(np.add(counts, known, order="F"), T), counts


def _extrapolated(T: NDArray, one: NDArray, two: NDArray) -> NDArray[np.float64]:
    """Extrapolate two steps of expectation-maximisation (SQUAREM)."""
    step = one - T
    change = two - one - step
    length = max(float(np.linalg.norm(step)) / max(float(np.linalg.norm(change)), TINY), 1.0)
    beyond = T + 2 * length * step + length**2 * change
    return normalise_rows(np.maximum(beyond, _SMALLEST_RATIO * T), T)


class FirstMaximum(NamedTuple):
    """Maximum of a likelihood of T, with the prior fitted at it and the final log-evidence."""

    likelihood: Likelihood | CalibratedLikelihood
    init: NDArray[np.float64]
    prior: Prior  # as in `em_transition_matrix`
    found: EMResult

    def with_weights(self, weights: NDArray) -> FirstMaximum:
        """Maximum with other weights of the clean samples, and its prior; starts from this one."""
        likelihood: Any = copy(self.likelihood)
        likelihood.clean_weight = weights
        counts = pseudo_counts(self.found)
        found = likelihood.maximise(self.found.transition_matrix, counts)
        return self._replace(likelihood=likelihood, found=with_prior(found, self.prior, counts))

    def finish(self) -> EMResult:
        """Alternate maximisation and fit of the prior until its strength converges."""
        found = self.found
        M: Any = found.prior
        a = found.strength
        if not a and found.calibration and found.n_iter == MAX_ITER_FIRST:  # it has not converged
            found = self.likelihood.maximise(found.transition_matrix)._replace(prior=M)
        for _ in range(_MAX_ROUNDS if a else 0):
            found = self.likelihood.maximise(found.transition_matrix, a * M)._replace(prior=M, strength=a)
            M, a_next, _ = fitted_prior(self.prior, found.counts)
            if a_next in (a, 0.0):
                break
            a = a_next
        if not found.converged:
            warnings.warn(f"T did not converge in {found.n_iter} steps; raise max_iter.", stacklevel=3)
        T = found.transition_matrix
        if not found.strength:  # a class without samples keeps its row
            T = np.where(found.counts.sum(axis=1, keepdims=True) == 0, self.init, T)
        return found._replace(transition_matrix=T, log_evidence=self.found.log_evidence)


def pseudo_counts(found: EMResult) -> NDArray[np.float64] | float:
    """Pseudo-counts of the prior."""
    return 0.0 if found.prior is None else found.strength * found.prior


def first_maximum(
    proba: NDArray,
    y_noisy: NDArray[np.integer],
    proba_clean: NDArray,
    y_clean: NDArray[np.integer],
    init: NDArray,
    prior: Prior,
    counts: NDArray,
    clean_weight: NDArray | float = 1.0,
    log_prior_ratio: NDArray | float = 0.0,
    max_iter: int = MAX_ITER,
    tol: float = 1e-5,
) -> FirstMaximum:
    """Run the first maximisation of `em_transition_matrix`, which gives the evidence of the probabilities.

    It is without a prior, which is then fitted to the counts. If the fitted strength is 0, also try the maximum with a
    strong prior and, with more than 20 classes (whose counts are small), with the weakest effective one; with more than
    100 only this. The evidence of all labels selects one. Method `finish` of the result gives the final maximum.

    Parameters are as in `em_transition_matrix`, as valid arrays (clean ones may be empty); `log_prior_ratio` as in
    `CalibratedLikelihood`.
    """
    likelihood: Likelihood | CalibratedLikelihood
    if len(y_clean):
        of_clean = proba_clean, y_clean, counts, clean_weight, log_prior_ratio
        likelihood = CalibratedLikelihood(proba, y_noisy, *of_clean, max_iter)
    else:
        likelihood = Likelihood(proba, y_noisy, counts, max_iter, tol)
    # only the strength is needed: without a prior, T changes long after the likelihood has converged
    is_rough = len(init) > MOST_CLASSES_WITH_MATRIX and not len(y_clean) and prior is not None
    found = likelihood.maximise(replace_zeros(init), **({"row_gain": TOLERANCE} if is_rough else {}))
    first = with_prior(found, prior)
    if not first.strength and prior is not None:
        shrunk = _with_strong_prior(likelihood, first, prior)
        if shrunk is None and is_rough and not found.converged:
            found = likelihood.maximise(found.transition_matrix)
            shrunk = found._replace(prior=first.prior, log_evidence=with_prior(found, prior).log_evidence)
        first = shrunk or first
    return FirstMaximum(likelihood, init, prior, first)


def replace_zeros(T: NDArray) -> NDArray[np.float64]:
    """Mix T with a uniform matrix, to start a maximisation from it."""
    return (1 - _UNIFORM_SHARE) * T + _UNIFORM_SHARE / len(T)


def _with_strong_prior(likelihood: Likelihood | CalibratedLikelihood, first: EMResult, prior: Prior) -> EMResult | None:
    """Maximum that starts from the prior, if it has a higher evidence than the one without a prior."""
    M: Any = first.prior
    strengths = [] if len(M) <= MOST_CLASSES_WITH_MATRIX else [least_strength(M)]
    for tried in strengths if len(M) > SLOW_CLASSES else [*strengths, _STRONG]:
        found = with_prior(likelihood.maximise(M, tried * M), prior, tried * M)
        if found.log_evidence > first.log_evidence and found.strength:
            return found if tried == _STRONG else found._replace(log_evidence=first.log_evidence)
    return None


def with_prior(found: EMResult, prior: Prior, prior_counts: NDArray | float = 0.0) -> EMResult:
    """Add the prior fitted to the counts at a maximum, its strength, and the log-evidence of all labels.

    `prior_counts` are the pseudo-counts with which T was maximised.
    """
    if prior is None:
        return found
    M, a, evidence = fitted_prior(prior, found.counts)
    log_T = finite_log(found.transition_matrix)
    log_best = finite_log(normalise_rows(found.counts, found.transition_matrix))
    evidence += found.log_likelihood - float((prior_counts * log_T).sum())
    evidence += float((found.counts * (log_best - log_T)).sum())
    return found._replace(prior=M, strength=a, log_evidence=evidence)


def check_counts(counts: ArrayLike | None, c: int) -> NDArray[np.float64]:
    """Valid numbers of samples of each true and noisy label, 0 by default."""
    if counts is None:
        return np.zeros((c, c))
    array = as_floats(counts, "counts")
    if array.shape != (c, c) or not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"counts must be {c} x {c} non-negative numbers, one row per true class.")
    return array
