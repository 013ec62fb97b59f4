"""Callbacks for a progress bar and the loss of the clean samples."""

import multiprocessing
import sys
from typing import Any

import numpy as np
from skorch.callbacks import Callback
from torch import Tensor
from torch.nn import functional as F

from ..nets import NoisyLabelNet, Rows
from ..nets._batches import Batch

# progress bar with elapsed and remaining time and the stage
_FORMAT = "{percentage:3.0f}%|{bar:25}| {elapsed}, {remaining} left: {desc}"


def progress_bar(title: str, items: Any = None, **done: Any) -> Any:
    """Iterate over items with a bar, only in the main process: bars of several processes would overwrite each other."""
    if multiprocessing.current_process().name != "MainProcess" or not _is_seen(sys.stderr):
        return items
    from tqdm.auto import tqdm  # the import warns in notebooks without widgets

    return tqdm(items, title, bar_format=_FORMAT, leave=False, dynamic_ncols=True, **done)


class ShowProgress(Callback):
    """Show a progress bar if standard error is a terminal or a notebook."""

    reads_batches = False

    def __init__(self, title: str) -> None:
        self.title = title
        self.bar: Any = None

    def on_train_begin(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        self.bar = progress_bar(self.title, initial=len(net.history), total=max(net.max_epochs, 1))

    def on_epoch_begin(self, net: NoisyLabelNet, dataset_train: Any = None, **kwargs: Any) -> None:
        self.n_rows = max(len(dataset_train), 1)
        if self.bar is not None:
            epoch = f"{self.title}, epoch {len(net.history)} of {net.max_epochs}"
            self.bar.set_description_str(epoch, refresh=False)

    def on_batch_end(self, net: NoisyLabelNet, batch: Any = None, training: bool = False, **kwargs: Any) -> None:
        if training and self.bar is not None:
            self.bar.update(len(Batch.of(batch).label) / self.n_rows)

    def release(self) -> None:
        """Close the bar, also after an interrupted training."""
        bar, self.bar = self.bar, None
        if bar is not None:
            bar.close()

    def on_train_end(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        self.release()


def _is_seen(stream: Any) -> bool:
    """Whether a stream is a notebook or a terminal; it may be None or closed."""
    if type(stream).__module__.startswith("ipykernel"):
        return True
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


class CleanLoss(Callback):
    """Record the cross-entropy of clean samples as ``valid_clean_loss`` in the history, without random numbers."""

    def __init__(self, rows: Rows) -> None:
        self.rows: Rows | None = rows

    def on_train_begin(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        self.best_ = np.inf

    def on_epoch_end(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        assert self.rows is not None, "the training has ended"
        loss = sum(_summed_loss(*outputs) for outputs in net.evaluated(self.rows)) / len(self.rows)
        net.history.record("valid_clean_loss", loss)
        net.history.record("valid_clean_loss_best", bool(loss < self.best_))
        self.best_ = min(loss, self.best_)

    def release(self) -> None:
        """Drop the samples, so that the trained net does not store them."""
        self.rows = None


def _summed_loss(logits: Tensor, y: Tensor) -> float:
    return F.cross_entropy(logits.float(), y.to(logits.device), reduction="sum").item()
