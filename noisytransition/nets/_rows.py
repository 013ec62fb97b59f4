"""Samples with named columns, from arrays, sparse matrices or a torch Dataset."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset, Subset, default_collate

from ..meta_gradient._forward_pass import ARRAYS, each_part, first_part, has_parts

Indices = Sequence[int] | NDArray[np.integer]
# numbers that are copied at once, since batches of them take 5 % less of a fit
_MOST_COPIED = 2**22


class Rows(Dataset):
    """Inputs in an array, with a label and optional other columns per sample.

    A selection refers to the whole array by position; inputs are copied batch by batch.

    Parameters
    ----------
    X : ndarray of shape (n_samples, ...), or mapping of str to such arrays
        Inputs, or their parts by the argument names of the module; arrays are not copied.
    label : array-like of int, shape (n_samples,), optional
        Default: zeros, for prediction.
    **columns : array-like of shape (n_samples,)
        Other columns by name, such as ``noisy_label`` (of clean samples), ``is_clean`` and ``weight``. Losses and
        updates read them by name; `BatchLoader` and `CleanBatches` read ``sample_weight``.

    Attributes
    ----------
    source : ndarray
        Inputs that these samples were selected from.
    index : ndarray of int or None
        Positions of these samples in the source; None for all.
    columns : dict of str to ndarray
        All columns of these samples, including ``label``.
    label : ndarray of int
        Labels as class indices.
    """

    def __init__(self, X: Any, label: ArrayLike | None = None, **columns: ArrayLike) -> None:
        self.source: Any = X
        self.index: NDArray[np.integer] | None = None
        some = first_part(X) if isinstance(X, Mapping) else X
        label = np.zeros(some.shape[0] if issparse(some) else len(some), dtype=np.int64) if label is None else label
        self.columns = _as_columns({"label": label} | columns)
        self.label: NDArray[np.int64] = self.columns["label"]

    @property
    def X(self) -> Any:
        """Inputs in the form in which they were given; a copy for a selection."""
        return self.source if self.index is None else each_part(lambda part: part[self.index], self.source)

    @property
    def positions(self) -> NDArray[np.integer]:
        """Positions of these samples in the source."""
        return np.arange(len(self)) if self.index is None else self.index

    @property
    def sample_shape(self) -> Any:
        """Shape of the input of one sample, or of each of its parts."""
        return each_part(lambda part: tuple(part.shape[1:]), self.source)

    def part(self, name: str) -> "Rows":
        """Select one part of the inputs."""
        rows = copy(self)
        rows.source = self.source[name]
        return rows

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """Input and label of one sample."""
        return each_part(lambda part: part[0], self.take([index]).dense()), self.label[index]

    def take(self, indices: Indices) -> "Rows":
        """Select samples by position with all columns, without copying inputs."""
        indices = np.asarray(indices)
        rows = copy(self)
        rows.index = indices if self.index is None else self.index[indices]
        rows.columns = {name: column[indices] for name, column in self.columns.items()}
        rows.label = rows.columns["label"]
        return rows

    #: read by torch's loader, also through a `Subset`
    __getitems__ = take

    def with_columns(self, **columns: ArrayLike | None) -> "Rows":
        """Add or replace columns except None; scalars are repeated."""
        rows = copy(self)
        given = {k: np.broadcast_to(v, len(self)) for k, v in columns.items() if v is not None}
        rows.columns = self.columns | _as_columns(given)
        rows.label = rows.columns["label"]
        return rows

    def inputs(self) -> Any:
        """All inputs, as one batch of tensors."""
        return each_part(torch.from_numpy, self.dense())

    def dense(self) -> Any:
        """All inputs, as one array, or one for each part."""
        return each_part(np.asarray, self.X)


class SparseRows(Rows):
    """Inputs in a sparse matrix, converted to dense batch by batch.

    Parameters
    ----------
    X : CSR array of shape (n_samples, n_features)
        Inputs; the matrix is not copied.
    label, **columns
        As in `Rows`.
    """

    def dense(self) -> NDArray:
        """All inputs, as one dense array."""
        return self.X.toarray()


class DatasetRows(Rows):
    """Inputs in a torch Dataset, for data that does not fit in memory.

    Parameters
    ----------
    X : Dataset
        Map-style, or a list. A sample is an input, or a tuple or list of an input and its label. An input is an array
        or number, or several parts: a mapping, or a tuple of arrays, optionally followed by the label.
    label, **columns
        As in `Rows`.
    """

    @property
    def X(self) -> Any:
        """The Dataset; a Subset for a selection."""
        return self.source if self.index is None else Subset(self.source, self.index.tolist())

    @property
    def sample_shape(self) -> Any:
        """Shape of the input of the first sample, or of each of its parts."""
        return each_part(lambda part: tuple(np.shape(part)), self[0][0])

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """Input and label of one sample."""
        return separated(self.source[index if self.index is None else int(self.index[index])])[0], self.label[index]

    def inputs(self) -> Any:
        """All inputs, as one batch of tensors, collated sample by sample."""
        return default_collate([self[i][0] for i in range(len(self))])


def _as_columns(columns: Mapping[str, ArrayLike]) -> dict[str, NDArray]:
    """Convert columns to arrays and labels to int64."""
    return {k: np.asarray(v, dtype=np.int64 if k == "label" else None) for k, v in columns.items()}


def separated(sample: Any) -> tuple[Any, Sequence]:
    """Split a sample into its input, including arrays that follow an array, and the rest, such as a label."""
    if not isinstance(sample, tuple | list) or not sample:
        return sample, ()
    n = 1
    while not has_parts(sample[0]) and n < len(sample) and isinstance(sample[n], ARRAYS) and sample[n].ndim:
        n += 1
    return (sample[0] if n == 1 else tuple(sample[:n])), sample[n:]


def as_rows(X: Any) -> Rows:
    """Make rows of an array, a mapping of arrays, a CSR matrix, or samples in a torch Dataset or a list."""
    return (DatasetRows if isinstance(X, Dataset | list) else SparseRows if issparse(X) else Rows)(X)


def canonical(X: Any) -> Any:
    """Convert a sparse matrix to CSR with sorted indices, without duplicates or explicit zeros; copy only if needed."""
    rows = csr_array(X)
    if rows.has_canonical_format and np.count_nonzero(rows.data) == rows.nnz:
        return rows
    rows = rows.copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


# ---------------------------------------------------------------------------- two sets of rows as one
def noisy_and_clean(first: Rows, second: Rows) -> Rows:
    """Concatenate noisy and clean samples, marked by a column ``is_clean``; large inputs are copied batch by batch.

    Other columns are kept if both have them. Samples without a ``sample_weight`` get the weight 1.
    """
    first = first.with_columns(is_clean=False)
    second = second.with_columns(is_clean=True)
    if "sample_weight" in first.columns | second.columns:
        first = first.with_columns(sample_weight=first.columns.get("sample_weight", 1.0))
        second = second.with_columns(sample_weight=second.columns.get("sample_weight", 1.0))
    shared = [name for name in first.columns if name in second.columns]
    columns = {name: np.concatenate([first.columns[name], second.columns[name]]) for name in shared}
    if isinstance(first, DatasetRows) or isinstance(second, DatasetRows):
        return DatasetRows(ConcatDataset([_like_samples_of(second, first), _like_samples_of(first, second)]), **columns)
    if has_parts(first.source):
        return Rows({name: _Both(first.part(name), second.part(name)) for name in first.source}, **columns)
    inputs = _Both(first, second)
    is_copied = type(first) is type(second) is Rows and np.prod(inputs.shape) <= _MOST_COPIED
    return Rows(np.asarray(inputs) if is_copied else inputs, **columns)


class _Both:
    """Inputs of two sets of samples, dense or sparse, as one array that is read part by part."""

    def __init__(self, first: Rows, second: Rows) -> None:
        self.first = first
        self.second = second
        none = np.concatenate([rows.take(np.arange(0)).dense() for rows in (first, second)])  # raises if shapes differ
        self.dtype = none.dtype
        self.shape = (len(first) + len(second), *none.shape[1:])

    def __getitem__(self, indices: NDArray[np.integer]) -> NDArray:
        """Inputs at `indices`, as one dense array."""
        found = np.empty((len(indices), *self.shape[1:]), self.dtype)
        n = len(self.first)
        indices = np.where(indices < 0, indices + self.shape[0], indices)
        in_first = indices < n
        found[in_first] = self.first.take(indices[in_first]).dense()
        found[~in_first] = self.second.take(indices[~in_first] - n).dense()
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        """All inputs, as one dense array."""
        return self[np.arange(self.shape[0])].astype(dtype or self.dtype, copy=False)


def _like_samples_of(model: Rows, rows: Rows) -> Rows:
    """Convert array samples to the type of a Dataset's samples, so that one batch can have both."""
    sample = model[0][0]
    if isinstance(rows, DatasetRows) or not isinstance(first_part(sample), Tensor):
        return rows
    dtypes = each_part(lambda part: torch.as_tensor(part).dtype, sample)
    inputs = [rows[i][0] for i in range(len(rows))]
    samples = [each_part(lambda part, dtype: torch.as_tensor(part, dtype=dtype), x, dtypes) for x in inputs]
    return DatasetRows(samples, rows.label)
