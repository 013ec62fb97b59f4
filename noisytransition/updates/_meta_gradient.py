"""The clean loss one step ahead moves the parameters of the loss: lines 4 and 5 of Algorithm 1."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn

from ..meta_gradient import look_ahead, method_ladder
from ._update import Update

if TYPE_CHECKING:
    from ..nets import Batch, CleanBatches, NoisyLabelNet


class MetaLoss(Protocol):
    """A loss whose parameters the meta-gradient can move."""

    def cotangent(self, logits: Tensor, y: Tensor) -> Tensor:
        """Return d mean loss / d logits."""

    def meta_gradients(self, logits: Tensor, y: Tensor, tangent: Tensor) -> list[Tensor]:
        """Return the gradient of -<cotangent, tangent> for each parameter of the loss."""


class MetaGradient(Update):
    """Before a step of the network: a clean batch, a look-ahead, one step of the loss's parameters.

    The forward pass of the look-ahead serves the real step too.

    Parameters
    ----------
    clean : CleanBatches
    lr : float
        Step size of the loss's parameters (the paper's beta).
    optimizer : callable, default=torch.optim.SGD
        Makes that step: called with the loss's parameters, never the network's, and ``lr=``.
    every : int, default=1
        Look ahead in every `every`-th step; in between the loss stays as it is.
    inner_lr : float, optional
        Rate of the virtual step. Default: the network optimiser's current rate, per parameter group.
    method : str, default="auto"
        A name in `noisytransition.meta_gradient.METHODS`.

    Attributes
    ----------
    method_ : str
        The method that was taken.
    """

    def __init__(
        self,
        clean: "CleanBatches",
        lr: float,
        *,
        optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
        every: int = 1,
        inner_lr: float | None = None,
        method: str = "auto",
    ) -> None:
        self.clean = clean
        self.lr = lr
        self.optimizer = optimizer
        self.every = every
        self.inner_lr = inner_lr
        self.method = method

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Make the optimiser of the loss's parameters, once the net has moved the loss to its device."""
        super().on_train_begin(net, **kwargs)
        self.optimizer_ = self.optimizer(net.criterion_.parameters(), lr=self.lr)
        self.methods_ = method_ladder(net.plain_module_) if self.method == "auto" else (self.method,)
        self.n_steps_ = 0

    def before_step(self, net: "NoisyLabelNet", batch: "Batch") -> None:
        """Look ahead from the batch and move the loss's parameters."""
        self.n_steps_ += 1
        if (self.n_steps_ - 1) % self.every:
            return
        loss: MetaLoss = net.criterion_
        batch.clean = batch.clean or self.clean.draw(net)
        ahead = look_ahead(
            net.plain_module_,
            batch.x,
            lambda logits: loss.cotangent(logits, batch.label),
            batch.clean,
            self._rates(net),
            methods=self.methods_,
        )
        self.methods_ = (ahead.method,)  # one that failed once is not tried again
        gradients = loss.meta_gradients(ahead.logits.detach(), batch.label, ahead.tangent)
        self._step(net.criterion_, gradients)
        batch.logits = ahead.logits
        net.history.record_batch("meta_loss", ahead.meta_loss.item())

    @property
    def method_(self) -> str:
        """The method that was taken, or the first to try."""
        return self.methods_[0]

    def _step(self, loss: nn.Module, gradients: list[Tensor]) -> None:
        for parameter, gradient in zip(loss.parameters(), gradients, strict=True):
            parameter.grad = gradient
        self.optimizer_.step()

    def _rates(self, net: "NoisyLabelNet") -> dict[str, float]:
        """Look-ahead rate of each parameter that the optimiser moves, read anew: a schedule changes it."""
        groups = net.optimizer_.param_groups
        rates = {id(p): float(group["lr"]) for group in groups for p in group["params"] if p.requires_grad}
        named = {name: rates[id(p)] for name, p in net.plain_module_.named_parameters() if id(p) in rates}
        return named if self.inner_lr is None else dict.fromkeys(named, self.inner_lr)

    def release(self) -> None:
        """Let go of the clean rows: a trained net outlives them."""
        self.clean.release()
