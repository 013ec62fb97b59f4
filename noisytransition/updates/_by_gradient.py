"""The update by the gradient of the loss itself."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ..nets import Update

if TYPE_CHECKING:
    from ..nets import NoisyLabelNet

# prefix of the names of the loss's parameters, which keeps them apart from those of the module
_PREFIX = "criterion_."


class ByGradient(Update):
    """The parameters of the loss are learned with the network, by the gradient of the noisy loss.

    Parameters
    ----------
    lr : float, optional
        Step size of plain SGD. Default: the network's optimiser moves them too, by its step, in a group without weight
        decay, which would shrink T to the uniform matrix.
    """

    reads_batches = False

    def __init__(self, lr: float | None = None) -> None:
        self.lr = lr
        if lr is None:
            self.param_groups = [(f"{_PREFIX}*", {"weight_decay": 0.0})]

    def in_optimizer(self, loss: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
        """All parameters of the loss, which require gradients from here on, under prefixed names."""
        loss.requires_grad_(True)
        if self.lr is None:
            yield from ((f"{_PREFIX}{name}", parameter) for name, parameter in loss.named_parameters())

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Make the optimiser of the loss's parameters; the loss is on the net's device by now."""
        super().on_train_begin(net, **kwargs)
        if self.lr is not None:
            self.optimizer_ = torch.optim.SGD(net.criterion_.parameters(), lr=self.lr)

    def on_grad_computed(self, net: "NoisyLabelNet", *args: Any, **kwargs: Any) -> None:
        """Take a step, with the gradient at the weights before that of the network."""
        if self.lr is not None:
            net.take_step(self.optimizer_)
            self.optimizer_.zero_grad()
