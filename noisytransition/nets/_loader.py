"""Loader of batches out of rows, in the order of torch's own loader and with the same draws."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    default_collate,
)

from ._proportional import ProportionalSampler
from ._rows import Batch, Rows


class BatchLoader(DataLoader):
    """DataLoader that takes whole batches out of `Rows`, in the same order as torch's own loader.

    Parameters
    ----------
    dataset : Dataset
        Rows, or any data set of samples.
    batch_size : int, default=1
        Rows in a batch.
    shuffle : bool, default=False
        Draw the rows in a new order in each pass; by their column ``sample_weight``, if they have one.
    drop_last : bool, default=False
        Leave out a last batch with fewer rows.
    sampler : Sampler, optional
        Instead of `shuffle`.
    collate_fn : callable, optional
        Makes inputs and labels of a list of samples.
    **kwargs
        As for `torch.utils.data.DataLoader` (``num_workers``, ``pin_memory``, ...).
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        sampler: Sampler | None = None,
        collate_fn: Callable | None = None,
        **kwargs: Any,
    ) -> None:
        if sampler is None:
            sampler = _shuffled(dataset) if shuffle else SequentialSampler(dataset)  # type: ignore[arg-type]
        batches = JoinedSampler(sampler, batch_size, drop_last)
        super().__init__(dataset, batch_sampler=batches, collate_fn=_Collate(collate_fn), **kwargs)

    def __iter__(self) -> Iterator[Batch]:  # type: ignore[override]
        rows, places = _unwrapped(self.dataset)
        if rows is None or not self._is_plain():
            return map(Batch.of, super().__iter__())
        torch.empty((), dtype=torch.int64).random_(generator=self.generator)  # torch's loader draws a seed for workers
        return self._taken(rows, places)

    def _is_plain(self) -> bool:
        """Whether batches are taken in this process, in an order that is known at the start of an epoch."""
        batches = self.batch_sampler
        collates = isinstance(self.collate_fn, _Collate) and self.collate_fn.collate_fn is None
        return not self.num_workers and collates and type(batches) is JoinedSampler and _is_known(batches.sampler)

    def _taken(self, rows: Rows, places: NDArray | None) -> Iterator[Batch]:
        """Batches without torch's machinery for each of them."""
        for indices in self.batch_sampler.arrays():  # type: ignore[union-attr]
            taken: Any = rows.take(indices if places is None else places[indices])
            batch = Batch(*self.collate_fn(taken))
            yield batch.pin_memory() if self.pin_memory else batch


class _Collate:
    """Collate rows or a list of samples into tensors; a class, since worker processes must unpickle it."""

    def __init__(self, collate_fn: Callable | None) -> None:
        self.collate_fn = collate_fn

    def __call__(self, rows: Rows | list) -> Any:
        if not isinstance(rows, Rows):
            return (self.collate_fn or default_collate)(rows)
        columns = {name: torch.from_numpy(column) for name, column in rows.columns.items()}
        if self.collate_fn is None:
            return rows.inputs(), columns
        x, label = self.collate_fn([rows[i] for i in range(len(rows))])
        return x, columns | {"label": label}


class JoinedSampler(BatchSampler):
    """Batches of indices; a last batch of one row joins the one before: batch normalisation cannot train on one row."""

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
        return super().__len__() - self._joins()

    def _joins(self) -> bool:
        n = len(self.sampler)  # type: ignore[arg-type]
        return not self.drop_last and n > self.batch_size > 1 and n % self.batch_size == 1

    def arrays(self) -> Iterator[NDArray[np.int64]]:
        """The same batches as arrays, of a sampler whose order is known at the start of an epoch."""
        order, size = _order(self.sampler), self.batch_size
        bounds = [*range(0, len(order), size), len(order)]
        if self._joins():
            del bounds[-2]
        elif self.drop_last and len(order) % size:
            del bounds[-1]
        yield from (order[start:stop] for start, stop in pairwise(bounds))


def _unwrapped(dataset: Dataset) -> tuple[Rows | None, NDArray | None]:
    """Rows inside of subsets, if there are any, and which of them the subsets have: None for all."""
    places = None
    while type(dataset) is Subset:
        within = np.asarray(dataset.indices)
        dataset, places = dataset.dataset, within if places is None else within[places]
    return (dataset if isinstance(dataset, Rows) else None), places


def _shuffled(dataset: Any) -> Sampler:
    """Draw all rows once or, where they have different weights, in proportion to these."""
    rows, places = _unwrapped(dataset)
    weights = None if rows is None else rows.columns.get("sample_weight")
    if weights is None or not np.ptp(weights := weights if places is None else weights[places]):
        return RandomSampler(dataset)
    return ProportionalSampler(weights)


def _is_known(sampler: object) -> bool:
    """Whether a sampler draws its order at once, from a generator of its own with a seed of the global one."""
    if type(sampler) is RandomSampler:
        all_once = not sampler.replacement and sampler.num_samples == len(sampler.data_source)
        return all_once and sampler.generator is None
    return type(sampler) in (SequentialSampler, ProportionalSampler)


def _order(sampler: Any) -> NDArray[np.int64]:
    """Indices of an epoch, as torch's sampler draws them."""
    if type(sampler) is SequentialSampler:
        return np.arange(len(sampler))
    if type(sampler) is ProportionalSampler:
        return sampler.order()
    seed = int(torch.empty((), dtype=torch.int64).random_().item())
    return torch.randperm(len(sampler), generator=torch.Generator().manual_seed(seed)).numpy()
