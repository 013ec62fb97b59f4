"""skorch callbacks of the library's own that watch a training."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from skorch.callbacks import Callback
from torch import Tensor
from torch.nn import functional as F

from ._rows import Rows

if TYPE_CHECKING:
    from ._net import NoisyLabelNet


class CleanLoss(Callback):
    """Writes the cross-entropy of clean rows into the history, as ``valid_clean_loss``; draws no random number.

    Parameters
    ----------
    rows : Rows
        Clean rows that the net is not trained on.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows: Rows | None = rows

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Forget earlier trainings."""
        self.best_ = np.inf

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Score the clean head."""
        assert self.rows is not None, "the training has ended"
        loss = sum(_summed_loss(*outputs) for outputs in net.evaluated(self.rows)) / len(self.rows)
        net.history.record("valid_clean_loss", loss)
        net.history.record("valid_clean_loss_best", bool(loss < self.best_))
        self.best_ = min(loss, self.best_)

    def release(self) -> None:
        """Let go of the rows: a trained net outlives them."""
        self.rows = None


class HeldOutPosteriors(Callback):
    """Keeps the posteriors of rows that the net is not trained on, after some epochs and at the end.

    Parameters
    ----------
    sets : sequence of Rows
    epochs : sequence of int

    Attributes
    ----------
    posteriors_ : dict of int to list of ndarray of shape (n_samples, n_classes)
        By number of epochs, one array for each set.
    """

    def __init__(self, sets: Sequence[Rows], epochs: Sequence[int]) -> None:
        self.sets = sets
        self.epochs = epochs

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Forget earlier trainings."""
        self.posteriors_: dict[int, list[NDArray]] = {}

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Predict, if it is time."""
        if len(net.history) in self.epochs:
            self._predict(net)

    def on_train_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Predict at the end too, which an EarlyStopping may have chosen."""
        self._predict(net)

    def _predict(self, net: "NoisyLabelNet") -> None:
        self.posteriors_[len(net.history)] = [net.predict_proba(rows) for rows in self.sets]

    def after(self, epochs: int) -> list[NDArray]:
        """Return the posteriors after so many epochs, or at the end of a training that ended before."""
        return self.posteriors_[min(epochs, max(self.posteriors_))]

    def release(self) -> None:
        """Let go of the rows: a trained net outlives them."""
        self.sets = ()


def _summed_loss(logits: Tensor, y: Tensor) -> float:
    return F.cross_entropy(logits.float(), y.to(logits.device), reduction="sum").item()
