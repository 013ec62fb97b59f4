"""The loss's own gradient moves its parameters, in the network's optimiser."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from ._update import Update

# before the names of the loss's parameters: no parameter of a module has such a name
_PREFIX = "criterion_."


class ByGradient(Update):
    """The parameters of the loss are learned with the network, by the gradient of the noisy loss.

    They form a group of the network's optimiser, without weight decay: decay would pull T to the uniform matrix.

    Parameters
    ----------
    lr : float
        Their step size.
    """

    def __init__(self, lr: float) -> None:
        self.lr = lr

    def attach(self, loss: nn.Module) -> None:
        """Let gradients reach the parameters of the loss."""
        loss.requires_grad_(True)

    def in_optimizer(self, loss: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
        """All parameters of the loss, under names that no parameter of a module has."""
        yield from ((f"{_PREFIX}{name}", parameter) for name, parameter in loss.named_parameters())

    def param_groups(self) -> list[tuple[str, dict[str, Any]]]:
        """One group, with the step size."""
        return [(f"{_PREFIX}*", {"lr": self.lr, "weight_decay": 0.0})]
