"""Rows with named columns, and batches of them: from arrays or sparse matrices in memory, or from a torch Dataset."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from torch import Tensor, nn
from torch.utils.data import Dataset, Subset, default_collate

from ._proportional import ProportionalSampler

if TYPE_CHECKING:
    from ._net import NoisyLabelNet

# in a forward pass without training: inputs of 2 MiB; with twice as many, three convolutions of images of 3 x 32 x 32
# took up to twice as long, an MLP of 784 columns 7 % longer; four times as many rows of 64 columns gain 7 %
_NUMBERS_AT_ONCE, _MOST_ROWS_AT_ONCE = 2**19, 4096
Indices = Sequence[int] | NDArray[np.integer]


class Rows(Dataset):
    """Inputs in an array, with a label and optional other columns for each row.

    A selection of rows keeps the array of all, and which rows they are; inputs are copied batch by batch.

    Parameters
    ----------
    X : ndarray of shape (n_samples, ...)
        Inputs; the array is not copied.
    label : array-like of int, shape (n_samples,), optional
        Default: zeros, for prediction.
    **columns : array-like of shape (n_samples,)
        Other columns by name, such as ``noisy_label`` (of clean rows, where known), ``trusted``, ``group`` and
        ``weight``. Losses and updates read them by name, `BatchLoader` and `CleanBatches` read ``sample_weight``.

    Attributes
    ----------
    source : ndarray
        Inputs of all rows that these were selected from.
    index : ndarray of int or None
        Positions of these rows in the source; None for all of them.
    columns : dict of str to ndarray
        All columns of these rows, including ``label``.

    Examples
    --------
    >>> import numpy as np
    >>> from noisytransition.nets import Rows
    >>> rows = Rows(np.array([[0.1], [0.2], [0.3]]), [0, 1, 0], group=[7, 7, 8])
    >>> part = rows.take([2, 0])
    >>> part.X.tolist(), {name: column.tolist() for name, column in part.columns.items()}
    ([[0.3], [0.1]], {'label': [0, 0], 'group': [8, 7]})
    """

    def __init__(self, X: Any, label: ArrayLike | None = None, **columns: ArrayLike) -> None:
        self.source: Any = X
        self.index: NDArray[np.integer] | None = None
        label = np.zeros(X.shape[0] if issparse(X) else len(X), dtype=np.int64) if label is None else label
        self.columns = _as_columns({"label": label} | columns)

    @property
    def X(self) -> Any:
        """Inputs, in the form in which they were given; of a selection, a copy."""
        return self.source if self.index is None else gathered(self.source, self.index)

    @property
    def label(self) -> NDArray[np.int64]:
        """Labels as class indices."""
        return self.columns["label"]

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """Input and label of one row."""
        return self.take([index]).dense()[0], self.label[index]

    def __getitems__(self, indices: Indices) -> "Rows":
        """Several rows at once, which torch's loader asks for, also through a `Subset`."""
        return self.take(indices)

    def take(self, indices: Indices) -> "Rows":
        """Rows at `indices`, with all columns, without a copy of the inputs."""
        indices, rows = np.asarray(indices), copy(self)
        rows.index = indices if self.index is None else self.index[indices]
        rows.columns = {name: column[indices] for name, column in self.columns.items()}
        return rows

    def with_columns(self, **columns: ArrayLike) -> "Rows":
        """Return the same rows with columns added or replaced; a scalar is repeated for all rows."""
        rows, given = copy(self), {k: np.broadcast_to(np.asarray(v), len(self)) for k, v in columns.items()}
        rows.columns = self.columns | _as_columns(given)
        return rows

    def inputs(self) -> Any:
        """All inputs, as one batch of tensors."""
        return torch.from_numpy(self.dense())

    def dense(self) -> NDArray:
        """All inputs, as one array."""
        return np.asarray(self.X)


class SparseRows(Rows):
    """Inputs in a sparse matrix, made dense batch by batch.

    Parameters
    ----------
    X : CSR array of shape (n_samples, n_features)
        Inputs; the matrix is not copied.
    label, **columns
        As in `Rows`.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from noisytransition.nets import SparseRows
    >>> rows = SparseRows(csr_array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]), [0, 1])
    >>> rows.take([1]).inputs()  # a batch is dense
    tensor([[1., 0., 0.]], dtype=torch.float64)
    """

    def dense(self) -> NDArray:
        """All inputs, as one dense array."""
        dense: NDArray = self.X.toarray()
        return dense


class DatasetRows(Rows):
    """Inputs in a torch Dataset, for data that does not fit in memory.

    Parameters
    ----------
    X : Dataset
        Map-style. Of a sample that is a tuple or list, the first element is the input.
    label, **columns
        As in `Rows`.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import Dataset
    >>> from noisytransition.nets import DatasetRows
    >>> class Squares(Dataset):
    ...     # Samples that are made when they are read
    ...     def __len__(self):
    ...         return 1000
    ...     def __getitem__(self, i):
    ...         return torch.tensor([float(i**2)])
    >>> DatasetRows(Squares()).take([3, 4]).inputs()
    tensor([[ 9.],
            [16.]])
    """

    @property
    def X(self) -> Any:
        """The Dataset; of a selection, its part."""
        return self.source if self.index is None else Subset(self.source, self.index.tolist())

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """Input and label of one row."""
        sample = self.source[index if self.index is None else int(self.index[index])]
        return (sample[0] if isinstance(sample, tuple | list) else sample), self.label[index]

    def inputs(self) -> Any:
        """All inputs, as one batch of tensors, collated sample by sample."""
        return default_collate([self[i][0] for i in range(len(self))])


def _as_columns(columns: Mapping[str, ArrayLike]) -> dict[str, NDArray]:
    """Columns as arrays, labels as indices."""
    return {k: np.asarray(v, dtype=np.int64 if k == "label" else None) for k, v in columns.items()}


def as_rows(X: Any, label: ArrayLike | None = None) -> Rows:
    """Rows of an array, a CSR matrix or a torch Dataset."""
    kind = DatasetRows if isinstance(X, Dataset) else SparseRows if issparse(X) else Rows
    return kind(X, label)


def gathered(X: Any, indices: NDArray[np.integer]) -> Any:
    """Rows of inputs; `take` is several times faster than indexing, but copies all of an array in another order."""
    is_array = isinstance(X, np.ndarray) and X.flags.c_contiguous
    return X.take(indices, axis=0) if is_array and indices.dtype.kind == "i" else X[indices]


# ---------------------------------------------------------------------------- batches
class Batch(tuple):
    """Inputs and labels of some rows, as the pair that skorch unpacks, with the other columns as attributes.

    Attributes
    ----------
    x : Tensor of shape (n, ...)
        Inputs, on the device once the net has prepared them.
    label : Tensor of shape (n,)
        Class indices.
    columns : dict of str to Tensor of shape (n,)
        All columns, including ``label``.
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

    def pin_memory(self) -> "Batch":
        """Return the batch in pinned memory, where there is a GPU."""
        x, columns = self.x, self.columns
        return Batch(pinned(x), {name: pinned(column) for name, column in columns.items()})

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
Loaded = Batch | tuple[Tensor, Tensor | dict[str, Tensor]]


def rows_at_once(rows: Any, batch_size: int) -> int:
    """Rows in a forward pass without training: more than in training where they are small numbers in memory.

    Integers may be indices of embeddings, which are larger, and samples of a Dataset are read one by one.
    """
    if batch_size < 0 or not isinstance(rows, Rows) or isinstance(rows, DatasetRows):
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

    Examples
    --------
    >>> import numpy as np, torch
    >>> from noisytransition.nets import CleanBatches, NoisyLabelNet, Rows
    >>> rows = Rows(np.array([[-1.0], [1.0]] * 10, dtype=np.float32), [0, 0] * 10)  # 1 is called 0 in all rows
    >>> clean = CleanBatches(Rows(np.array([[-1.0], [1.0]], dtype=np.float32), [0, 1]), batch_size=2)
    >>> given = {"clean_batches": clean, "clean_weight": 3.0}
    >>> net = NoisyLabelNet(torch.nn.Linear(1, 2), **given, lr=1.0, max_epochs=20, classes=[0, 1], verbose=0)
    >>> net.fit(rows, rows.label).predict(rows)[:2].tolist()
    [0, 1]
    """

    def __init__(self, rows: Rows, batch_size: int, *, joint: bool = False) -> None:
        self.rows: Rows | None = rows
        self.size = len(rows) if batch_size < 0 else min(batch_size, len(rows))
        self.joint = joint
        weights = rows.columns.get("sample_weight")
        self.sampler = None if weights is None or not np.ptp(weights) else ProportionalSampler(weights)

    def draw(self, net: "NoisyLabelNet") -> tuple[Tensor, Tensor]:
        """Draw a batch, prepared for the net."""
        assert self.rows is not None, "the training has ended"
        order = torch.randperm(len(self.rows)).numpy() if self.sampler is None else self.sampler.order()
        rows = self.rows.take(order[: self.size])
        inputs, label = rows.inputs(), torch.from_numpy(rows.label)
        if getattr(net, "iterator_train__pin_memory", False):  # as the loader does
            inputs, label = pinned(inputs), pinned(label)
        return net.prepare(inputs), on_device(label, net.device)

    def release(self) -> None:
        """Drop the rows, so that a trained net does not keep them."""
        self.rows = None
