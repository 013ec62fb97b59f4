"""What an update may do, and the one that does nothing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from skorch.callbacks import Callback
from torch import Tensor, nn

if TYPE_CHECKING:
    from ..nets import Batch, NoisyLabelNet


class Update(Callback):
    """How the parameters of a loss move: a skorch callback that is also called before and after each step.

    What it learns it keeps in attributes that end with an underscore, as every skorch callback does: those are saved
    with the state of an interrupted fit.

    Attributes
    ----------
    transition_history_ : list of ndarray of shape (n_classes, n_classes)
        T at the start and after each epoch, of a loss that has one.
    """

    def attach(self, loss: nn.Module) -> None:
        """Make the loss ready, before there is an optimiser."""

    def in_optimizer(self, loss: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
        """Parameters of the loss that the network's own optimiser moves; here none."""
        yield from ()

    def param_groups(self) -> list[tuple[str, dict[str, Any]]]:
        """Groups that these form in it, in skorch's form: a pattern of names, and settings."""
        return []

    def before_step(self, net: "NoisyLabelNet", batch: "Batch") -> None:
        """Act on a training batch that is on the device, before the step of the network."""

    def after_step(self, net: "NoisyLabelNet", batch: "Batch", logits: Tensor) -> None:
        """Act after the step; `logits` are those of the noisy rows before it, without their graph."""

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Note T at the start."""
        self.transition_history_: list[NDArray[np.float64]] = []
        self._note(net)

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Note T after the epoch."""
        self._note(net)

    def _note(self, net: "NoisyLabelNet") -> None:
        if hasattr(net.criterion_, "transition_matrix"):
            self.transition_history_.append(net.criterion_.transition_matrix)


class Fixed(Update):
    """Nothing moves: what the loss holds stays as it is given."""

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Note nothing: T is that of the start."""
