"""The training step of Algorithm 1: the loss's own parameters first, by the clean loss a step ahead, then W."""

from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch import Tensor

from ..meta_gradient import LookAhead, look_ahead, route_ladder
from ._batches import Rows
from ._joint import CleanBatches
from ._net import NoisyLabelNet


class MetaLoss(Protocol):
    """A criterion whose parameters the meta-gradient can move."""

    def meta_parameters(self) -> list[Tensor]:
        """Return the tensors to move."""

    def cotangent(self, logits: Tensor, y: Tensor) -> Tensor:
        """Return d mean loss / d logits."""

    def meta_gradients(self, logits: Tensor, y: Tensor, tangent: Tensor) -> list[Tensor]:
        """Return the gradient of -<cotangent, tangent> for each of the tensors to move."""


class MetaStep:
    """Lines 4 and 5 of Algorithm 1: a clean batch, the look-ahead, one step of the loss's parameters.

    Parameters
    ----------
    meta : Rows
        The clean rows.
    lr : float
        Step size of the loss's parameters (the paper's beta).
    optimizer : class, default=torch.optim.SGD
        Makes that step; it sees the loss's parameters alone, never the network's.
    batch_size : int, optional
        Clean rows in a step; default: as many as the noisy batch size. Drawn anew, without repetition, each time.
    every : int, default=1
        Look ahead in every `every`-th step; in between the loss stays as it is.
    look_ahead_lr : float, optional
        Rate of the virtual step. Default: the network optimiser's current rate, per parameter group.
    route : str, default="auto"
        A name in `noisytransition.meta_gradient.ROUTES`.
    """

    def __init__(
        self,
        meta: Rows,
        lr: float,
        *,
        optimizer: Any = torch.optim.SGD,
        batch_size: int | None = None,
        every: int = 1,
        look_ahead_lr: float | None = None,
        route: str = "auto",
    ) -> None:
        self.meta, self.lr, self.batch_size, self.every = meta, lr, batch_size, every
        self.make_optimizer, self.look_ahead_lr = optimizer, look_ahead_lr
        self.route = route
        self.n_calls = 0
        self.optimizer: Any = None

    def begin(self, net: NoisyLabelNet) -> None:
        """Make the optimiser of the loss's parameters, once the net has moved the loss to its device."""
        self.optimizer = self.make_optimizer(net.criterion_.meta_parameters(), lr=self.lr)
        self.routes = route_ladder(net.plain_module_) if self.route == "auto" else (self.route,)
        self.clean_batches = CleanBatches(self.meta, self.batch_size or net.batch_size)

    def state_dict(self) -> dict[str, Any]:
        """Return what an interrupted training needs to go on."""
        return {"optimizer": self.optimizer.state_dict(), "route": self.route, "n_calls": self.n_calls}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state; a training that had ended needs no optimiser."""
        if self.optimizer is not None:
            self.optimizer.load_state_dict(state["optimizer"])
        self.route, self.n_calls = state["route"], state["n_calls"]
        self.routes = (self.route,)

    def __call__(self, net: NoisyLabelNet, x: Tensor, y: Tensor, meta: tuple[Tensor, Tensor]) -> LookAhead:
        """Look ahead from the noisy batch and move the loss's parameters."""
        loss: MetaLoss = net.criterion_
        ahead = look_ahead(
            net.plain_module_, x, lambda z: loss.cotangent(z, y), meta, self._rates(net), routes=self.routes
        )
        self.route, self.routes = ahead.route, (ahead.route,)  # a rung that failed once is not tried again
        gradients = loss.meta_gradients(ahead.logits.detach(), y, ahead.tangent)
        for parameter, gradient in zip(loss.meta_parameters(), gradients, strict=True):
            parameter.grad = gradient
        self.optimizer.step()
        return ahead

    def is_due(self) -> bool:
        """Say whether this step looks ahead, and count it."""
        self.n_calls += 1
        return (self.n_calls - 1) % self.every == 0

    def _rates(self, net: NoisyLabelNet) -> dict[str, float]:
        """Look-ahead rate of each parameter that the optimiser moves, read anew: a schedule changes it."""
        groups = net.optimizer_.param_groups
        rates = {id(p): float(group["lr"]) for group in groups for p in group["params"] if p.requires_grad}
        named = {name: rates[id(p)] for name, p in net.plain_module_.named_parameters() if id(p) in rates}
        return named if self.look_ahead_lr is None else dict.fromkeys(named, self.look_ahead_lr)


class LookAheadNet(NoisyLabelNet):
    """A net whose criterion learns by looking ahead (`MetaStep`) before each step of the module.

    Parameters
    ----------
    module : nn.Module, class or instance
    meta_step : MetaStep, optional
        None once trained: the clean rows are not kept.
    meta_weight : float, default=0.0
        Weight of the clean batch's own cross-entropy in the loss of the module's step; 0 is the paper.
    **kwargs
        As for `NoisyLabelNet`.
    """

    def __init__(self, module: Any, *args: Any, meta_step: Any = None, meta_weight: float = 0.0, **kwargs: Any) -> None:
        super().__init__(module, *args, **kwargs)
        self.meta_step = meta_step
        self.meta_weight = meta_weight

    def get_all_learnable_params(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """Parameters of the module's optimiser: the loss's own are moved by the meta-step alone."""
        yield from self.module_.named_parameters()

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Start the optimiser of the loss's parameters."""
        super().on_train_begin(net, X=X, y=y, **kwargs)
        self.meta_step.begin(self)

    def train_step(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        """One iteration of Algorithm 1; the forward pass of the look-ahead serves the real step too."""
        self._set_training(True)
        x, y = self.prepare(batch[0]), batch[1].to(self.device)
        due, self._logits = self.meta_step.is_due(), None
        self._meta_batch: Any = self.meta_step.clean_batches.draw(self) if due or self.meta_weight else None
        if due:
            ahead = self.meta_step(self, x, y, self._meta_batch)
            self._logits = ahead.logits
            self.history.record_batch("meta_loss", ahead.meta_loss.item())
        try:
            return super().train_step((x, y), **fit_params)
        finally:
            del self._logits, self._meta_batch

    def train_step_single(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        """Loss and gradient of the module's weights; an optimiser that asks again (LBFGS) gets a new forward."""
        (x, y), logits, self._logits = batch, self._logits, None
        logits = self.plain_module_(x, **fit_params) if logits is None else logits
        loss = self.get_loss(logits, y, X=x, training=True)
        if self.meta_weight:
            x_meta, y_meta = self._meta_batch
            loss = loss + self.meta_weight * torch.nn.functional.cross_entropy(self.plain_module_(x_meta), y_meta)
        loss.backward()
        return {"loss": loss, "y_pred": logits}
