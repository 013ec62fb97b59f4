"""Update of the parameters of a loss by the meta-gradient: Algorithm 1, lines 4 and 5."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..meta_gradient import look_ahead
from ..meta_gradient._methods import candidate_methods
from ..nets import CleanBatches, NoisyLabelNet, Update
from ..nets._rows import Batch


class MetaGradient(Update):
    """Before each step of the network, take one step of the loss's parameters along the meta-gradient.

    The step of the network reuses the forward pass of the look-ahead. The loss has methods `cotangent` and
    `meta_gradients`, as `ForwardLoss` and `WeightedLoss`.

    Parameters
    ----------
    clean : CleanBatches
        Clean samples; each look-ahead uses a batch.
    lr : float
        Learning rate of the loss's parameters (the paper's beta).
    optimizer : callable, default=torch.optim.SGD
        Called with the loss's parameters and ``lr=``.
    inner_lr : float, optional
        Learning rate of the virtual step. Default: the current rate of each parameter group of the network's optimiser.
    normalize : bool, default=False
        Whether to make `lr` independent of the network's depth, width and scale, of the number of classes and of the
        batch size. The tangent of the logits gets the root mean square ``1 - exp(-clean loss)``, the order of the clean
        samples' residuals; the gradient of a row of T, which has only its class's samples, is multiplied by
        n_classes; `lr` is divided by the number of steps in an epoch.
    method : str, default="auto"
        Method of differentiation, as in `look_ahead`. "auto": the cheapest that supports the module.
    """

    def __init__(
        self,
        clean: CleanBatches,
        lr: float,
        *,
        optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
        inner_lr: float | None = None,
        normalize: bool = False,
        method: str = "auto",
    ) -> None:
        self.clean = clean
        self.lr = lr
        self.optimizer = optimizer
        self.inner_lr = inner_lr
        self.normalize = normalize
        self.method = method

    def on_train_begin(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        """Create the optimiser of the loss's parameters, now that the loss is on the device."""
        super().on_train_begin(net, **kwargs)
        self.optimizer_ = self.optimizer(net.criterion_.parameters(), lr=self.lr)
        self.methods_ = candidate_methods(net.plain_module_) if self.method == "auto" else (self.method,)

    def on_epoch_begin(self, net: NoisyLabelNet, dataset_train: Any = None, **kwargs: Any) -> None:
        """Count the samples of an epoch."""
        self.n_samples = len(dataset_train)

    def before_step(self, net: NoisyLabelNet, batch: Batch) -> None:
        """Update the loss's parameters by a look-ahead on this batch."""
        loss = net.criterion_
        ahead = look_ahead(
            net.plain_module_,
            batch.x,
            lambda logits: loss.cotangent(logits, batch.label),
            self.clean.draw(net),
            self._rates(net),
            methods=self.methods_,
            precision=net.precision,
        )
        self.methods_ = (ahead.method,)  # do not retry methods that failed
        batch.logits = ahead.logits
        net.history.record_batch("meta_loss", ahead.meta_loss.item())
        if net.precision == "fp16" and not ahead.tangent.isfinite().all():
            return  # overflow: omit this step, as for the network
        tangent = ahead.tangent
        if self.normalize:
            tangent = _normalized(tangent, ahead.meta_loss) * (len(tangent) / self.n_samples)
        parameters = list(net.criterion_.parameters())
        gradients = loss.meta_gradients(ahead.logits.detach(), batch.label, tangent)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        self.optimizer_.step()
        torch.autograd.graph.increment_version(parameters)  # which fused optimisers do not

    def on_epoch_end(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        """Record T, and the mean clean loss after the look-aheads of the epoch, or NaN."""
        super().on_epoch_end(net, **kwargs)
        losses = [batch["meta_loss"] for batch in net.history[-1]["batches"] if "meta_loss" in batch]
        net.history.record("meta_loss", float(np.mean(losses)) if losses else float("nan"))

    def _rates(self, net: NoisyLabelNet) -> dict[str, float]:
        """Virtual learning rate of each parameter. Read in each step, since a schedule can change it."""
        groups = net.optimizer_.param_groups
        rates = {id(p): float(group["lr"]) for group in groups for p in group["params"] if p.requires_grad}
        named = {name: rates[id(p)] for name, p in net.plain_module_.named_parameters() if id(p) in rates}
        return named if self.inner_lr is None else dict.fromkeys(named, self.inner_lr)


def _normalized(tangent: Tensor, clean_loss: Tensor) -> Tensor:
    """Rescale a tangent of the logits to the root mean square ``1 - exp(-clean_loss)``, times the number of classes."""
    root_mean_square = tangent.square().sum(1).mean().sqrt()
    factor = -torch.expm1(-clean_loss) / root_mean_square.clamp_min(torch.finfo(tangent.dtype).tiny)
    return tangent * (factor * tangent.shape[1])
