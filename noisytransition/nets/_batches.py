"""Batches of rows: the loader, with the order of torch's own loader and the same draws, and batches of clean rows."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
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

from ..meta_gradient._forward_pass import each_part, has_parts
from ._rows import DatasetRows, Rows

if TYPE_CHECKING:
    from ._net import NoisyLabelNet

# in a forward pass without training: inputs of 2 MiB; with twice as many, three convolutions of images of 3 x 32 x 32
# took up to twice as long, an MLP of 784 columns 7 % longer; four times as many rows of 64 columns gain 7 %
_NUMBERS_AT_ONCE, _MOST_ROWS_AT_ONCE = 2**19, 4096


class Batch(tuple):
    """Inputs and labels of some rows, as the pair that skorch unpacks, with the other columns as attributes.

    Attributes
    ----------
    x : Tensor of shape (n, ...), or mapping or tuple of them
        Inputs or their parts, on the device once the net has prepared them.
    label : Tensor of shape (n,)
        Class indices.
    columns : dict of str to Tensor of shape (n,)
        All columns, including ``label``.
    clean : tuple of (inputs, Tensor) or None
        Clean inputs and labels, once they are drawn for this step.
    logits : Tensor or None
        Logits of the module at its present weights, with their graph, once they are computed.
    """

    x: Any
    label: Tensor
    columns: dict[str, Tensor]
    clean: tuple[Any, Tensor] | None
    logits: Tensor | None

    def __new__(cls, x: Any, columns: dict[str, Tensor]) -> "Batch":
        batch = super().__new__(cls, (x, columns["label"]))
        batch.x, batch.label, batch.columns = x, columns["label"], columns
        batch.clean = batch.logits = None
        return batch

    @classmethod
    def of(cls, loaded: "Loaded") -> "Batch":
        """Convert what a loader yields, which may be a plain pair of inputs and labels."""
        if isinstance(loaded, cls):
            return loaded
        x, columns = loaded
        return cls(x, columns if isinstance(columns, dict) else {"label": columns})

    def pin_memory(self) -> "Batch":
        """Return the batch in pinned memory, where there is a GPU."""
        x, columns = self.x, self.columns
        return Batch(each_part(pinned, x), {name: pinned(column) for name, column in columns.items()})

    def named(self, loss: nn.Module) -> dict[str, Tensor]:
        """Columns that a loss names as arguments, in its attribute ``columns``."""
        names: Any = loss.columns if hasattr(type(loss), "columns") or "columns" in vars(loss) else ()
        if missing := [name for name in names if name not in self.columns]:
            raise ValueError(
                f"{type(loss).__name__} needs the columns {missing} of the rows, which this batch does not have: leave "
                "out iterator_train, and a train_split of other rows (predefined_split)."
            )
        return {name: self.columns[name] for name in names}


# what a loader yields: a batch, or inputs and labels or columns
Loaded = Batch | tuple[Any, Tensor | dict[str, Tensor]]


def rows_at_once(rows: Any, batch_size: int) -> int:
    """Rows in a forward pass without training: more than in training where they are small numbers in memory.

    Integers may be indices of embeddings, which are larger, and samples of a Dataset are read one by one.
    """
    if batch_size < 0 or not isinstance(rows, Rows) or isinstance(rows, DatasetRows) or has_parts(rows.source):
        return batch_size
    all_rows = rows.source
    is_small = all_rows.dtype.kind == "f" or all_rows.dtype == np.uint8
    fitting = _NUMBERS_AT_ONCE // max(int(np.prod(all_rows.shape[1:])), 1)
    return max(batch_size, min(fitting, _MOST_ROWS_AT_ONCE)) if is_small else batch_size


def pinned(values: Tensor) -> Tensor:
    """Copy to pinned memory, where there is a GPU."""
    return values.pin_memory() if torch.cuda.is_available() else values


def on_device(values: Tensor, device: Any, dtype: torch.dtype | None = None) -> Tensor:
    """Copy to a device and cast; the processor goes on meanwhile if the values are in pinned memory."""
    if values.is_pinned():  # a cast on the way would be the processor's
        values = values.to(device=device, non_blocking=True)
    return values.to(device=device, dtype=dtype)


class CleanBatches:
    """Batches of clean rows, drawn for each step: without replacement, or by their weights.

    Parameters
    ----------
    rows : Rows
        The clean rows; by their column ``sample_weight``, if they have one.
    batch_size : int
        Rows in a batch; -1 for all.
    joint : bool, default=False
        Whether clean and noisy rows go through the module as one batch, also for batch normalisation.
    """

    def __init__(self, rows: Rows, batch_size: int, *, joint: bool = False) -> None:
        self.rows: Rows | None = rows
        self.size = len(rows) if batch_size < 0 else min(batch_size, len(rows))
        self.joint = joint
        weights = rows.columns.get("sample_weight")
        self.sampler = None if weights is None or not np.ptp(weights) else ProportionalSampler(weights)

    def draw(self, net: "NoisyLabelNet") -> tuple[Any, Tensor]:
        """Draw a batch, prepared for the net."""
        assert self.rows is not None, "the training has ended"
        order = torch.randperm(len(self.rows)).numpy() if self.sampler is None else self.sampler.order()
        rows = self.rows.take(order[: self.size])
        inputs, label = rows.inputs(), torch.from_numpy(rows.label)
        if getattr(net, "iterator_train__pin_memory", False):  # as the loader does
            inputs, label = each_part(pinned, inputs), pinned(label)
        return net.prepare(inputs), on_device(label, net.device)

    def release(self) -> None:
        """Drop the rows, so that a trained net does not keep them."""
        self.rows = None


# ---------------------------------------------------------------------------- the loader
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
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        sampler: Sampler | None = None,
        collate_fn: Callable | None = None,
        **kwargs: Any,
    ) -> None:
        if sampler is None:
            sampler = _shuffled(dataset) if shuffle else SequentialSampler(dataset)
        batches = JoinedSampler(sampler, batch_size, drop_last)
        self.collates = collate_fn is None
        super().__init__(dataset, batch_sampler=batches, collate_fn=partial(_collated, collate_fn), **kwargs)

    def __iter__(self) -> Iterator[Batch]:  # type: ignore[override]
        rows, places = _unwrapped(self.dataset)
        batches = self.batch_sampler
        # batches are taken in this process, in an order that is known at the start of an epoch
        is_known = type(batches) is JoinedSampler and _is_known(batches.sampler)
        if rows is None or self.num_workers or not (is_known and self.collates):
            return map(Batch.of, super().__iter__())
        torch.empty((), dtype=torch.int64).random_(generator=self.generator)  # torch's loader draws a seed for workers
        return self._taken(rows, places)

    def _taken(self, rows: Rows, places: NDArray | None) -> Iterator[Batch]:
        """Batches without torch's machinery for each of them."""
        for indices in self.batch_sampler.arrays():  # type: ignore[union-attr]
            batch = Batch(*_collated(None, rows.take(indices if places is None else places[indices])))
            yield batch.pin_memory() if self.pin_memory else batch


def _collated(collate_fn: Callable | None, rows: Rows | list) -> Any:
    """Tensors of rows or of a list of samples."""
    if not isinstance(rows, Rows):
        return (collate_fn or default_collate)(rows)
    columns = {name: torch.from_numpy(column) for name, column in rows.columns.items()}
    if collate_fn is None:
        return rows.inputs(), columns
    x, label = collate_fn([rows[i] for i in range(len(rows))])
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


class ProportionalSampler(Sampler[int]):
    """Draw rows in proportion to their weights, as evenly as possible (systematic sampling in a random order).

    Of n draws, row i has ``n w_i / sum(w)``, rounded down or up at random so that this is the mean over epochs. So the
    mean loss of the batches has the gradient of the weighted mean loss, whatever the loss is.

    Parameters
    ----------
    weights : array-like of shape (n_samples,)
        Positive.

    References
    ----------
    Madow, "On the Theory of Systematic Sampling, II", Annals of Mathematical Statistics, 1949.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from noisytransition.nets._batches import ProportionalSampler
    >>> sampler, _ = ProportionalSampler([2.0, 1.0, 0.5, 0.5]), torch.manual_seed(0)
    >>> [np.bincount(list(sampler), minlength=4).tolist() for _ in range(3)]
    [[2, 1, 0, 1], [2, 1, 1, 0], [2, 1, 1, 0]]
    """

    def __init__(self, weights: ArrayLike) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)

    def __len__(self) -> int:
        return len(self.weights)

    def __iter__(self) -> Iterator[int]:
        yield from self.order().tolist()

    def order(self) -> NDArray[np.int64]:
        """Indices of an epoch, from a generator with a seed of the global one, as torch's sampler has it."""
        n, seed = len(self), int(torch.empty((), dtype=torch.int64).random_().item())
        generator = torch.Generator().manual_seed(seed)
        rows, start = torch.randperm(n, generator=generator).numpy(), torch.rand((), generator=generator).item()
        shares = np.cumsum(self.weights[rows])
        ends = np.floor(n * shares / shares[-1] + start)
        ends[-1] = n  # also where rounding makes it more
        drawn = rows.repeat(np.diff(ends, prepend=0.0).astype(np.intp))
        return drawn[torch.randperm(n, generator=generator).numpy()]
