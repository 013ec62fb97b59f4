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
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    default_collate,
)
from torch.utils.data._utils.pin_memory import pin_memory

from ..meta_gradient._forward_pass import has_parts
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

    def named(self, loss: nn.Module) -> dict[str, Tensor]:
        """Columns that a loss names in its attribute ``columns``."""
        names: Any = getattr(loss, "columns", ())
        if missing := [name for name in names if name not in self.columns]:
            raise ValueError(
                f"{type(loss).__name__} requires the columns {missing}, which this batch does not have. Omit "
                "iterator_train, and a train_split with other samples (predefined_split)."
            )
        return {name: self.columns[name] for name in names}


# Output of a loader: a batch, or inputs and labels or columns
Loaded = Batch | tuple[Any, Tensor | dict[str, Tensor]]


def rows_at_once(rows: Any, batch_size: int) -> int:
    """Batch size for evaluation: larger for small inputs, which are predicted three times as fast.

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
        self.sampler = _by_weight(rows)

    def draw(self, net: "NoisyLabelNet") -> Batch:
        """Draw a batch, prepared for the net: a tuple of inputs and labels."""
        assert self.rows is not None, "the training has ended"
        order = torch.randperm(len(self.rows)).tolist() if self.sampler is None else list(self.sampler)
        batch = _collated(None, self.rows.take(order[: self.size]))
        if getattr(net, "iterator_train__pin_memory", False) and torch.cuda.is_available():  # as the loader does
            batch = pin_memory(batch)
        return net.prepared(batch)

    def release(self) -> None:
        """Release the samples, so that a trained net does not keep them in memory."""
        self.rows = None


# ---------------------------------------------------------------------------- the loader
class BatchLoader(DataLoader):
    """DataLoader that reads whole batches of `Rows`, in the order of torch's loader.

    With `shuffle`, samples are drawn by the column ``sample_weight``, if there is one. `collate_fn` is a function of a
    list of samples that returns inputs and labels.
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
            sampler = (_by_weight(dataset) or RandomSampler(dataset)) if shuffle else SequentialSampler(dataset)
        batches = JoinedSampler(sampler, batch_size, drop_last)
        super().__init__(dataset, batch_sampler=batches, collate_fn=partial(_collated, collate_fn), **kwargs)

    def __iter__(self) -> Iterator[Batch]:  # type: ignore[override]
        return map(Batch.of, super().__iter__())


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
        batches = list(super().__iter__())
        if len(batches) > 1 and len(batches[-1]) == 1 < self.batch_size:
            last = batches.pop()
            batches[-1] += last
        yield from batches

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        joins = not self.drop_last and n > self.batch_size > 1 and n % self.batch_size == 1
        return super().__len__() - joins


def _weights(dataset: Any) -> NDArray | None:
    """Weights of samples, also in Subsets; None if there are none."""
    if isinstance(dataset, Subset):
        weights = _weights(dataset.dataset)
        return None if weights is None else weights[np.asarray(dataset.indices)]
    return dataset.columns.get("sample_weight") if isinstance(dataset, Rows) else None


def _by_weight(dataset: Any) -> "ProportionalSampler | None":
    """Make a sampler in proportion to the weights of samples; None if they are equal."""
    weights = _weights(dataset)
    return None if weights is None or not np.ptp(weights) else ProportionalSampler(weights)


class ProportionalSampler(Sampler[int]):
    """Draw samples in proportion to their positive weights by systematic sampling in random order.

    In n draws, sample i occurs ``n w_i / sum(w)`` times, randomly rounded with this mean. The mean loss of the batches
    thus has the gradient of the weighted mean loss. Madow, "On the Theory of Systematic Sampling, II", Annals of
    Mathematical Statistics, 1949.
    """

    def __init__(self, weights: ArrayLike) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)

    def __len__(self) -> int:
        return len(self.weights)

    def __iter__(self) -> Iterator[int]:
        n = len(self)
        seed = int(torch.empty((), dtype=torch.int64).random_().item())  # as in torch's sampler
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randperm(n, generator=generator).numpy()
        start = torch.rand((), generator=generator).item()
        shares = np.cumsum(self.weights[rows])
        ends = np.floor(n * shares / shares[-1] + start)
        ends[-1] = n  # despite rounding
        drawn = rows.repeat(np.diff(ends, prepend=0.0).astype(np.intp))
        yield from drawn[torch.randperm(n, generator=generator).numpy()].tolist()
