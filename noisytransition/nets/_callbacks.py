"""skorch callbacks that record clean loss and held-out posteriors during a training."""

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
    """Record the cross-entropy of clean rows as ``valid_clean_loss`` in the history, without drawing random numbers.

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
        """Record the loss."""
        assert self.rows is not None, "the training has ended"
        loss = sum(_summed_loss(*outputs) for outputs in net.evaluated(self.rows)) / len(self.rows)
        net.history.record("valid_clean_loss", loss)
        net.history.record("valid_clean_loss_best", bool(loss < self.best_))
        self.best_ = min(loss, self.best_)

    def release(self) -> None:
        """Drop the rows, so that a trained net does not keep them."""
        self.rows = None


class HeldOutPosteriors(Callback):
    """Keep the posteriors of rows that the net is not trained on, after given epochs and at the end.

    Parameters
    ----------
    sets : sequence of Rows
        Held-out rows, each set of which is predicted by itself.
    epochs : sequence of int
        Numbers of epochs after which to predict.

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
        """Predict after one of the given epochs."""
        if len(net.history) in self.epochs:
            self._predict(net)

    def on_train_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Predict at the end too: an EarlyStopping may have ended the training or restored an earlier epoch."""
        self._predict(net)

    def _predict(self, net: "NoisyLabelNet") -> None:
        self.posteriors_[len(net.history)] = [net.predict_proba(rows) for rows in self.sets]

    def after(self, epochs: int) -> list[NDArray]:
        """Return the posteriors after this number of epochs, or at the end of a training that ended earlier."""
        return self.posteriors_[min(epochs, max(self.posteriors_))]

    def release(self) -> None:
        """Drop the rows, so that a trained net does not keep them."""
        self.sets = ()


def _summed_loss(logits: Tensor, y: Tensor) -> float:
    return F.cross_entropy(logits.float(), y.to(logits.device), reduction="sum").item()
