"""Noisy and clean rows in one step: a fresh batch of clean rows beside every noisy one."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ._batches import Rows
from ._net import NoisyLabelNet


class CleanBatches:
    """Clean rows, drawn anew and without repetition for each step.

    Parameters
    ----------
    rows : Rows
    batch_size : int
        Rows in a batch; -1 for all.
    """

    def __init__(self, rows: Rows, batch_size: int) -> None:
        self.rows = rows
        self.size = len(rows) if batch_size < 0 else min(batch_size, len(rows))

    def draw(self, net: NoisyLabelNet) -> tuple[Tensor, Tensor]:
        """Return a fresh batch as the net takes it."""
        x, y = self.rows.batch(torch.randperm(len(self.rows))[: self.size].numpy())
        return net.prepare(x), y.to(net.device)


class JointNet(NoisyLabelNet):
    """A net that learns noisy rows through its criterion and clean rows by cross-entropy, in one forward pass.

    Parameters
    ----------
    module : nn.Module, class or instance
    clean_batches : CleanBatches, optional
        None once trained: the clean rows are not kept.
    meta_weight : float, default=1.0
        Weight of the clean batch's mean cross-entropy beside the noisy batch's mean loss.
    **kwargs
        As for `NoisyLabelNet`.
    """

    def __init__(
        self, module: Any, *args: Any, clean_batches: Any = None, meta_weight: float = 1.0, **kwargs: Any
    ) -> None:
        super().__init__(module, *args, **kwargs)
        self.clean_batches = clean_batches
        self.meta_weight = meta_weight

    def train_step(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        """Draw the clean batch once: an optimiser that asks for the loss again (LBFGS) is to see the same rows."""
        self._set_training(True)
        x, y = self.prepare(batch[0]), batch[1].to(self.device)
        x_clean, y_clean = self.clean_batches.draw(self)
        return super().train_step((torch.cat([x, x_clean]), (y, y_clean)), **fit_params)

    def train_step_single(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        """Loss of the noisy and the clean rows of a batch, and its gradient."""
        x, (y, y_clean) = batch
        noisy, clean = self.module_(x, **fit_params).split([len(y), len(y_clean)])
        loss = self.get_loss(noisy, y, X=x, training=True) + self.meta_weight * F.cross_entropy(clean, y_clean)
        loss.backward()
        self.criterion_.eval()  # an optimiser that asks again is not to make a running T count the batch again
        return {"loss": loss, "y_pred": noisy}
