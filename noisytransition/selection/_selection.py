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

    Examples
    --------
    >>> import numpy as np, torch
    >>> from noisytransition.nets import NoisyLabelNet, Rows
    >>> from noisytransition.selection import Selection
    >>> class Mean(Selection):
    ...     # Keep the mean of the biases of all epochs
    ...     def on_epoch_end(self, net, **kwargs):
    ...         super().on_epoch_end(net, **kwargs)
    ...         self.biases_ = [*getattr(self, "biases_", []), net.module_.bias.detach().clone()]
    ...     def on_train_end(self, net, **kwargs):
    ...         super().on_train_end(net, **kwargs)
    ...         with torch.no_grad():
    ...             net.module_.bias.copy_(torch.stack(self.biases_).mean(0))
    >>> rows = Rows(np.zeros((4, 1), dtype=np.float32), [0, 0, 0, 1])
    >>> module = torch.nn.Linear(1, 2)
    >>> _ = torch.nn.init.zeros_(module.bias)
    >>> net = NoisyLabelNet(module, select=Mean(), lr=1.0, max_epochs=3, verbose=0).fit(rows, rows.label)
    >>> biases = [*net.select.biases_, net.module_.bias.detach()]  # after each epoch, and what is kept
    >>> torch.stack(biases)[:, 0].round(decimals=2)
    tensor([0.2500, 0.3800, 0.4500, 0.3600])
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
    """Keep the last epoch.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from noisytransition.nets import NoisyLabelNet, Rows
    >>> from noisytransition.selection import Last
    >>> rows = Rows(np.array([[-1.0], [1.0]] * 5, dtype=np.float32), [0, 1] * 5)
    >>> net = NoisyLabelNet(
    ...     torch.nn.Linear(1, 2), select=Last(), lr=1.0, max_epochs=5, verbose=0).fit(rows, rows.label)
    >>> net.predict(rows).tolist()
    [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
    """


def copied(part: nn.Module) -> State:
    """Copy of the state of a module or a loss."""
    return {name: value.detach().clone() for name, value in part.state_dict().items()}


def _restores_best(callback: Callback) -> bool:
    return isinstance(callback, EarlyStopping) and callback.load_best
