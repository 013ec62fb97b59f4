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

    Examples
    --------
    >>> import numpy as np, torch
    >>> from noisytransition.losses import ForwardLoss
    >>> from noisytransition.nets import CleanBatches, NoisyLabelNet, Rows
    >>> from noisytransition.updates import ByGradient
    >>> y = np.arange(200) % 2
    >>> y_noisy = np.where(np.isin(np.arange(200) % 10, [0, 2]), 1, y)  # 40 % of class 0 are called 1
    >>> rows = Rows((2.0 * y - 1)[:, None].astype(np.float32), y_noisy)
    >>> _ = torch.manual_seed(0)
    >>> loss, update = ForwardLoss([[0.9, 0.1], [0.1, 0.9]]), ByGradient(lr=1.0)
    >>> given = {"clean_batches": CleanBatches(Rows(rows.X[:20], y[:20]), 10), "clean_weight": 9.0}
    >>> net = NoisyLabelNet(
    ...     torch.nn.Linear(1, 2), criterion=loss, update=update, **given, lr=1.0, max_epochs=10, verbose=0)
    >>> net = net.fit(rows, rows.label)
    >>> net.criterion_.transition_matrix.round(1)
    array([[0.6, 0.4],
           [0. , 1. ]])
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
