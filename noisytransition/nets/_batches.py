"""Batches of noisy samples, with the order and draws of torch's loader, and batches of clean samples."""

from collections.abc import Callable, Iterator
from functools import partial
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

# For evaluation: inputs of 2 MiB. With 4 MiB, three convolutions of images of 3 x 32 x 32 took up to twice as long, an
# MLP of 784 columns 7 % longer; with 8 MiB, 64 columns gained 7 %
_NUMBERS_AT_ONCE, _MOST_ROWS_AT_ONCE = 2**19, 4096


class Batch(tuple):
    """Inputs and labels of a batch, as the pair that skorch unpacks, with other columns as attributes.

    Attributes
    ----------
    x : Tensor of shape (n, ...), or mapping or tuple of them
        Inputs or their parts, on the device once prepared.
    label : Tensor of shape (n,)
        Class indices.
    columns : dict of str to Tensor of shape (n,)
        All columns, including ``label``.
    logits : Tensor or None
        Logits at the present weights, with their graph, once computed.
    """

    x: Any
    label: Tensor
    columns: dict[str, Tensor]
    logits: Tensor | None

    def __new__(cls, x: Any, columns: dict[str, Tensor]) -> "Batch":
        batch = super().__new__(cls, (x, columns["label"]))
        batch.x = x
        batch.label = columns["label"]
        batch.columns = columns
        batch.logits = None
        return batch

    @classmethod
    def of(cls, loaded: "Loaded") -> "Batch":
        """Convert the output of a loader, which can be a pair of inputs and labels."""
        if isinstance(loaded, cls):
            return loaded
        x, columns = loaded
        return cls(x, columns if isinstance(columns, dict) else {"label": columns})

    def pin_memory(self) -> "Batch":
        """Copy the batch to pinned memory if there is a GPU."""
        if not torch.cuda.is_available():
            return self
        return Batch(each_part(Tensor.pin_memory, self.x), {k: v.pin_memory() for k, v in self.columns.items()})

    def named(self, loss: nn.Module) -> dict[str, Tensor]:
        """Columns that a loss names in its attribute ``columns``."""
        names: Any = loss.columns if hasattr(type(loss), "columns") or "columns" in vars(loss) else ()
        if missing := [name for name in names if name not in self.columns]:
            raise ValueError(
                f"{type(loss).__name__} requires the columns {missing}, which this batch does not have. Omit "
                "iterator_train, and a train_split with other samples (predefined_split)."
            )
        return {name: self.columns[name] for name in names}


# Output of a loader: a batch, or inputs and labels or columns
Loaded = Batch | tuple[Any, Tensor | dict[str, Tensor]]


def rows_at_once(rows: Any, batch_size: int) -> int:
    """Batch size for evaluation: larger than in training for small numeric inputs.

    Integers can be indices of large embeddings, and samples of a Dataset are read one by one.
    """
    if batch_size < 0 or not isinstance(rows, Rows) or isinstance(rows, DatasetRows) or has_parts(rows.source):
        return batch_size
    all_rows = rows.source
    is_small = all_rows.dtype.kind == "f" or all_rows.dtype == np.uint8
    fitting = _NUMBERS_AT_ONCE // max(int(np.prod(all_rows.shape[1:])), 1)
    return max(batch_size, min(fitting, _MOST_ROWS_AT_ONCE)) if is_small else batch_size


def on_device(values: Tensor, device: Any, dtype: torch.dtype | None = None) -> Tensor:
    """Copy to a device and cast; asynchronously from pinned memory."""
    if values.is_pinned():  # cast on the device
        values = values.to(device=device, non_blocking=True)
    return values.to(device=device, dtype=dtype)


class CleanBatches:
    """Batches of clean samples, drawn for each step without replacement or by weight.

    Parameters
    ----------
    rows : Rows
        Clean samples; a column ``sample_weight`` gives weights.
    batch_size : int
        Number of samples in a batch; -1 for all.
    """

    def __init__(self, rows: Rows, batch_size: int) -> None:
        self.rows: Rows | None = rows
        self.size = len(rows) if batch_size < 0 else min(batch_size, len(rows))
        weights = rows.columns.get("sample_weight")
        self.sampler = None if weights is None or not np.ptp(weights) else ProportionalSampler(weights)

    def draw(self, net: "NoisyLabelNet") -> tuple[Any, Tensor]:
        """Draw a batch, prepared for the net."""
        assert self.rows is not None, "the training has ended"
        order = torch.randperm(len(self.rows)).numpy() if self.sampler is None else self.sampler.order()
        batch = Batch.of(_collated(None, self.rows.take(order[: self.size])))
        if getattr(net, "iterator_train__pin_memory", False):  # as the loader does
            batch = batch.pin_memory()
        batch = net.prepared(batch)
        return batch.x, batch.label

    def release(self) -> None:
        """Release the samples, so that a trained net does not keep them in memory."""
        self.rows = None


# ---------------------------------------------------------------------------- the loader
class BatchLoader(DataLoader):
    """DataLoader that reads whole batches of `Rows`, in the order of torch's loader.

    Parameters
    ----------
    dataset : Dataset
        Rows, or any map-style data set.
    batch_size : int, default=1
        Number of samples in a batch.
    shuffle : bool, default=False
        Draw the samples in a new order in each epoch; by the column ``sample_weight``, if there is one.
    drop_last : bool, default=False
        Omit a smaller last batch.
    sampler : Sampler, optional
        In place of `shuffle`.
    collate_fn : callable, optional
        Function of a list of samples that returns inputs and labels.
    **kwargs
        As in `torch.utils.data.DataLoader` (``num_workers``, ``pin_memory``, ...).
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
        super().__init__(dataset, batch_sampler=batches, collate_fn=partial(_collated, collate_fn), **kwargs)

    def __iter__(self) -> Iterator[Batch]:  # type: ignore[override]
        if self.num_workers:
            return map(Batch.of, super().__iter__())
        return self._in_this_process()

    def _in_this_process(self) -> Iterator[Batch]:
        """Yield the batches of torch's loader without its overhead, 8 % of a fit of a small network."""
        torch.empty((), dtype=torch.int64).random_(generator=self.generator)  # torch's loader draws a seed for workers
        data = self.dataset
        for indices in self.batch_sampler:  # type: ignore[union-attr]
            samples = data.__getitems__(indices) if hasattr(data, "__getitems__") else [data[i] for i in indices]
            batch = Batch.of(self.collate_fn(samples))
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
    """Batches of indices. A last batch of one sample joins the previous batch, for batch normalisation."""

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
        joins = not self.drop_last and n > self.batch_size > 1 and n % self.batch_size == 1
        return super().__len__() - joins


def _unwrapped(dataset: Dataset) -> tuple[Rows | None, NDArray | None]:
    """Rows inside nested Subsets, if any, and the positions of the Subset; None for all."""
    places = None
    while type(dataset) is Subset:
        within = np.asarray(dataset.indices)
        places = within if places is None else within[places]
        dataset = dataset.dataset
    return (dataset if isinstance(dataset, Rows) else None), places


def _shuffled(dataset: Any) -> Sampler:
    """Make a sampler that draws all samples once, or in proportion to different weights."""
    rows, places = _unwrapped(dataset)
    weights = None if rows is None else rows.columns.get("sample_weight")
    if weights is None or not np.ptp(weights := weights if places is None else weights[places]):
        return RandomSampler(dataset)
    return ProportionalSampler(weights)


class ProportionalSampler(Sampler[int]):
    """Draw samples in proportion to their weights by systematic sampling in random order (Madow, 1949).

    In n draws, sample i occurs ``n w_i / sum(w)`` times, randomly rounded with this mean. The mean loss of the batches
    thus has the gradient of the weighted mean loss.

    Parameters
    ----------
    weights : array-like of shape (n_samples,)
        Positive weights.

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
        """Indices of an epoch, from a generator seeded by the global generator, as in torch's sampler."""
        n = len(self)
        seed = int(torch.empty((), dtype=torch.int64).random_().item())
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randperm(n, generator=generator).numpy()
        start = torch.rand((), generator=generator).item()
        shares = np.cumsum(self.weights[rows])
        ends = np.floor(n * shares / shares[-1] + start)
        ends[-1] = n  # despite rounding
        drawn = rows.repeat(np.diff(ends, prepend=0.0).astype(np.intp))
        return drawn[torch.randperm(n, generator=generator).numpy()]
