"""Samples with named columns, from arrays, sparse matrices or a torch Dataset, and batches of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, vstack
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    default_collate,
)

from ..meta_gradient._forward_pass import ARRAYS, each_part, first_part, has_parts

if TYPE_CHECKING:
    from ._net import NoisyLabelNet


class Rows(Dataset):
    """Inputs in an array, with a label and optional other columns per sample.

    A selection refers to the whole array by position; inputs are copied batch by batch.

    Parameters
    ----------
    X : ndarray of shape (n_samples, ...), CSR array, or mapping of str to arrays
        Inputs, or their parts by the argument names of the module; arrays are not copied. Batches of a CSR array are
        dense.
    label : array-like of int, shape (n_samples,), optional
        Default: zeros, for prediction.
    **columns : array-like of shape (n_samples,)
        Other columns by name, such as ``is_clean`` and ``weight``. Losses and updates read them by name; `BatchLoader`
        and `CleanBatches` read ``sample_weight``.

    Attributes
    ----------
    source, index
        Inputs that these samples were selected from, and their positions there; None for all.
    columns : dict of str to ndarray
        All columns of these samples, including ``label``.
    """

    def __init__(self, X: Any, label: ArrayLike | None = None, **columns: ArrayLike) -> None:
        self.source: Any = X
        self.index: NDArray[np.integer] | None = None
        if label is None:
            some = first_part(X) if isinstance(X, Mapping) else X
            label = np.zeros(some.shape[0] if issparse(some) else len(some))
        self.label: NDArray[np.int64] = np.asarray(label, dtype=np.int64)
        self.columns = {"label": self.label} | {name: np.asarray(column) for name, column in columns.items()}

    @property
    def X(self) -> Any:
        """Inputs in the form in which they were given; a copy for a selection."""
        return self.source if self.index is None else each_part(lambda part: part[self.index], self.source)

    @property
    def sample_shape(self) -> Any:
        """Shape of the input of one sample, or of each of its parts."""
        return each_part(lambda part: tuple(part.shape[1:]), self.source)

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """Input and label of one sample."""
        return each_part(lambda part: part.numpy()[0], self.take([index]).inputs()), self.label[index]

    def take(self, indices: Sequence[int] | NDArray[np.integer]) -> "Rows":
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
        added = {name: np.broadcast_to(column, len(self)) for name, column in columns.items() if column is not None}
        rows.columns = self.columns | added
        rows.label = rows.columns["label"]
        return rows

    def inputs(self) -> Any:
        """All inputs, as one batch of dense tensors."""
        return each_part(lambda part: torch.from_numpy(part.toarray() if issparse(part) else np.asarray(part)), self.X)


class DatasetRows(Rows):
    """Inputs in a torch Dataset, for data that does not fit in memory.

    Parameters
    ----------
    X, label, **columns
        As in `Rows`; X is a map-style Dataset, or a list. A sample is an input, or a tuple or list of an input and its
        label. An input is an array or number, or several parts: a mapping, or a tuple of arrays, optionally followed by
        the label.
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
        return default_collate([each_part(torch.as_tensor, self[i][0]) for i in range(len(self))])


def separated(sample: Any) -> tuple[Any, Sequence]:
    """Split a sample into its input, including arrays that follow an array, and the rest, such as a label."""
    if not isinstance(sample, tuple | list) or not sample:
        return sample, ()
    n = 1
    while not has_parts(sample[0]) and n < len(sample) and isinstance(sample[n], ARRAYS) and sample[n].ndim:
        n += 1
    return (sample[0] if n == 1 else tuple(sample[:n])), sample[n:]


# ---------------------------------------------------------------------------- two sets of rows as one
def noisy_and_clean(first: Rows, second: Rows) -> Rows:
    """Concatenate noisy and clean samples, marked by a column ``is_clean``; dense inputs are not copied.

    Other columns are kept if both have them. Samples without a ``sample_weight`` get the weight 1.
    """
    first = first.with_columns(is_clean=False)
    second = second.with_columns(is_clean=True)
    if "sample_weight" in first.columns | second.columns:
        first = first.with_columns(sample_weight=first.columns.get("sample_weight", 1.0))
        second = second.with_columns(sample_weight=second.columns.get("sample_weight", 1.0))
    shared = [name for name in first.columns if name in second.columns]
    columns = {name: np.concatenate([first.columns[name], second.columns[name]]) for name in shared}
    positions = [np.arange(len(of)) if of.index is None else of.index for of in (first, second)]
    if first.source is second.source:
        both = type(first)(first.source, **columns)
    elif isinstance(first, DatasetRows) or isinstance(second, DatasetRows):
        return DatasetRows(ConcatDataset([first, second]), **columns)
    elif issparse(first.source) or issparse(second.source):
        return Rows(vstack([first.X, second.X], format="csr"), **columns)
    else:
        both = Rows(each_part(_TwoArrays, first.source, second.source), **columns)
        positions[1] = positions[1] + len(first_part(first.source))
    both.index = np.concatenate(positions)
    return both


class _TwoArrays:
    """Rows of two arrays, one after the other, without a copy of the arrays."""

    def __init__(self, first: NDArray, second: NDArray) -> None:
        self.first = first
        self.second = second
        self.dtype = np.result_type(first, second)
        self.shape = (len(first) + len(second), *first.shape[1:])

    def __getitem__(self, rows: NDArray[np.integer]) -> NDArray:
        n = len(self.first)
        of_second = np.flatnonzero(rows >= n)
        taken = self.first.take(rows, axis=0, mode="clip").astype(self.dtype, copy=False)
        taken[of_second] = self.second[rows[of_second] - n]
        return taken


# ---------------------------------------------------------------------------- batches
# For evaluation: inputs of 2 MiB. With 4 MiB, three convolutions of images of 3 x 32 x 32 took up to twice as long, an
# MLP of 784 columns 7 % longer; with 8 MiB, 64 columns gained 7 %
_NUMBERS_AT_ONCE, _MOST_ROWS_AT_ONCE = 2**19, 4096


class Batch(tuple):
    """Inputs and labels of a batch, as the pair that skorch unpacks, with other columns as attributes."""

    x: Any  # a Tensor, or a mapping or tuple of them
    label: Tensor  # class indices
    columns: dict[str, Tensor]  # all columns, including the label
    logits: Tensor | None = None  # at the present weights, with their graph, once computed

    def __new__(cls, x: Any, columns: dict[str, Tensor]) -> "Batch":
        batch = super().__new__(cls, (x, columns["label"]))
        batch.x = x
        batch.label = columns["label"]
        batch.columns = columns
        return batch

    @classmethod
    def of(cls, loaded: "Loaded") -> "Batch":
        """Convert the output of a loader, which can be a pair of inputs and labels."""
        if isinstance(loaded, cls):
            return loaded
        x, columns = loaded
        return cls(x, columns if isinstance(columns, dict) else {"label": columns})


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
    rows, batch_size
        Clean samples, with weights in a column ``sample_weight``, and the number in a batch; -1 for all.
    """

    def __init__(self, rows: Rows, batch_size: int) -> None:
        self.rows = rows
        self.size = len(rows) if batch_size < 0 else min(batch_size, len(rows))
        self.sampler = _by_weight(rows)

    def draw(self, net: "NoisyLabelNet") -> Batch:
        """Draw a batch, prepared for the net: a tuple of inputs and labels."""
        order = torch.randperm(len(self.rows)).tolist() if self.sampler is None else list(self.sampler)
        return net.prepared(_collated(None, self.rows.take(order[: self.size])))


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
        if self.num_workers or self.pin_memory:
            return map(Batch.of, super().__iter__())
        # torch's loader draws a seed for workers; its loop takes 5 % of a fit of a small network
        torch.empty((), dtype=torch.int64).random_(generator=self.generator)
        read = getattr(self.dataset, "__getitems__", None) or (lambda indices: [self.dataset[i] for i in indices])
        return (Batch.of(self.collate_fn(read(indices))) for indices in self.batch_sampler)  # type: ignore[union-attr]


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


def _by_weight(dataset: Any) -> "ProportionalSampler | None":
    """Make a sampler in proportion to the weights of samples, also of Subsets; None if they are equal."""
    rows: Any = slice(None)
    while isinstance(dataset, Subset):
        rows = np.asarray(dataset.indices)[rows]
        dataset = dataset.dataset
    weights = dataset.columns.get("sample_weight") if isinstance(dataset, Rows) else None
    return None if weights is None or not np.ptp(weights[rows]) else ProportionalSampler(weights[rows])


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
