"""Maximum likelihood of the transition matrix, given class probabilities: expectation-maximisation."""

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import check_count, check_label_indices, check_probabilities, check_transition_matrix
from ._estimation import normalise_rows
from ._noise import symmetric_noise

# keeps logarithms finite; far below what any data could tell from 0
_TINY = 1e-12
# longest leap, in steps of the climb; and in the log temperature
_FARTHEST = 1e3
_WIDEST = 2.0
# what a leap leaves of an entry at least: from 0 none would come back
_LEAST = 0.05
# shares of a step of the temperature that are tried where a whole one leads down
_SHORTER = (0.5, 0.5, 0.5, 0.0)
# share of the uniform matrix in the start: a flip that starts at 0 would never come up
_MIXED = 0.1
# pseudo-rows per class among which the evidence chooses
_STRENGTHS = np.geomspace(0.1, 1e6, 71)
# the strength changes the counts, and they it: it settles in two or three rounds
_ROUNDS = 5
_log_gamma = np.vectorize(math.lgamma, otypes=[float])


class EMResult(NamedTuple):
    """What `em_transition_matrix` found.

    Attributes
    ----------
    transition_matrix : ndarray of shape (c, c)
    counts : ndarray of shape (c, c)
        Expected number of rows of true class i and noisy label j; without the prior's pseudo-rows.
    temperature : float
        What the logarithms of `proba` were divided by; 1 without clean rows.
    prior : ndarray of shape (c, c) or None
        Matrix that T was shrunk towards.
    strength : float
        Pseudo-rows per class that the prior counted for.
    log_likelihood : ndarray of shape (n_iter,)
        Of the last maximisation, before each of its steps: noisy rows, known pairs, clean rows (if calibrated) and
        prior. It never falls.
    converged : bool
        Whether the last step moved no entry of T, nor the log temperature, by more than `tol`.
    """

    transition_matrix: NDArray[np.float64]
    counts: NDArray[np.float64]
    temperature: float
    prior: NDArray[np.float64] | None
    strength: float
    log_likelihood: NDArray[np.float64]
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
        Pseudo-rows per class. "auto" maximises the evidence (Dirichlet-multinomial likelihood) of the counts: about
        0 where the prior does not fit, large where it does. Entries of a prior that are 0 have no part in it.
    proba_meta, y_meta : array-like of shape (n_meta, c) and int of shape (n_meta,), optional
        Out-of-sample probabilities and true labels of clean rows. With them, one temperature of all probabilities is
        found together with T. Probabilities of rows that the classifier was trained on would mislead it.
    counts : array-like of shape (c, c), optional
        Numbers of rows whose true (i) and noisy (j) label are both known; they count beside the noisy rows.
    max_iter : int, default=1000
        Most steps of one maximisation.
    tol : float, default=1e-5
        End when no entry of T, nor the log temperature, changes by more.
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
        If T or the temperature still moved after `max_iter` steps.

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
    rows = _Rows(proba, y, known, *_check_clean(proba_meta, y_meta, c))
    check_prior(prior, strength, c)
    T = np.full((c, c), 1 / c) if init is None else check_transition_matrix(init, c, "init")
    max_iter = check_count(max_iter, 1, "max_iter")
    if not isinstance(tol, int | float | np.number) or not 0 <= tol < np.inf:
        raise ValueError(f"tol={tol!r}; give a finite number of at least 0.")
    found = rows.maximise(_Point((1 - _MIXED) * T + _MIXED / c), np.zeros((c, c)), max_iter, tol)
    if prior is not None and (isinstance(strength, str) or strength > 0):
        found = _shrunk(rows, found, prior, strength, max_iter, tol)
    if not found.converged:
        warnings.warn(f"T or the temperature still moved after {max_iter} steps (max_iter).", UserWarning, stacklevel=2)
    empty = (found.counts.sum(axis=1) == 0) & (found.strength == 0)
    found = found._replace(transition_matrix=np.where(empty[:, None], T, found.transition_matrix))
    return found if full_output else found.transition_matrix


class _Point(NamedTuple):
    """T and the logarithm of the sharpness, which is one over the temperature."""

    T: NDArray[np.float64]
    log_sharpness: float = 0.0

    def distance(self, other: "_Point") -> float:
        return max(float(np.abs(self.T - other.T).max()), abs(self.log_sharpness - other.log_sharpness))

    def leap(self, one: "_Point", two: "_Point") -> "_Point":
        """Extrapolate two steps of a slow climb to where it leads (SQUAREM)."""
        start, first, second = (np.append(p.T, p.log_sharpness) for p in (self, one, two))
        step, bend = first - start, second - 2 * first + start
        far = np.clip(np.linalg.norm(step) / max(float(np.linalg.norm(bend)), _TINY), 1.0, _FARTHEST)
        reached = start + 2 * far * step + far**2 * bend
        T = np.maximum(reached[:-1].reshape(self.T.shape), _LEAST * self.T)
        near = np.clip(reached[-1], self.log_sharpness - _WIDEST, self.log_sharpness + _WIDEST)
        return _Point(normalise_rows(T, self.T), float(near))


class _Rows:
    """Noisy rows, known pairs and clean rows: what the likelihood of T and a temperature is made of."""

    def __init__(self, proba: NDArray, y: NDArray, known: NDArray, proba_meta: NDArray | None, y_meta: NDArray) -> None:
        order = np.argsort(y, kind="stable")
        self.known, self.y_meta, self.n = known, y_meta, len(y)
        # the rows of noisy label j are one block: counting needs products of a matrix and a vector alone
        self.ends = np.cumsum(np.bincount(y, minlength=len(known)))[:-1]
        self.calibrates = proba_meta is not None
        parts = [proba[order]] if proba_meta is None else [proba[order], proba_meta]
        self.proba = np.concatenate(parts)
        self.possible = self.proba > 0
        self.possible[self.n :] = True  # a clean label cannot be impossible
        self.log_proba = np.log(np.maximum(self.proba, _TINY))

    def maximise(self, at: _Point, pseudo: NDArray, max_iter: int, tol: float) -> EMResult:
        """Climb by expectation-maximisation, with `pseudo` rows counted beside the others; leap where it is slow."""
        likelihood, one = self._step(at, pseudo)
        path = [likelihood]
        while at.distance(one) > tol and len(path) < max_iter:
            higher, two = self._step(one, pseudo)
            for share in _SHORTER:  # the temperature stepped too far
                if higher >= likelihood:
                    break
                one = _Point(one.T, at.log_sharpness + share * (one.log_sharpness - at.log_sharpness))
                higher, two = self._step(one, pseudo)
            leap = at.leap(one, two)
            highest, after = self._step(leap, pseudo)
            at, likelihood, one = (leap, highest, after) if highest >= higher else (one, higher, two)
            path.append(likelihood)
        counts = self._counts(self._calibrated(at.log_sharpness), at.T)[0] + self.known
        converged = at.distance(one) <= tol
        return EMResult(one.T, counts, math.exp(-at.log_sharpness), None, 0.0, np.array(path), converged)

    def _step(self, at: _Point, pseudo: NDArray) -> tuple[float, _Point]:
        """Log-likelihood at a point, and the point after a step of expectation-maximisation."""
        p = self._calibrated(at.log_sharpness)
        counts, of_row = self._counts(p, at.T)
        added = self.known + pseudo
        likelihood = float(np.log(of_row).sum() + (added * np.log(np.maximum(at.T, _TINY))).sum())
        T = normalise_rows(counts + added, at.T)
        if not self.calibrates:
            return likelihood, _Point(T)
        of_clean = p[self.n :][np.arange(len(self.y_meta)), self.y_meta]
        likelihood += float(np.log(np.maximum(of_clean, _TINY)).sum()) - at.log_sharpness**2 / 2
        return likelihood, _Point(T, at.log_sharpness + self._sharpening(p, at, of_row))

    def _counts(self, p: NDArray, T: NDArray) -> tuple[NDArray, NDArray]:
        """Counts of (true, noisy), the true label by its posterior; and the likelihood of each noisy row."""
        blocks = np.split(p[: self.n], self.ends)
        of_label = [np.maximum(block @ column, _TINY**2) for block, column in zip(blocks, T.T, strict=True)]
        pulls = [block.T @ (1 / likelihood) for block, likelihood in zip(blocks, of_label, strict=True)]
        return T * np.stack(pulls, axis=1), np.concatenate(of_label)

    def _calibrated(self, log_sharpness: float) -> NDArray:
        """Probabilities at a sharpness; clean rows last."""
        if not self.calibrates:
            return self.proba
        z = math.exp(log_sharpness) * self.log_proba
        z = np.exp(z - z.max(axis=1, keepdims=True)) * self.possible
        return z / z.sum(axis=1, keepdims=True)

    def _sharpening(self, p: NDArray, at: _Point, of_row: NDArray) -> float:
        """Newton step of the log sharpness: log-probabilities at the posterior less those at the probabilities.

        The prior of the log sharpness is unit normal: rows without error would send it to infinity.
        """
        pz = p * self.log_proba
        mean, square = pz.sum(axis=1), (pz * self.log_proba).sum(axis=1)
        posterior = np.concatenate([b @ t for b, t in zip(np.split(pz[: self.n], self.ends), at.T.T, strict=True)])
        of_clean = self.log_proba[self.n :][np.arange(len(self.y_meta)), self.y_meta]
        sharpness = math.exp(at.log_sharpness)
        slope = sharpness * ((posterior / of_row).sum() + of_clean.sum() - mean.sum()) - at.log_sharpness
        bend = sharpness**2 * (square - mean**2).sum() + 1
        return float(np.clip(slope / bend, -0.5, 0.5))


def _shrunk(rows: _Rows, found: EMResult, prior: Any, strength: Any, max_iter: int, tol: float) -> EMResult:
    """Maximise again with the prior's pseudo-rows, until their number settles."""
    settled = 0.0
    for _ in range(_ROUNDS):
        M = _prior_matrix(prior, found.counts)
        a = _evidence_strength(found.counts, M) if strength == "auto" else float(strength)
        if a == settled:
            break
        at = _Point(found.transition_matrix, -math.log(found.temperature))
        found = rows.maximise(at, a * M, max_iter, tol)
        found, settled = found._replace(prior=M, strength=a), a
    return found


def _prior_matrix(prior: Any, counts: NDArray) -> NDArray:
    """Matrix to shrink towards, with the rates of the counts."""
    c = len(counts)
    if isinstance(prior, str):
        return symmetric_noise(c, 1 - np.trace(counts) / counts.sum())
    given = np.asarray(prior)
    if given.ndim == 2:
        return given.astype(np.float64)
    alike = given[:, None] == given
    groups = [np.eye(c, dtype=bool), alike & ~np.eye(c, dtype=bool), ~alike]
    M = sum(g * counts[g].sum() / np.maximum(g.sum(axis=1, keepdims=True), 1) for g in groups)
    return normalise_rows(M, np.eye(c))


def _evidence_strength(counts: NDArray, M: NDArray) -> float:
    """Pseudo-rows per class at which the counts are most likely, T integrated out row by row."""
    n, seen = counts.sum(axis=1), (M > 0) & (counts > 0)
    M, counts = M[seen], counts[seen]

    def evidence(a: float) -> float:
        rows = _log_gamma(a) - _log_gamma(a + n)
        return float(rows.sum() + (_log_gamma(a * M + counts) - _log_gamma(a * M)).sum())

    return float(max(_STRENGTHS, key=evidence))


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


def check_prior(prior: Any, strength: Any, c: int, name: str = "prior", strength_name: str = "strength") -> None:
    """Raise for a prior, or a strength, that `em_transition_matrix` does not know."""
    if isinstance(prior, str) and prior != "symmetric":
        raise ValueError(f'{name}={prior!r}; give "symmetric", superclasses of shape ({c},), a matrix, or None.')
    if prior is not None and not isinstance(prior, str):
        if np.ndim(prior) == 2:
            check_transition_matrix(prior, c, name)
        elif np.shape(prior) != (c,):
            raise ValueError(f"{name} has shape {np.shape(prior)}; give ({c},), a superclass for each class.")
        elif not np.equal(np.asarray(prior, dtype=object), np.asarray(prior, dtype=object)).all():
            raise ValueError(f"{name} has a superclass that is NaN; give each class a superclass.")
    valid = strength == "auto" if isinstance(strength, str) else isinstance(strength, int | float | np.number)
    if not valid or (not isinstance(strength, str) and not 0 <= strength < np.inf):
        raise ValueError(f'{strength_name}={strength!r}; give "auto" or a finite number of at least 0.')
