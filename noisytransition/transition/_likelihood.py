"""Log-likelihood of the transition matrix, given class probabilities as they are, and its maximum."""

import numpy as np
from numpy.typing import NDArray

from ._calibration import Maximum
from ._estimation import TINY, finite_log, normalise_rows

# bound of the extrapolation, in steps of expectation-maximisation: beyond, it is seldom accepted
_MAX_EXTRAPOLATION = 1e3
# what an extrapolation leaves of an entry at least: an entry that is 0 stays 0
_SMALLEST_SHARE = 0.05


class Likelihood:
    """Log-likelihood of T: noisy rows with their probabilities as they are, and rows of which both labels are known."""

    def __init__(self, proba: NDArray, y: NDArray, pairs: NDArray) -> None:
        order = np.argsort(y, kind="stable")
        self.pairs = np.asfortranarray(pairs)
        # the rows of noisy label j are one block: counting needs products of a matrix and a vector alone
        self.edges = np.concatenate([[0], np.bincount(y, minlength=len(pairs)).cumsum()])
        self.blocks = np.split(proba[order], self.edges[1:-1])

    def maximise(
        self, T: NDArray, pseudo_counts: NDArray, max_iter: int, tol: float, row_gain: float = -np.inf
    ) -> Maximum:
        """Find the maximum by expectation-maximisation, extrapolated where it is slow (SQUAREM).

        It ends when no entry of T changes by more than `tol`, or the mean log-likelihood of a row by less than
        `row_gain`.
        """
        T, known = np.asfortranarray(T), self.pairs + pseudo_counts  # a step reads and writes T column by column
        log_likelihood, one = self.step(T, known)
        n_iter, gain = 1, np.inf
        while _distance(T, one) > tol and n_iter < max_iter and gain >= row_gain:
            higher, two = self.step(one, known)
            beyond = _extrapolated(T, one, two)
            highest, after = self.step(beyond, known)
            T, now, one = (beyond, highest, after) if highest >= higher else (one, higher, two)
            gain, log_likelihood = (now - log_likelihood) / self.edges[-1], now
            n_iter += 1
        counts = self._counts(T)[0] + self.pairs
        return Maximum(one, counts, None, log_likelihood, _distance(T, one) <= tol, n_iter)

    def step(self, T: NDArray, known: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Log-likelihood at T, and T after a step of expectation-maximisation."""
        counts, log_likelihood = self._counts(T)
        if known.any():
            log_likelihood += float((known * finite_log(T)).sum())
            counts += known
        return log_likelihood, normalise_rows(counts, T)

    def _counts(self, T: NDArray) -> tuple[NDArray[np.float64], float]:
        """Counts of (true, noisy), the true label by its posterior; and the log-likelihood of the noisy rows."""
        counts, likelihood = np.empty(T.shape, order="F"), np.empty(self.edges[-1])
        for j, block in enumerate(self.blocks):  # each is read once while the processor's cache holds it
            of_rows = np.maximum(block @ T[:, j], TINY**2, out=likelihood[self.edges[j] : self.edges[j + 1]])
            np.matmul(1 / of_rows, block, out=counts[:, j])
        counts *= T
        return counts, float(np.log(likelihood, out=likelihood).sum())


def _distance(T: NDArray, other: NDArray) -> float:
    return float(np.abs(T - other).max())


def _extrapolated(T: NDArray, one: NDArray, two: NDArray) -> NDArray[np.float64]:
    """Where two slow steps lead (SQUAREM)."""
    step = one - T
    change = two - one
    change -= step
    length = np.clip(np.linalg.norm(step) / max(float(np.linalg.norm(change)), TINY), 1.0, _MAX_EXTRAPOLATION)
    step *= 2 * length
    step += T
    step += np.multiply(change, length**2, out=change)
    return normalise_rows(np.maximum(step, np.multiply(T, _SMALLEST_SHARE, out=change), out=step), T)
