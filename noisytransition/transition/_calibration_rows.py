"""Sums over the noisy rows behind the likelihood of T and of a map that calibrates probabilities.

Both classes compute the same sums; which one is faster depends on the number of classes.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._estimation import TINY

# sums and products of exponentials of smaller logits neither overflow nor vanish
_LARGE_LOGIT = {"d": 300.0, "f": 80.0}
# more numbers are in single precision, which halves the time; sums over blocks are in double precision
_MOST_IN_DOUBLE = 2**17
# numbers in a block of rows: 256 or 512 KiB
_BLOCK_SIZE = 2**16

#: log-likelihood, counts of (true, noisy), and its gradient with respect to b and to the matrix
Sums = tuple[float, NDArray, NDArray, NDArray]


class RowsOfFewClasses:
    """Noisy rows whose logits are ``s u + B u + b``; blocks hold the classes first, and meet all of T at once.

    Parameters
    ----------
    u : ndarray of shape (n, c)
        Centred logarithms of probabilities.
    y : ndarray of int, shape (n,)
        Noisy labels.
    c : int
        Number of classes.
    """

    def __init__(self, u: NDArray, y: NDArray, c: int) -> None:
        self.c, most = c, max(1, _BLOCK_SIZE // c)
        u = _in_precision(u)
        self.dtype = u.dtype
        self.largest = np.abs(u).max(axis=0, initial=0.0)
        starts = (slice(i, i + most) for i in range(0, len(y), most))
        self.blocks = [(np.ascontiguousarray(u[rows].T), y[rows]) for rows in starts]
        # of the labels in a block that is made flat
        self.places = [y * len(y) + np.arange(len(y)) for _, y in self.blocks]

    def sums(self, scale: float, bias: NDArray, matrix: NDArray, T: NDArray) -> Sums:
        """Sums over all rows; the gradient with respect to the matrix is of shape (c, c)."""
        log_likelihood, counts = 0.0, np.zeros((self.c, self.c))
        of_bias, of_matrix = np.zeros(self.c), np.zeros((self.c, self.c))
        of_noisy, of_true = (np.ascontiguousarray(a, dtype=self.dtype) for a in (T.T, T))
        linear, b = (matrix + scale * np.eye(self.c)).astype(self.dtype), bias.astype(self.dtype)[:, None]
        bound = float((np.abs(linear) @ self.largest + np.abs(b[:, 0])).max())
        for (u, _), places in zip(self.blocks, self.places, strict=True):
            p = linear @ u
            p += b
            p = _exp(p, axis=0, bound=bound)
            of_softmax = 1 / p.sum(axis=0)
            of_row = np.maximum((of_noisy @ p).take(places) * of_softmax, TINY**2)
            log_likelihood += float(np.log(of_row).sum(dtype=np.float64))
            of_label = np.zeros_like(p)
            of_label.reshape(-1)[places] = of_softmax / of_row
            counts += p @ of_label.T
            p *= of_true @ of_label - of_softmax  # posterior less softmax: gradient by logits
            of_bias += p.sum(axis=1)
            of_matrix += p @ u.T
        return log_likelihood, T * counts, of_bias, of_matrix


class RowsByLabel:
    """Noisy rows of many classes, whose logits are ``s u + b``; blocks have one label, and meet one column of T.

    Parameters
    ----------
    u : ndarray of shape (n, c)
        Centred logarithms of probabilities.
    y : ndarray of int, shape (n,)
        Noisy labels, sorted.
    c : int
        Number of classes.
    """

    def __init__(self, u: NDArray, y: NDArray, c: int) -> None:
        self.c, self.u = c, _in_precision(u)
        most, edges = max(1, _BLOCK_SIZE // c), np.concatenate([[0], np.bincount(y, minlength=c).cumsum()])
        self.blocks: list[tuple[int, slice]] = []
        for label, (first, end) in enumerate(pairwise(edges.tolist())):
            self.blocks += [(label, slice(i, min(i + most, end))) for i in range(first, end, most)]

    def sums(self, scale: float, bias: NDArray, matrix: Any, T: NDArray) -> Sums:
        """Sums over all rows, without the posterior of each; the gradient by the matrix is of its diagonal alone."""
        log_likelihood, counts = 0.0, np.zeros((self.c, self.c))
        of_bias, of_diagonal, b = np.zeros(self.c), np.zeros(self.c), bias.astype(self.u.dtype)
        for label, rows in self.blocks:
            u, column = self.u[rows], T[:, label].astype(self.u.dtype)
            p = scale * u
            p += b
            p = _exp(p, axis=1)
            sums = p.sum(axis=1)
            of_row = np.maximum(p @ column / sums, TINY**2)
            log_likelihood += float(np.log(of_row).sum(dtype=np.float64))
            of_posterior, of_softmax = 1 / (of_row * sums), 1 / sums
            of_label = column * (of_posterior @ p)
            counts[:, label] += of_label
            of_bias += of_label - of_softmax @ p
            p *= u
            of_diagonal += column * (of_posterior @ p) - of_softmax @ p
        return log_likelihood, counts, of_bias, of_diagonal


def _in_precision(u: NDArray) -> NDArray:
    """Logits, in single precision if there are many."""
    return u.astype(np.float32) if u.size > _MOST_IN_DOUBLE else u


def _exp(z: NDArray, axis: int, bound: float = np.inf) -> NDArray[np.float64]:
    """Exponentials of logits, in their place, each row up to a factor: that of its largest one, if some are large.

    A `bound` of their size saves a look at all of them; it may be wrong by rounding.
    """
    large = _LARGE_LOGIT[z.dtype.char]
    if bound > 0.999 * large and max(z.max(), -z.min()) > large:
        z -= z.max(axis=axis, keepdims=True)
    return np.exp(z, out=z)
