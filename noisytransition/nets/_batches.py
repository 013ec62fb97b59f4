"""Rows and labels, and batches of them: taken from memory in one go, or from a torch Dataset sample by sample."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    default_collate,
)

Indices = Sequence[int] | NDArray[np.intp]


class Rows(Dataset):
    """Rows of an array with integer labels; a data set that also gives many rows at once.

    Parameters
    ----------
    X : ndarray of shape (n_samples, ...)
    y : ndarray of shape (n_samples,), optional
        Default: zeros, for prediction.

    Attributes
    ----------
    y_noisy : ndarray of shape (n_samples,) or None
        Noisy labels of clean rows, where they are known.
    """

    y_noisy: NDArray | None = None

    def __init__(self, X: Any, y: NDArray | None = None) -> None:
        self.X = X
        self.y = np.zeros(len(X), dtype=np.int64) if y is None else np.asarray(y, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.X[index], self.y[index]

    def batch(self, indices: Indices) -> tuple[Any, Tensor]:
        """Rows and labels at `indices`, as tensors."""
        indices = np.asarray(indices)
        return torch.from_numpy(self.X[indices]), torch.from_numpy(self.y[indices])

    def subset(self, indices: Indices) -> "Rows":
        """Rows at `indices`, as a data set of their own."""
        return type(self)(self.X[indices], self.y[indices])

    def with_labels(self, y: NDArray) -> "Rows":
        """Return the same rows with other labels."""
        return type(self)(self.X, y)


class DatasetRows(Rows):
    """A torch Dataset of inputs with labels beside it, for data that does not fit in memory.

    Parameters
    ----------
    X : Dataset
        Map-style. A sample that is a tuple or list stands for its first element.
    y : ndarray of shape (n_samples,), optional
    """

    def __getitem__(self, index: int) -> tuple[Any, int]:
        sample = self.X[index]
        return (sample[0] if isinstance(sample, tuple | list) else sample), self.y[index]

    def batch(self, indices: Indices) -> tuple[Any, Tensor]:
        """Rows and labels at `indices`, collated sample by sample."""
        return default_collate([self[int(i)] for i in indices])

    def subset(self, indices: Indices) -> "DatasetRows":
        """Rows at `indices`, as a data set of their own."""
        return type(self)(Subset(self.X, [int(i) for i in indices]), self.y[indices])


def concatenate(first: Rows, second: Rows) -> Rows:
    """Rows of two sets as one."""
    y = np.concatenate([first.y, second.y])
    if isinstance(first, DatasetRows) or isinstance(second, DatasetRows):
        return DatasetRows(ConcatDataset([_as_given_by(second, first), _as_given_by(first, second)]), y)
    return Rows(np.concatenate([first.X, second.X]), y)


def _as_given_by(model: Rows, rows: Rows) -> Rows:
    """Rows of an array in the form of a Dataset's samples, which they are to share batches with."""
    sample = model[0][0]
    if isinstance(rows, DatasetRows) or not isinstance(sample, Tensor):
        return rows
    return DatasetRows(TensorDataset(torch.as_tensor(rows.X, dtype=sample.dtype)), rows.y)


def whole(dataset: Any) -> tuple[Any, Any]:
    """Return the data set that a Subset was taken from, and the indices of what was taken."""
    if isinstance(dataset, Subset):
        return dataset.dataset, np.asarray(dataset.indices)
    return dataset, np.arange(len(dataset))


class _Batches(Dataset):
    """A data set whose "index" is a list of indices and whose "sample" is a whole batch."""

    def __init__(self, dataset: Any, collate_fn: Callable | None) -> None:
        self.dataset, self.collate_fn = dataset, collate_fn
        self.rows, self.places = whole(dataset)

    def __getitem__(self, indices: Indices) -> Any:
        if self.collate_fn is None and hasattr(self.rows, "batch"):
            return self.rows.batch(self.places[indices])
        return (self.collate_fn or default_collate)([self.dataset[i] for i in indices])


class _JoinedSampler(BatchSampler):
    """Batches of indices; a last batch of one row joins the one before, for batch normalisation's sake."""

    def __iter__(self) -> Iterator[list[int]]:
        batches = super().__iter__()
        held = next(batches, [])
        for batch in batches:
            if len(batch) == 1 < self.batch_size:
                held = held + batch
            else:
                yield held
                held = batch
        if held:
            yield held

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        joined = not self.drop_last and n > self.batch_size > 1 and n % self.batch_size == 1
        return super().__len__() - joined


class BatchLoader(DataLoader):
    """DataLoader that takes whole batches out of `Rows`, in the order that torch's own loader would give.

    Parameters
    ----------
    dataset : Dataset
    batch_size : int, default=1
    shuffle : bool, default=False
    drop_last : bool, default=False
    sampler : Sampler, optional
        Instead of `shuffle`.
    collate_fn : callable, optional
        Makes a batch of a list of samples.
    **kwargs
        As for `torch.utils.data.DataLoader` (``num_workers``, ``pin_memory``, ...).
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        sampler: Any = None,
        collate_fn: Callable | None = None,
        **kwargs: Any,
    ) -> None:
        if sampler is None:
            sampler = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
        batches = _JoinedSampler(sampler, batch_size, drop_last)
        super().__init__(_Batches(dataset, collate_fn), batch_size=None, sampler=batches, **kwargs)
