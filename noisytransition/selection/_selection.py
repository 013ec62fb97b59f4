"""What a selection may do, and the one that keeps the last epoch."""

from typing import TYPE_CHECKING, Any

from skorch.callbacks import Callback, EarlyStopping
from torch import Tensor, nn

if TYPE_CHECKING:
    from ..nets import NoisyLabelNet

State = dict[str, Tensor]


class Selection(Callback):
    """What of a training is kept: called after every epoch and at the end.

    ``EarlyStopping(load_best=True)`` of the user's brings back the module of its best epoch alone; the loss goes back
    to the same epoch here.
    """

    #: whether rows must be held out to select by
    needs_validation = False

    def kept(self, net: "NoisyLabelNet") -> State:
        """State of the loss that this epoch would leave, did the training end with it."""
        return copied(net.criterion_)

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Forget earlier trainings."""
        self.states_: list[State] = []

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Note the loss, if an EarlyStopping may go back to this epoch."""
        if any(_goes_back(callback) for _, callback in net.callbacks_):
            self.states_.append(self.kept(net))

    def on_train_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Follow an EarlyStopping to its best epoch."""
        for _, callback in net.callbacks_:
            if _goes_back(callback) and 0 < callback.best_epoch_ <= len(self.states_):
                net.criterion_.load_state_dict(self.states_[callback.best_epoch_ - 1])
        self.states_ = []


class Last(Selection):
    """The last epoch is kept."""


def copied(part: nn.Module) -> State:
    """State of a module or a loss, as tensors of its own."""
    return {name: value.detach().clone() for name, value in part.state_dict().items()}


def _goes_back(callback: Callback) -> bool:
    return isinstance(callback, EarlyStopping) and callback.load_best
