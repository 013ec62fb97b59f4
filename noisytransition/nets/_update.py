"""Base class of updates: how the parameters of a loss move."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from skorch.callbacks import Callback
from torch import Tensor, nn

if TYPE_CHECKING:
    from . import NoisyLabelNet
    from ._batches import Batch


#: with more of them T is not recorded after each epoch: T of 1,000 classes takes 8 MB
MOST_CLASSES_IN_HISTORY = 500


class Update(Callback):
    """Base class: how the parameters of a loss are updated; a skorch callback with hooks before and after each step.

    Subclasses keep their state in attributes that end with an underscore, as skorch callbacks do. These are saved with
    the state of an interrupted fit.

    Attributes
    ----------
    transition_history_ : list of ndarray of shape (n_classes, n_classes)
        T at the start and after each epoch, of a loss that has one; empty with more than 500 classes.
    """

    #: parameter groups in the network's optimiser, as skorch takes them: (pattern of names, settings)
    param_groups: Sequence[tuple[str, dict[str, Any]]] = ()

    def in_optimizer(self, loss: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
        """Parameters of the loss that belong to the network's optimiser; here none."""
        yield from ()

    def before_step(self, net: "NoisyLabelNet", batch: "Batch") -> None:
        """Run before each step of the network; the batch is on the device."""

    def after_step(self, net: "NoisyLabelNet", batch: "Batch", logits: Tensor) -> None:
        """Run after each step; `logits` are those of the noisy rows before it, detached."""

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Record the initial T."""
        self.transition_history_: list[NDArray[np.float64]] = []
        self._record(net)

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Record T after the epoch."""
        self._record(net)

    def _record(self, net: "NoisyLabelNet") -> None:
        if net.classes is None or len(net.classes) <= MOST_CLASSES_IN_HISTORY:
            T = getattr(net.criterion_, "transition_matrix", None)
            self.transition_history_ += [] if T is None else [T]
