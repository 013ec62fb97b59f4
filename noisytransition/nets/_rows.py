"""Rows with named columns, and batches of them: from arrays or sparse matrices in memory, or from a torch Dataset."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse, vstack
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset, Subset, default_collate

if TYPE_CHECKING:
    from ._net import NoisyLabelNet

# in a forward pass without training: inputs of 4 MiB, a choice; four times as many rows of 64 columns gain 7 %
_NUMBERS_AT_ONCE, _MOST_ROWS_AT_ONCE = 2**20, 4096
Indices = Sequence[int] | NDArray[np.integer]


class Rows(Dataset):
    """Inputs in an array, with a label and optional other columns for each row.

    Parameters
    ----------
    X : ndarray of shape (n_samples, ...)
    label : array-like of int, shape (n_samples,), optional
        Default: zeros, for prediction.
    **columns : array-like of shape (n_samples,)
        Other columns by name, such as ``noisy_label`` (of clean rows, where known), ``trusted``, ``group`` and
        ``weight``. Losses and updates read them by name.

    Attributes
    ----------
    columns : dict of str to ndarray
        All columns, including ``label``.
    """

    def __init__(self, X: Any, label: ArrayLike | None = None, **columns: ArrayLike) -> None:
        self.X = X
        label = np.zeros(len(X), dtype=np.int64) if label is None else np.asarray(label, dtype=np.int64)
        self.columns = {"label": label} | {name: np.asarray(column) for name, column in columns.items()}

    @property
    def label(self) -> NDArray[np.int64]:
        """Labels as class indices."""
        return self.columns["label"]

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """Input and label of one row."""
        return self.X[index], self.label[index]

    def __getitems__(self, indices: Indices) -> "Rows":
        """Several rows at once, which torch's loader asks for, also through a `Subset`."""
        return self.take(indices)

    def take(self, indices: Indices) -> "Rows":
        """Rows at `indices`, with all columns."""
        indices = np.asarray(indices)
        return type(self)(self._inputs(indices), **{name: column[indices] for name, column in self.columns.items()})

    def with_columns(self, **columns: ArrayLike) -> "Rows":
        """Return the same rows with columns added or replaced; a scalar is repeated for all rows."""
        given = {name: np.broadcast_to(np.asarray(column), len(self)) for name, column in columns.items()}
        return type(self)(self.X, **(self.columns | given))

    def inputs(self) -> Any:
        """All inputs, as one batch of tensors."""
        return torch.from_numpy(self.X)

    def _inputs(self, indices: NDArray[np.integer]) -> Any:
        return gathered(self.X, indices)


class SparseRows(Rows):
    """Inputs in a sparse matrix, made dense batch by batch.

    Parameters
    ----------
    X : CSR array of shape (n_samples, n_features)
    label, **columns
        As in `Rows`.
    """

    def __init__(self, X: Any, label: ArrayLike | None = None, **columns: ArrayLike) -> None:
        super().__init__(X, np.zeros(X.shape[0], dtype=np.int64) if label is None else label, **columns)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """Input, as a dense array, and label of one row."""
        return self.X[[index]].toarray()[0], self.label[index]

    def inputs(self) -> Any:
        """All inputs, as one dense batch."""
        return torch.from_numpy(self.X.toarray())

    def _inputs(self, indices: NDArray[np.integer]) -> Any:
        return self.X[indices]


class DatasetRows(Rows):
    """Inputs in a torch Dataset, for data that does not fit in memory.

    Parameters
    ----------
    X : Dataset
        Map-style. Of a sample that is a tuple or list, the first element is the input.
    label, **columns
        As in `Rows`.
    """

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """Input and label of one row."""
        sample = self.X[index]
        return (sample[0] if isinstance(sample, tuple | list) else sample), self.label[index]

    def inputs(self) -> Any:
        """All inputs, as one batch of tensors, collated sample by sample."""
        return default_collate([self[i][0] for i in range(len(self))])

    def _inputs(self, indices: NDArray[np.integer]) -> Any:
        return Subset(self.X, indices.tolist())


def as_rows(X: Any, label: ArrayLike | None = None, **columns: ArrayLike | None) -> Rows:
    """Rows of an array, a CSR matrix or a torch Dataset, with those columns that are not None."""
    kind = DatasetRows if isinstance(X, Dataset) else SparseRows if issparse(X) else Rows
    return kind(X, label, **{name: column for name, column in columns.items() if column is not None})


def gathered(X: NDArray, indices: NDArray[np.integer]) -> NDArray:
    """Rows of an array; `take` is several times faster than indexing, but copies all of an array in another order."""
    return X.take(indices, axis=0) if X.flags.c_contiguous and indices.dtype.kind == "i" else X[indices]


def concatenate(first: Rows, second: Rows) -> Rows:
    """Concatenate two sets of rows, with the columns that both have."""
    shared = [name for name in first.columns if name in second.columns]
    columns = {name: np.concatenate([first.columns[name], second.columns[name]]) for name in shared}
    if isinstance(first, DatasetRows) or isinstance(second, DatasetRows):
        return DatasetRows(ConcatDataset([_like_samples_of(second, first), _like_samples_of(first, second)]), **columns)
    if isinstance(first, SparseRows) or isinstance(second, SparseRows):
        return SparseRows(vstack([csr_array(first.X), csr_array(second.X)], format="csr"), **columns)
    return Rows(np.concatenate([first.X, second.X]), **columns)


def _like_samples_of(model: Rows, rows: Rows) -> Rows:
    """Convert rows of an array to the type of a Dataset's samples, so that both can be in one batch."""
    sample = model[0][0]
    if isinstance(rows, DatasetRows) or not isinstance(sample, Tensor):
        return rows
    return DatasetRows(_Tensors(rows, sample.dtype), rows.label)


class _Tensors(Dataset):
    """Inputs of rows as tensors of one type, converted when they are read."""

    def __init__(self, rows: Rows, dtype: torch.dtype) -> None:
        self.rows, self.dtype = rows, dtype

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Tensor:
        return torch.as_tensor(self.rows[index][0], dtype=self.dtype)


# ---------------------------------------------------------------------------- batches
class Batch(tuple):
    """Inputs and labels of some rows, as the pair that skorch unpacks, with the other columns as attributes.

    Attributes
    ----------
    x : Tensor of shape (n, ...)
    label : Tensor of shape (n,)
    columns : dict of str to Tensor of shape (n,)
    clean : tuple of (Tensor, Tensor) or None
        Clean inputs and labels, once they are drawn for this step.
    logits : Tensor or None
        Logits of the module at its present weights, with their graph, once they are computed.
    """

    columns: dict[str, Tensor]
    clean: tuple[Tensor, Tensor] | None
    logits: Tensor | None

    def __new__(cls, x: Tensor, columns: dict[str, Tensor]) -> "Batch":
        batch = super().__new__(cls, (x, columns["label"]))
        batch.columns, batch.clean, batch.logits = columns, None, None
        return batch

    @classmethod
    def of(cls, loaded: "Loaded") -> "Batch":
        """Convert what a loader yields, which may be a plain pair of inputs and labels."""
        if isinstance(loaded, cls):
            return loaded
        x, columns = loaded
        return cls(x, columns if isinstance(columns, dict) else {"label": columns})

    @property
    def x(self) -> Tensor:
        """Inputs."""
        return self[0]

    @property
    def label(self) -> Tensor:
        """Labels."""
        return self[1]


# what a loader yields: a batch, or inputs and labels or columns
Loaded = Batch | tuple[Tensor, Tensor | dict[str, Tensor]]


def rows_at_once(rows: Any, batch_size: int) -> int:
    """Rows in a forward pass without training: more than in training where they are small numbers in memory.

    Integers may be indices of embeddings, which are larger, and samples of a Dataset are read one by one.
    """
    if batch_size < 0 or not isinstance(rows, Rows) or isinstance(rows, DatasetRows):
        return batch_size
    is_small = rows.X.dtype.kind == "f" or rows.X.dtype == np.uint8
    fitting = _NUMBERS_AT_ONCE // max(int(np.prod(rows.X.shape[1:])), 1)
    return max(batch_size, min(fitting, _MOST_ROWS_AT_ONCE)) if is_small else batch_size


class CleanBatches:
    """Batches of clean rows, drawn for each step without replacement.

    Parameters
    ----------
    rows : Rows
    batch_size : int
        Rows in a batch; -1 for all.
    joint : bool, default=False
        Whether clean and noisy rows go through the module as one batch, also for batch normalisation.
    """

    def __init__(self, rows: Rows, batch_size: int, *, joint: bool = False) -> None:
        self.rows: Rows | None = rows
        self.size = len(rows) if batch_size < 0 else min(batch_size, len(rows))
        self.joint = joint

    def draw(self, net: "NoisyLabelNet") -> tuple[Tensor, Tensor]:
        """Draw a batch, prepared for the net."""
        assert self.rows is not None, "the training has ended"
        rows = self.rows.take(torch.randperm(len(self.rows))[: self.size].numpy())
        return net.prepare(rows.inputs()), torch.from_numpy(rows.label).to(net.device)

    def release(self) -> None:
        """Drop the rows, so that a trained net does not keep them."""
        self.rows = None
