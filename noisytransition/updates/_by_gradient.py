"""Update of the parameters of a loss by the gradient of the noisy loss."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from ..nets import NoisyLabelNet, Update

# Prefix of the names of the loss's parameters, which distinguishes them from parameters of the module
_PREFIX = "criterion_."


class ByGradient(Update):
    """Learn the parameters of the loss with the network, by the gradient of the noisy loss.

    Parameters
    ----------
    lr : float, optional
        Learning rate of plain SGD. Default: the network's optimiser and learning rate, without weight decay, which
        would shrink T to the uniform matrix.
    """

    def __init__(self, lr: float | None = None) -> None:
        self.lr = lr
        if lr is None:
            self.param_groups = [(f"{_PREFIX}*", {"weight_decay": 0.0})]

    def in_optimizer(self, loss: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield all parameters of the loss, which then require gradients, under prefixed names."""
        loss.requires_grad_(True)
        if self.lr is None:
            yield from ((f"{_PREFIX}{name}", parameter) for name, parameter in loss.named_parameters())

    def on_train_begin(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        """Create the optimiser of the loss's parameters, now that the loss is on the device."""
        super().on_train_begin(net, **kwargs)
        if self.lr is not None:
            self.optimizer_ = torch.optim.SGD(net.criterion_.parameters(), lr=self.lr)

    def on_grad_computed(self, net: NoisyLabelNet, *args: Any, **kwargs: Any) -> None:
        """Take a step with the gradient at the weights before the network's step."""
        if self.lr is not None:
            net.scaler_.step(self.optimizer_)  # in fp16 only if all gradients are finite
            self.optimizer_.zero_grad()
