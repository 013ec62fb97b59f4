"""Standard errors of many entries of T: the same information as a matrix of c (c - 1) rows, without forming it.

A noisy row with label j tells of column j of T alone, so the information is a block for each column; few numbers join
them: the sums that the rows of T leave to their largest entries, and the map that calibrates the classifier. Each block
is a diagonal and a product of low rank. Both inverses follow (Woodbury), exactly.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ._calibration import map_scores

# rows of `_Column.low_rank` that are multiplied at once: for 1,000 classes 24 MB. A choice, not measured
_BATCH = 1000


class _Column(NamedTuple):
    """What the rows with one noisy label say about their column of T.

    Attributes
    ----------
    label : int
    own : ndarray of int
        Rows of T whose largest entry is in this column.
    diagonal : ndarray of shape (c,)
        Inverse of the information's diagonal part; 0 for those rows.
    low_rank : ndarray of shape (k, c)
        The inverse of the block is ``diag(diagonal) - low_rank.T @ low_rank``.
    joining, joined : ndarray of shape (k, n_own + n_map)
        Of the largest entries and of the map: what the rows say of both, and what is left of it after the inverse.
    of_map : ndarray of shape (n_map, n_map) or float
        Information of these rows about the map that is not in `joining`.
    """

    label: int
    own: NDArray[np.intp]
    diagonal: NDArray[np.float64]
    low_rank: NDArray[np.float64]
    joining: NDArray[np.float64]
    joined: NDArray[np.float64]
    of_map: NDArray[np.float64] | float

    def spread(self, of_sums: NDArray, others: NDArray) -> NDArray[np.float64]:
        """Rows over all joining numbers: c sums of rows of T, c products with largest entries, the map."""
        c, n_own = len(self.diagonal), len(self.own)
        rows = np.zeros((len(others), 2 * c + others.shape[1] - n_own))
        rows[:, :c], rows[:, c + self.own], rows[:, 2 * c :] = of_sums, others[:, :n_own], others[:, n_own:]
        return rows


class ArrowInformation:
    """Information about the entries of T that may move, and about the map.

    Parameters
    ----------
    proba : ndarray of shape (n, c)
    y : ndarray of int, shape (n,)
    T : ndarray of shape (c, c)
    precision : ndarray of shape (c, c)
        Of each entry, beside what the rows say: of known pairs and of the prior.
    known : ndarray of shape (c, c)
        The part of it that is of known pairs, also at the largest entry of each row.
    of_map : ndarray of shape (n_map, n_map), optional
        Information about the map beside what the rows say; None where the map is known.

    Attributes
    ----------
    slope : ndarray of shape (c, c)
        Summed scores of the rows.
    """

    def __init__(
        self, proba: NDArray, y: NDArray, T: NDArray, precision: NDArray, known: NDArray, of_map: NDArray | None
    ) -> None:
        self.proba, self.T, self.precision, self.of_map = proba, T, precision, of_map
        self.largest, self.order = T.argmax(axis=1), np.argsort(y, kind="stable")
        self.ends = np.searchsorted(y[self.order], np.arange(len(T) + 1))
        self.slope, self.n_map = np.zeros_like(T), 0 if of_map is None else len(of_map)
        self.core = self._core(known[np.arange(len(T)), self.largest])

    def _columns(self) -> Iterator[_Column]:
        c = len(self.T)
        for j in range(c):
            p = self.proba[self.order[self.ends[j] : self.ends[j + 1]]]
            joint = p * self.T[:, j]
            likelihood = joint.sum(axis=1, keepdims=True)
            of_row = p / likelihood
            scores = np.zeros((len(p), self.n_map))
            if scores.size:
                scores = map_scores(p, joint / likelihood - p)
            self.slope[:, j] = of_row.sum(axis=0)
            of_map: NDArray | float = 0.0
            if len(p) > c:  # c rows say the same
                q, of_row = np.linalg.qr(of_row)
                all_scores, scores = scores, q.T @ scores
                of_map = all_scores.T @ all_scores - scores.T @ scores
            yield self._column(j, of_row, scores, of_map)

    def _batches(self) -> Iterator[tuple[list[_Column], NDArray[np.float64]]]:
        """Some columns together, and ``inverse @ U`` of these less its diagonal part: ``low_rank.T @`` these rows."""
        columns: list[_Column] = []
        for column in self._columns():
            columns.append(column)
            if sum(len(part.low_rank) for part in columns) >= _BATCH or column.label == len(self.T) - 1:
                yield columns, np.concatenate([part.spread(-part.low_rank, part.joined) for part in columns])
                columns = []

    def _column(self, j: int, of_row: NDArray, scores: NDArray, of_map: NDArray | float) -> _Column:
        own = np.flatnonzero(self.largest == j)
        joining = np.hstack([of_row[:, own], scores])
        diagonal, free = 1 / self.precision[:, j], of_row.copy()
        diagonal[own], free[:, own] = 0, 0
        root = np.linalg.cholesky(np.eye(len(free)) + (free * diagonal) @ free.T)
        low_rank, joined = (solve_triangular(root, m, lower=True) for m in (free * diagonal, joining))
        return _Column(j, own, diagonal, low_rank, joining, joined, of_map)

    def _core(self, known: NDArray) -> NDArray[np.float64]:
        """Matrix K of the inverse, ``A^-1 - A^-1 U K U.T A^-1``, of which A has the blocks."""
        c, n = len(self.T), 2 * len(self.T) + self.n_map
        across, grams = np.zeros((n, n)), np.zeros((n, n))
        of_map, of_sums = np.zeros((self.n_map, self.n_map)), np.zeros(c)
        for columns, Y in self._batches():
            G = np.concatenate([part.spread(np.zeros(c), part.joining) for part in columns])
            grams += G.T @ G
            across -= Y.T @ Y
            of_map += sum(part.of_map for part in columns)
            of_sums += sum(part.diagonal for part in columns)
        across += grams
        across[np.arange(c), np.arange(c)] += of_sums
        of_map += grams[2 * c :, 2 * c :]
        middle, sums, products, joint = np.zeros((n, n)), slice(c), slice(c, 2 * c), slice(2 * c, n)
        middle[sums, sums] = grams[products, products] + np.diag(known)
        middle[sums, products] = middle[products, sums] = -np.eye(c)
        if self.of_map is not None:
            inverse = np.linalg.inv(of_map + self.of_map)
            at_largest = grams[products, joint]
            middle[sums, sums] -= at_largest @ inverse @ at_largest.T
            middle[sums, joint] = at_largest @ inverse
            middle[joint, sums] = middle[sums, joint].T
            middle[joint, joint] = -inverse
        core: NDArray = np.linalg.solve((np.eye(n) + across @ middle).T, middle).T
        return (core + core.T) / 2

    def variances(self, shorter: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Variances of the entries that may move, and of the largest entry of each row, which makes up for them.

        Parameters
        ----------
        shorter : callable
            Takes a column's number and its variances; gives factors of the standard deviations, for the sums.

        Returns
        -------
        of_entries : ndarray of shape (c, c)
            0 at the largest entries.
        of_largest : ndarray of shape (c,)
        """
        (c, n), K = (len(self.T), len(self.core)), self.core
        found, of_largest, along = np.zeros((c, c)), np.zeros(c), np.zeros((c, n))
        for columns, Y in self._batches():
            YK, factors, start = Y @ K, [], 0
            for column in columns:
                V, D, rows = column.low_rank, column.diagonal, slice(start, start := start + len(column.low_rank))
                inverse = D - (V**2).sum(axis=0)
                inner = np.einsum("ki,ki->i", V, (YK[rows] @ Y[rows].T) @ V)
                joined = D**2 * np.diag(K)[:c] + 2 * D * (V * YK[rows, :c]).sum(axis=0) + inner
                found[:, column.label] = inverse - joined
                factor = shorter(column.label, found[:, column.label])
                of_largest += factor**2 * inverse
                along[np.arange(c), np.arange(c)] += factor * D
                factors.append(V * factor)
            along += np.concatenate(factors).T @ Y
        return found, of_largest - np.einsum("in,in->i", along @ K, along)
