"""Rows whose noisy label the network finds improbable are left out, until all are looked at again."""

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from ._update import Update

if TYPE_CHECKING:
    from ..nets import Batch, NoisyLabelNet


class Truncation(Update):
    """Sets the ``weight`` of each training row to whether the net finds its noisy label probable.

    Rows are known by their column ``index``, however they are shuffled.

    Parameters
    ----------
    threshold : float
        Rows whose label has at most this probability are left out.
    start : int
        Epochs before the first look.
    every : int
        Epochs between looks.
    """

    def __init__(self, threshold: float, start: int, every: int) -> None:
        self.threshold = threshold
        self.start = start
        self.every = every

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Keep all rows."""
        super().on_train_begin(net, **kwargs)
        self.kept_: Tensor | None = None

    def on_epoch_begin(self, net: "NoisyLabelNet", dataset_train: Dataset | None = None, **kwargs: Any) -> None:
        """Look at all training rows when it is time."""
        waited = len(net.history) - 1 - self.start
        if waited < 0 or waited % self.every:
            return
        looks = [self._look(net, batch) for batch in net.get_iterator(dataset_train)]
        index, kept = (torch.cat(parts) for parts in zip(*looks, strict=True))
        self.kept_ = torch.zeros(int(index.max()) + 1, dtype=torch.bool)
        self.kept_[index] = kept
        if not kept.any():
            warnings.warn(
                f"truncation={self.threshold} leaves no row to train on: the net gives no label more than this "
                "probability. Lower it, or start later.",
                UserWarning,
                stacklevel=2,
            )

    def _look(self, net: "NoisyLabelNet", batch: "Batch") -> tuple[Tensor, Tensor]:
        """Index of each row of a batch, and whether it is kept."""
        proba = torch.softmax(net.evaluation_step(batch), dim=1).cpu()
        return batch.columns["index"], proba.gather(1, batch.label[:, None]).squeeze(1) > self.threshold

    def before_step(self, net: "NoisyLabelNet", batch: "Batch") -> None:
        """Weigh the rows of the batch."""
        if self.kept_ is not None:
            index = batch.columns["index"]
            batch.columns["weight"] = self.kept_.to(index.device)[index]
