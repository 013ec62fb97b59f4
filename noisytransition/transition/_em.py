"""Maximum likelihood of the transition matrix, given class probabilities: expectation-maximisation."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._calibration import Calibration, calibrate
from ._checks import check_count, check_label_indices, check_probabilities, check_transition_matrix
from ._estimation import normalise_rows
from ._shrinkage import check_prior, evidence, fitting_prior

# keeps logarithms finite; far below what any data could tell from 0
_TINY = 1e-12
# longest leap, in steps of the climb
_FARTHEST = 1e3
# what a leap leaves of an entry at least: from 0 none would come back
_LEAST = 0.05
# share of the uniform matrix in the start: a flip that starts at 0 would never come up
_MIXED = 0.1
# the strength changes the counts, and they it: it settles in two or three rounds
_ROUNDS = 5


class EMResult(NamedTuple):
    """What `em_transition_matrix` found.

    Attributes
    ----------
    transition_matrix : ndarray of shape (c, c)
    counts : ndarray of shape (c, c)
        Expected number of rows of true class i and noisy label j; without the prior's pseudo-rows.
    calibration : Calibration or None
        Map of `proba`, to call with the same classifier's probabilities of other rows; None without clean rows.
    prior : ndarray of shape (c, c) or None
        Matrix that T was shrunk towards.
    strength : float
        Pseudo-rows per class that the prior counted for.
    log_likelihood : ndarray of shape (n_iter,)
        Of the last maximisation, before each of its steps: noisy rows, known pairs, prior of T; clean rows and the
        prior of the map, if calibrated. It never falls.
    log_evidence : float
        Highest log-likelihood without the prior of T; with one, T is integrated out under it instead. For comparing
        probabilities of several classifiers.
    converged : bool
        Whether the last step moved no entry of T by more than `tol`.
    """

    transition_matrix: NDArray[np.float64]
    counts: NDArray[np.float64]
    calibration: Calibration | None
    prior: NDArray[np.float64] | None
    strength: float
    log_likelihood: NDArray[np.float64]
    log_evidence: float
    converged: bool


def em_transition_matrix(
    proba: ArrayLike,
    y_noisy: ArrayLike,
    *,
    init: ArrayLike | None = None,
    prior: str | ArrayLike | None = "symmetric",
    strength: float | str = "auto",
    proba_meta: ArrayLike | None = None,
    y_meta: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    max_iter: int = 1000,
    tol: float = 1e-5,
    full_output: bool = False,
) -> NDArray[np.float64] | EMResult:
    r"""Find the most likely T behind noisy labels, given probabilities of the *true* label from any classifier.

    Maximises ``sum_n log sum_i proba[n, i] T[i, y_n]`` by expectation-maximisation::

        q[n, i] = proba[n, i] T[i, y_n] / sum_k proba[n, k] T[k, y_n]
        C[i, j] = sum of q[n, i] over the rows with y_n = j
        T[i, j] = (C[i, j] + strength prior[i, j]) / (sum_j C[i, j] + strength)

    For fixed probabilities the likelihood is concave: every maximum is as high as any other, and where it starts does
    not matter (unless the probabilities hardly differ, so that they leave T open). They should be out-of-sample: on
    rows whose noisy labels a classifier has memorised, its probabilities repeat those labels, and T comes out near
    the identity.

    With clean rows, the probabilities are calibrated first: by the affine map of their logarithms under which the
    clean labels, and the noisy ones through a T that is free, are most likely::

        proba <- softmax(A log proba + b),    A = s I + B

    Log s and b have a unit normal prior; B a normal one, under which what an entry of it adds to a logit has about a
    sixth of the spread of the logits. For more than 20 classes B = 0, and the climb ends early: a free T would fit
    chance.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``, of the noisy rows.
    y_noisy : array-like of int, shape (n,)
        Noisy labels as class indices 0..c-1.
    init : array-like of shape (c, c), optional
        Where to start; default: all entries alike, so that the first step is the soft confusion matrix.
    prior : "symmetric", array-like of shape (c,) or (c, c), or None, default="symmetric"
        What T is shrunk towards. "symmetric": one noise rate, all wrong labels alike, the rate being that of the
        counts. Of shape (c,): the superclass of each class; wrong labels are alike within the superclass, and alike
        outside of it. Of shape (c, c): a transition matrix. None: no shrinkage.
    strength : float or "auto", default="auto"
        Pseudo-rows per class. "auto" maximises the evidence (Dirichlet-multinomial likelihood) of the counts, the
        prior's rates integrated out by Laplace's method: about 0 where the prior does not fit, large where it does.
        Entries of a prior that are 0 have no part in it.
    proba_meta, y_meta : array-like of shape (n_meta, c) and int of shape (n_meta,), optional
        Out-of-sample probabilities and true labels of clean rows. With them `proba` is calibrated. Probabilities of
        rows that the classifier was trained on would mislead it.
    counts : array-like of shape (c, c), optional
        Numbers of rows whose true (i) and noisy (j) label are both known; they count beside the noisy rows.
    max_iter : int, default=1000
        Most steps of one maximisation.
    tol : float, default=1e-5
        End when no entry of T changes by more.
    full_output : bool, default=False
        Return an `EMResult` instead of the matrix alone.

    Returns
    -------
    ndarray of shape (c, c), float64, or EMResult
        Rows sum to 1. A class without probability in any row keeps its row of `init` (or of the prior).

    Raises
    ------
    ValueError
        If an input is not valid, or one of `proba_meta` and `y_meta` is given without the other.

    Warns
    -----
    UserWarning
        If T still moved after `max_iter` steps.

    References
    ----------
    Dempster, Laird, Rubin, "Maximum Likelihood from Incomplete Data via the EM Algorithm", 1977. Varadhan, Roland,
    "Simple and Globally Convergent Methods for Accelerating the Convergence of Any EM Algorithm", 2008. Minka,
    "Estimating a Dirichlet distribution", 2000 (the evidence).

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]]
    >>> em_transition_matrix(proba, [0, 0, 1, 1, 1], prior=None).round(2)
    array([[0.72, 0.28],
           [0.  , 1.  ]])
    """
    proba = check_probabilities(proba)
    n_rows, c = proba.shape
    if c < 2 or not n_rows:
        raise ValueError(f"proba has shape {proba.shape}; at least one row and two classes are needed.")
    y = check_label_indices(y_noisy, c, n_rows, "y_noisy")
    known = np.zeros((c, c)) if counts is None else check_counts(counts, c)
    check_prior(prior, strength, c)
    proba_meta, y_meta = _check_clean(proba_meta, y_meta, c)
    T = np.full((c, c), 1 / c) if init is None else check_transition_matrix(init, c, "init")
    max_iter = check_count(max_iter, 1, "max_iter")
    if not isinstance(tol, int | float | np.number) or not 0 <= tol < np.inf:
        raise ValueError(f"tol={tol!r}; give a finite number of at least 0.")
    start = (1 - _MIXED) * T + _MIXED / c
    calibration = None if proba_meta is None else calibrate(proba, y, proba_meta, y_meta, start, known)
    rows = _Rows(proba, y, known, calibration)
    found = rows.maximise(start, np.zeros((c, c)), max_iter, tol)
    if prior is not None and (isinstance(strength, str) or strength > 0):
        found = _shrunk(rows, found, prior, strength, max_iter, tol)
    if not found.converged:
        warnings.warn(f"T still moved after {max_iter} steps (max_iter).", UserWarning, stacklevel=2)
    empty = (found.counts.sum(axis=1) == 0) & (found.strength == 0)
    found = found._replace(transition_matrix=np.where(empty[:, None], T, found.transition_matrix))
    return found if full_output else found.transition_matrix


class _Rows:
    """Noisy rows and known pairs: what the likelihood of T is made of."""

    def __init__(self, proba: NDArray, y: NDArray, known: NDArray, calibration: Calibration | None) -> None:
        order = np.argsort(y, kind="stable")
        self.known, self.calibration = known, calibration
        # the rows of noisy label j are one block: counting needs products of a matrix and a vector alone
        ends = np.cumsum(np.bincount(y, minlength=len(known)))[:-1]
        self.blocks = np.split((calibration(proba) if calibration else proba)[order], ends)

    def maximise(self, T: NDArray, pseudo: NDArray, max_iter: int, tol: float) -> EMResult:
        """Climb by expectation-maximisation, with `pseudo` rows counted beside the others; leap where it is slow."""
        likelihood, one = self._step(T, pseudo)
        path: Any = [likelihood]
        while _distance(T, one) > tol and len(path) < max_iter:
            higher, two = self._step(one, pseudo)
            leap = _leap(T, one, two)
            highest, after = self._step(leap, pseudo)
            T, likelihood, one = (leap, highest, after) if highest >= higher else (one, higher, two)
            path.append(likelihood)
        counts = self._counts(T)[0] + self.known
        path = np.array(path) + (self.calibration.log_likelihood if self.calibration else 0.0)
        return EMResult(one, counts, self.calibration, None, 0.0, path, path[-1], _distance(T, one) <= tol)

    def _step(self, T: NDArray, pseudo: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Log-likelihood at T, and T after a step of expectation-maximisation."""
        counts, log_likelihood = self._counts(T)
        added = self.known + pseudo
        log_likelihood += float((added * np.log(np.maximum(T, _TINY))).sum())
        return log_likelihood, normalise_rows(counts + added, T)

    def _counts(self, T: NDArray) -> tuple[NDArray[np.float64], float]:
        """Counts of (true, noisy), the true label by its posterior; and the log-likelihood of the noisy rows."""
        of_label = [np.maximum(block @ column, _TINY**2) for block, column in zip(self.blocks, T.T, strict=True)]
        pulls = [block.T @ (1 / likelihood) for block, likelihood in zip(self.blocks, of_label, strict=True)]
        return T * np.stack(pulls, axis=1), float(sum(np.log(likelihood).sum() for likelihood in of_label))


def _distance(T: NDArray, other: NDArray) -> float:
    return float(np.abs(T - other).max())


def _leap(T: NDArray, one: NDArray, two: NDArray) -> NDArray[np.float64]:
    """Extrapolate two steps of a slow climb to where it leads (SQUAREM)."""
    step, bend = one - T, two - 2 * one + T
    far = np.clip(np.linalg.norm(step) / max(float(np.linalg.norm(bend)), _TINY), 1.0, _FARTHEST)
    return normalise_rows(np.maximum(T + 2 * far * step + far**2 * bend, _LEAST * T), T)


def _shrunk(rows: _Rows, found: EMResult, prior: Any, strength: Any, max_iter: int, tol: float) -> EMResult:
    """Maximise again with the prior's pseudo-rows, until their number settles."""
    M, a = fitting_prior(prior, strength, found.counts)
    log_evidence = found.log_evidence + evidence(found.counts, M, a)
    for _ in range(_ROUNDS):
        found = rows.maximise(found.transition_matrix, a * M, max_iter, tol)
        found = found._replace(prior=M, strength=a, log_evidence=log_evidence)
        M, a = fitting_prior(prior, strength, found.counts)
        if a == found.strength:
            break
    return found


def _check_clean(proba: ArrayLike | None, y: ArrayLike | None, c: int) -> tuple[NDArray | None, NDArray]:
    if (proba is None) != (y is None):
        raise ValueError("proba_meta and y_meta go together; only one of them was given.")
    if proba is None or y is None:
        return None, np.zeros(0, dtype=np.intp)
    proba = check_probabilities(proba, c, "proba_meta")
    return proba, check_label_indices(y, c, len(proba), "y_meta")


def check_counts(counts: ArrayLike, c: int) -> NDArray[np.float64]:
    array = np.asarray(counts, dtype=np.float64)
    if array.shape != (c, c) or not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"counts must be {c} x {c} numbers of at least 0, one row per true class.")
    return array
