"""Callbacks that select the state of a training: the last epoch, or the best epoch by noisy or clean samples."""

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from skorch.callbacks import Callback, EarlyStopping
from torch import Tensor
from torch.nn import functional as F

if TYPE_CHECKING:
    from .nets import NoisyLabelNet, Rows

__all__ = ["BestCleanEpoch", "BestEpoch", "Selection"]

State = dict[str, Any]


class Selection(Callback):
    """Select the last epoch; base class of selections. ``EarlyStopping(load_best=True)`` restores the loss, too."""

    #: whether the selection requires held-out samples
    needs_validation = False

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Reset the saved states."""
        self.states_: list[State] = []

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Save the state of the loss: an EarlyStopping may restore this epoch."""
        self.states_.append(deepcopy(net.criterion_.state_dict()))

    def on_train_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Restore the loss of the best epoch of an EarlyStopping callback."""
        for _, callback in net.callbacks_:
            restores_best = isinstance(callback, EarlyStopping) and callback.load_best
            if restores_best and 0 < callback.best_epoch_ <= len(self.states_):
                net.criterion_.load_state_dict(self.states_[callback.best_epoch_ - 1])
        self.states_ = []


class BestEpoch(Selection):
    """Select module and loss of the epoch with the best score in the history.

    Parameters
    ----------
    monitor : str
        Name of the score, such as ``valid_noisy_loss`` or ``valid_noisy_acc``. Ties are resolved to the first epoch.
    lower_is_better : bool, default=True
        Pass False for accuracies.

    Attributes
    ----------
    best_epoch_ : int
        Number of epochs until the selected state; 0 if there is none.
    """

    needs_validation = True
    best_epoch_ = 0

    def __init__(self, monitor: str, *, lower_is_better: bool = True) -> None:
        self.monitor = monitor
        self.lower_is_better = lower_is_better

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Reset the best epoch."""
        super().on_train_begin(net, **kwargs)
        self.best_score_ = np.inf
        self.best_: tuple[State, State] | None = None

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Save the state if the score is better than in all earlier epochs."""
        score = net.history[-1, self.monitor] * (1 if self.lower_is_better else -1)
        if score < self.best_score_:
            self.best_score_ = score
            self.best_epoch_ = len(net.history)
            self.best_ = deepcopy((net.plain_module_.state_dict(), net.criterion_.state_dict()))

    def on_train_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Restore the best epoch."""
        if self.best_ is not None:
            net.plain_module_.load_state_dict(self.best_[0])
            net.criterion_.load_state_dict(self.best_[1])
            self.best_ = None


class CleanLoss(Callback):
    """Record the cross-entropy of clean samples as ``valid_clean_loss`` in the history, without random numbers."""

    def __init__(self, rows: "Rows") -> None:
        self.rows = rows

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Evaluate the network in the present epoch."""
        loss = F.cross_entropy(*_outputs(net, self.rows)).item()
        is_best = all(loss < epoch["valid_clean_loss"] for epoch in net.history[:-1])
        net.history.record("valid_clean_loss", loss)
        net.history.record("valid_clean_loss_best", is_best)


# bounds of the log-temperature, 1/20 to 20: the loss of samples that are all predicted correctly has no minimum
_LOG_TEMPERATURES = (-3.0, 3.0)


class BestCleanEpoch(BestEpoch):
    """Select module and loss of the epoch with the lowest calibrated cross-entropy of clean samples.

    The cross-entropy is minimised over the temperature of the logits, since a network that is only overconfident still
    ranks the classes well. The history has it as ``calibrated_clean_loss``.

    Parameters
    ----------
    rows : Rows
        Clean samples that the module is not trained on.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger, "On Calibration of Modern Neural Networks", ICML 2017 (temperature scaling).
    """

    needs_validation = False

    def __init__(self, rows: "Rows") -> None:
        super().__init__("calibrated_clean_loss")
        self.rows = rows

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Record the loss, and save the state if it is lower than in all earlier epochs."""
        logits, labels = _outputs(net, self.rows)

        def loss(t: float) -> float:
            return F.cross_entropy(logits * float(np.exp(-t)), labels).item()

        best: Any = minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded")
        net.history.record("calibrated_clean_loss", float(best.fun))
        super().on_epoch_end(net, **kwargs)


def _outputs(net: "NoisyLabelNet", rows: "Rows") -> tuple[Tensor, Tensor]:
    """Logits and labels of samples, without random numbers of the training."""
    loader: Any = net.get_iterator(rows)
    loader.generator = torch.Generator()
    logits, labels = zip(*((net.evaluation_step(batch), batch[1]) for batch in loader), strict=True)
    joined = torch.cat(logits)
    return joined.float(), torch.cat(labels).to(joined.device)
