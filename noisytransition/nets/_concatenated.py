"""Two sets of rows as one, without a copy of their inputs."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset

from ._rows import DatasetRows, Rows


def concatenate(first: Rows, second: Rows) -> Rows:
    """Concatenate two sets of rows, with the columns that both have; inputs are copied batch by batch."""
    shared = [name for name in first.columns if name in second.columns]
    columns = {name: np.concatenate([first.columns[name], second.columns[name]]) for name in shared}
    if isinstance(first, DatasetRows) or isinstance(second, DatasetRows):
        return DatasetRows(ConcatDataset([_like_samples_of(second, first), _like_samples_of(first, second)]), **columns)
    return Rows(_Both(first, second), **columns)


class _Both:
    """Inputs of two sets of rows, arrays or sparse, as one array that is read part by part."""

    def __init__(self, first: Rows, second: Rows) -> None:
        self.first, self.second, no_row = first, second, np.arange(0)
        none = np.concatenate([first.take(no_row).dense(), second.take(no_row).dense()])  # raises if shapes differ
        self.dtype, self.shape = none.dtype, (len(first) + len(second), *none.shape[1:])

    def __getitem__(self, indices: NDArray[np.integer]) -> NDArray:
        """Inputs at `indices`, as one dense array."""
        found, n = np.empty((len(indices), *self.shape[1:]), self.dtype), len(self.first)
        indices = np.where(indices < 0, indices + self.shape[0], indices)
        in_first = indices < n
        found[in_first] = self.first.take(indices[in_first]).dense()
        found[~in_first] = self.second.take(indices[~in_first] - n).dense()
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        """All inputs, as one dense array."""
        return self[np.arange(self.shape[0])].astype(dtype or self.dtype, copy=False)


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
