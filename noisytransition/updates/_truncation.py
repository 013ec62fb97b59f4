"""Truncation: samples whose noisy label is improbable get weight 0 until the next evaluation."""

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from ..nets import NoisyLabelNet, Update
from ..nets._batches import Batch

#: Epochs between two evaluations of all samples, as in the paper on generalized cross-entropy
_EVERY = 10


class Truncation(Update):
    """Set the ``weight`` of training samples to 0 if the net gives their noisy label a low probability, else to 1.

    The column ``index`` identifies samples.

    Parameters
    ----------
    threshold : float
        Largest probability of the label of a sample with weight 0.
    start : int
        Number of epochs before the first evaluation; evaluations follow every ten epochs.
    """

    def __init__(self, threshold: float, start: int) -> None:
        self.threshold = threshold
        self.start = start

    def on_train_begin(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        """Keep all samples."""
        super().on_train_begin(net, **kwargs)
        self.kept_: Tensor | None = None

    def on_epoch_begin(self, net: NoisyLabelNet, dataset_train: Dataset | None = None, **kwargs: Any) -> None:
        """Evaluate all training samples, from `start` on every ten epochs."""
        epoch = len(net.history) - 1 - self.start
        if epoch < 0 or epoch % _EVERY:
            return
        index = []
        kept = []
        for batch in net.get_iterator(dataset_train):
            proba = torch.softmax(net.evaluation_step(batch), dim=1).cpu()
            index.append(batch.columns["index"])
            kept.append(proba.gather(1, batch.label[:, None]).squeeze(1) > self.threshold)
        rows = torch.cat(index)
        self.kept_ = torch.zeros(int(rows.max()) + 1, dtype=torch.bool)
        self.kept_[rows] = torch.cat(kept)
        if not self.kept_.any():
            warnings.warn(
                f"truncation={self.threshold} leaves no sample to train on, since no label has a higher probability. "
                "Lower it, or start later.",
                stacklevel=2,
            )

    def before_step(self, net: NoisyLabelNet, batch: Batch) -> None:
        """Set the weights of the samples of the batch."""
        if self.kept_ is not None:
            index = batch.columns["index"]
            batch.columns["weight"] = self.kept_.to(index.device)[index]
