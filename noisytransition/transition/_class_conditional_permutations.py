"""Permutations of the noisy labels of a true class, and sums of scores over the rows with each label."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

# rows and sums of permutations that are looked at at once: 32 MB of float64 (a choice, not measured)
_BLOCK_SIZE = 4_000_000
# classes with fewer rows are permuted as a whole, all permutations at once; in larger ones, the rows of wrong labels
# are drawn permutation by permutation, for 10 microseconds each
_FEW_ROWS = 500


class PermutedLabels:
    """The noisy labels of the rows of one true class, and permutations of them.

    A permutation is kept as the rows that get each label. The most frequent label, which has the rows that are left, is
    left out: with centred scores its sum follows from those of the others.

    Parameters
    ----------
    labels : ndarray of int, shape (n,)
        Of at least two kinds.
    n_permutations : int
    random : Generator

    Attributes
    ----------
    names : ndarray of int, shape (n_labels,)
        Sorted labels.
    """

    def __init__(self, labels: NDArray[np.intp], n_permutations: int, random: np.random.Generator) -> None:
        self.n_rows = len(labels)
        self.names, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        self._drawn = np.arange(len(counts)) != counts.argmax()
        self._sizes = counts[self._drawn]
        in_order = np.argsort(codes, kind="stable")
        own = in_order[self._drawn[codes[in_order]]]
        self._rows = np.empty((1 + n_permutations, len(own)), dtype=np.int32)
        self._rows[0] = own
        _draw(self._rows[1:], self.n_rows, random)

    def __len__(self) -> int:
        return len(self._rows)

    def sums(self, scores: NDArray[np.float64]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Sum of scores over the rows with each label, by blocks of permutations, of which the first is the data.

        Parameters
        ----------
        scores : ndarray of shape (n, d)

        Yields
        ------
        permutations : slice
        sums : ndarray of shape (n_permutations, n_labels, d)
        """
        (n_labels, n_drawn), total = (len(self.names), self._rows.shape[1]), scores.sum(axis=0)
        size = max(_BLOCK_SIZE // max(n_drawn, n_labels * scores.shape[1]), 1)
        for start in range(0, len(self), size):
            block = slice(start, min(start + size, len(self)))
            sums = np.empty((block.stop - start, n_labels, scores.shape[1]))
            sums[:, self._drawn] = self._sums_of_drawn(block, scores)
            sums[:, ~self._drawn] = (total - sums[:, self._drawn].sum(axis=1))[:, None]
            yield block, sums

    def _sums_of_drawn(self, block: slice, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of all labels but the most frequent one, by a sparse matrix with a row for each permutation and label."""
        rows = self._rows[block]
        ends = np.concatenate([[0], np.tile(self._sizes, len(rows)).cumsum()])
        indicators = csr_array((np.ones(rows.size), rows.ravel(), ends), shape=(len(ends) - 1, self.n_rows))
        sums: NDArray = indicators @ scores
        return sums.reshape(len(rows), len(self._sizes), -1)


def _draw(drawn: NDArray[np.int32], n: int, random: np.random.Generator) -> None:
    """Fill each row with different ones of n numbers, in random order."""
    if n < _FEW_ROWS:
        whole = np.tile(np.arange(n, dtype=np.int32), (len(drawn), 1))
        drawn[:] = random.permuted(whole, axis=1)[:, : drawn.shape[1]]
        return
    for permutation in drawn:
        permutation[:] = random.choice(n, len(permutation), replace=False)
