"""Base class of updates of the parameters of a loss."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from skorch.callbacks import Callback
from torch import Tensor, nn

if TYPE_CHECKING:
    from . import NoisyLabelNet
    from ._batches import Batch


#: Maximum number of classes with a history of T: one T of 1,000 classes takes 8 MB
MOST_CLASSES_IN_HISTORY = 500


class Update(Callback):
    """Base class of updates of the parameters of a loss: a skorch callback with hooks before and after each step.

    Subclasses keep their state in attributes with a trailing underscore, which are saved with an interrupted fit.

    Attributes
    ----------
    transition_history_ : list of ndarray of shape (n_classes, n_classes)
        T at the start and after each epoch, if the loss has a T; empty with more than 500 classes.
    """

    #: parameter groups of the network's optimiser, as in skorch: (pattern of names, settings)
    param_groups: Sequence[tuple[str, dict[str, Any]]] = ()

    def in_optimizer(self, loss: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield named parameters of the loss that the network's optimiser updates; none by default."""
        yield from ()

    def before_step(self, net: "NoisyLabelNet", batch: "Batch") -> None:
        """Run before each step of the network; the batch is on the device."""

    def after_step(self, net: "NoisyLabelNet", batch: "Batch", logits: Tensor) -> None:
        """Run after each step; `logits` are the detached logits of the noisy samples before the step."""

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Record the initial T."""
        self.transition_history_: list[NDArray[np.float64]] = []
        Update.on_epoch_end(self, net)

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Record T after the epoch."""
        if net.classes is None or len(net.classes) <= MOST_CLASSES_IN_HISTORY:
            T = getattr(net.criterion_, "transition_matrix", None)
            self.transition_history_ += [] if T is None else [T]
