"""skorch callbacks of the library's own."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from skorch.callbacks import Callback, EarlyStopping


class TransitionTrace(Callback):
    """Keeps T at the start and after every epoch.

    `EarlyStopping(load_best=True)` restores the module alone; T goes back to the same epoch here.

    Attributes
    ----------
    logits_ : list of Tensor of shape (n_classes, n_classes)
        Logits of T; entry 0 is the start.
    """

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Note the start."""
        self.logits_ = [net.criterion_.transition_logits.detach().clone()]

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Note T after the epoch."""
        self.logits_.append(net.criterion_.transition_logits.detach().clone())

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Follow an EarlyStopping that went back to its best epoch."""
        for _, callback in net.callbacks_:
            if isinstance(callback, EarlyStopping) and callback.load_best and callback.best_epoch_:
                net.criterion_.transition_logits.data.copy_(self.logits_[callback.best_epoch_])

    def matrices(self) -> NDArray[np.float64]:
        """T over time, of shape (n_epochs + 1, n_classes, n_classes)."""
        return np.stack([logits.double().cpu().softmax(dim=1).numpy() for logits in self.logits_])
