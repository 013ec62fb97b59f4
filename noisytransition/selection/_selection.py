"""Base class of selections, and the one that keeps the last epoch."""

from typing import TYPE_CHECKING, Any

from skorch.callbacks import Callback, EarlyStopping
from torch import Tensor, nn

if TYPE_CHECKING:
    from ..nets import NoisyLabelNet

State = dict[str, Tensor]


class Selection(Callback):
    """Base class: decide after every epoch, and at the end, what is kept of a training.

    A user's ``EarlyStopping(load_best=True)`` restores only the module of its best epoch; this class restores the loss
    of the same epoch.
    """

    #: whether rows must be held out to select by
    needs_validation = False

    def kept(self, net: "NoisyLabelNet") -> State:
        """State of the loss that would be kept if the training ended with this epoch."""
        return copied(net.criterion_)

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Forget earlier trainings."""
        self.states_: list[State] = []

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Copy the state of the loss, if an EarlyStopping may restore this epoch."""
        if any(_restores_best(callback) for _, callback in net.callbacks_):
            self.states_.append(self.kept(net))

    def on_train_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Restore the loss of the best epoch of an EarlyStopping."""
        for _, callback in net.callbacks_:
            if _restores_best(callback) and 0 < callback.best_epoch_ <= len(self.states_):
                net.criterion_.load_state_dict(self.states_[callback.best_epoch_ - 1])
        self.states_ = []


class Last(Selection):
    """Keep the last epoch."""


def copied(part: nn.Module) -> State:
    """Copy of the state of a module or a loss."""
    return {name: value.detach().clone() for name, value in part.state_dict().items()}


def _restores_best(callback: Callback) -> bool:
    return isinstance(callback, EarlyStopping) and callback.load_best
