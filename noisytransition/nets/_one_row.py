"""Batches of one row, on which batch normalisation cannot train: found before a training."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset

from .._replaced import called_with, places_of
from ._loader import JoinedSampler
from ._rows import Batch

if TYPE_CHECKING:
    from ._net import NoisyLabelNet


def has_batch_of_one(n: int, size: int, *, drop_last: bool = False, joined: bool = True) -> bool:
    """Whether a batch of an epoch has a single row.

    Parameters
    ----------
    n : int
        Rows.
    size : int
        Rows in a batch; -1 for all.
    drop_last : bool, default=False
        Whether an incomplete last batch is left out.
    joined : bool, default=True
        Whether a last batch of one row joins the one before, as in `BatchLoader`.
    """
    size = n if size < 0 else size
    return size == 1 or (n % size == 1 and not drop_last and not (joined and n > size))


def check_loader(net: "NoisyLabelNet", loader: object) -> None:
    """Raise if a loader gives a batch of one row, and the module cannot train on it."""
    batches = loader.batch_sampler if isinstance(loader, DataLoader) else None
    if not isinstance(loader, DataLoader) or not isinstance(batches, BatchSampler):
        return
    n, size = len(batches.sampler), batches.batch_size  # type: ignore[arg-type]
    joined = isinstance(batches, JoinedSampler)
    if has_batch_of_one(n, size, drop_last=batches.drop_last, joined=joined):
        check_one_row(net, loader, f"{n} {net.labels} row{'s' * (n > 1)} in batches of batch_size={size}")


def check_one_row(net: "NoisyLabelNet", loader: DataLoader, batches: str) -> None:
    """Raise if the module cannot train on the first row alone; `batches` says of which batches one has a single row."""
    module = net.plain_module_
    buffers = dict(module.named_buffers())
    places, copies = places_of(module, buffers), {name: buffer.clone() for name, buffer in buffers.items()}
    try:
        with torch.random.fork_rng(), torch.no_grad():
            x = net.prepare(_first_row(loader))
            called_with(module.train(), places, copies, x)
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise ValueError(
            f"{type(module).__name__} normalises batches and cannot train on one row, but of {batches} one batch has a "
            "single row. Take another batch size, or drop_last (iterator_train__drop_last=True), or give more rows."
        ) from error


def _first_row(loader: DataLoader) -> Tensor:
    """Inputs of a batch with the first row alone."""
    dataset: Dataset = loader.dataset
    rows = dataset.__getitems__([0]) if hasattr(dataset, "__getitems__") else [dataset[0]]
    return Batch.of(loader.collate_fn(rows)).x
