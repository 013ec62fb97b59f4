"""Update of a loss's parameters by the gradient of the loss itself, in the network's optimiser."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from ._update import Update

# prefix of the names of the loss's parameters, which keeps them apart from those of the module
_PREFIX = "criterion_."


class ByGradient(Update):
    """The parameters of the loss are learned with the network, by the gradient of the noisy loss.

    They form a group of the network's optimiser without weight decay, which would shrink T to the uniform matrix.

    Parameters
    ----------
    lr : float
        Learning rate of the loss's parameters.
    """

    def __init__(self, lr: float) -> None:
        self.lr = lr

    def attach(self, loss: nn.Module) -> None:
        """Make the parameters of the loss require gradients."""
        loss.requires_grad_(True)

    def in_optimizer(self, loss: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
        """All parameters of the loss, under prefixed names."""
        yield from ((f"{_PREFIX}{name}", parameter) for name, parameter in loss.named_parameters())

    def param_groups(self) -> list[tuple[str, dict[str, Any]]]:
        """One group, with its learning rate."""
        return [(f"{_PREFIX}*", {"lr": self.lr, "weight_decay": 0.0})]
