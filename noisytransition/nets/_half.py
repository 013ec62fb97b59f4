"""Steps in half precision: gradients of fp16 are scaled."""

from collections.abc import Callable
from typing import Any

import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback
from torch import Tensor


class GradientScaling(Callback):
    """Scale the loss of fp16 trainings, since small gradients are zero in fp16; a step that overflows is left out.

    The state of torch's scaler is saved with that of an interrupted fit.
    """

    def on_train_begin(self, net: NeuralNetClassifier, **kwargs: Any) -> None:
        """Make the scaler."""
        if net.precision == "fp16":
            self.scaler_ = torch.amp.GradScaler(torch.device(net.device or "cpu").type)


class HalfPrecision(NeuralNetClassifier):
    """Part of a net that takes steps by scaled gradients where `precision` is "fp16"."""

    precision: str
    _is_scaled = False

    @property
    def _scaler(self) -> Any:
        """Scaler of the gradients, in an fp16 training."""
        if self.precision != "fp16":
            return None
        callbacks = [callback for _, callback in self.callbacks_ if isinstance(callback, GradientScaling)]
        return getattr(callbacks[0], "scaler_", None) if callbacks else None

    def backward(self, loss: Tensor) -> None:
        """Compute the gradients of a loss: in fp16 as scaled, and then as they are."""
        scaler = self._scaler
        (loss if scaler is None else scaler.scale(loss)).backward()
        if scaler is None:
            return
        for name in self._optimizers:
            scaler.unscale_(getattr(self, f"{name}_"))
        self._is_scaled = True

    def _step_optimizer(self, step_fn: Callable | None) -> None:
        if (scaler := self._scaler) is None:
            super()._step_optimizer(step_fn)
            return
        self._is_scaled = False
        if step_fn is not None:
            step_fn()
        if not self._is_scaled:  # a train_step_single of the user's calls loss.backward()
            super()._step_optimizer(None)
            return
        for name in self._optimizers:
            scaler.step(getattr(self, f"{name}_"))
        scaler.update()
