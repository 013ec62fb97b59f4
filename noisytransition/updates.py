"""Updates of the parameters of a loss: skorch callbacks that also run before and after each step."""

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from .losses import ForwardLoss
from .meta_gradient import look_ahead
from .nets import CleanBatches, NoisyLabelNet, Update
from .nets._rows import Batch

__all__ = ["ByGradient", "MetaGradient", "PosteriorCounts", "Truncation", "Update"]


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
            self.param_groups = [("criterion_.*", {"weight_decay": 0.0})]

    def on_train_begin(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        """Require gradients; create the optimiser of the loss's parameters, now that the loss is on the device."""
        super().on_train_begin(net, **kwargs)
        net.criterion_.requires_grad_(True)
        if self.lr is not None:
            self.optimizer_ = torch.optim.SGD(net.criterion_.parameters(), lr=self.lr)

    def on_grad_computed(self, net: NoisyLabelNet, *args: Any, **kwargs: Any) -> None:
        """Take a step with the gradient at the weights before the network's step."""
        if self.lr is not None:
            net.scaler_.step(self.optimizer_)  # in fp16 only if all gradients are finite
            self.optimizer_.zero_grad()


@dataclass(eq=False, repr=False)
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

    clean: CleanBatches
    lr: float
    _: KW_ONLY
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD
    inner_lr: float | None = None
    normalize: bool = False
    method: str = "auto"

    def on_train_begin(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        """Create the optimiser of the loss's parameters, now that the loss is on the device."""
        super().on_train_begin(net, **kwargs)
        self.optimizer_ = self.optimizer(net.criterion_.parameters(), lr=self.lr)
        self.methods_ = None if self.method == "auto" else (self.method,)

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
            precision="float32" if net.precision == "fp16" else net.precision,  # gradients would underflow
        )
        self.methods_ = (ahead.method,)  # do not retry methods that failed
        batch.logits = ahead.logits
        net.history.record_batch("meta_loss", ahead.meta_loss.item())
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


# Weight of the present T as a pseudo-count, so that a class without posterior in any batch keeps its row. Small
# compared to the count of one sample; a choice, not measured.
_PSEUDO_COUNT = 1e-12
# Share of the weight of older counts below which all counts are rescaled: rarely, since this takes time O(n_classes^2),
# and before numbers overflow. A choice, not measured.
_LEAST_SHARE = 1e-3


@dataclass(eq=False, repr=False)
class PosteriorCounts(Update):
    """Estimate T by a moving average of posterior counts over the training batches (online EM).

    After each batch, with the posterior ``q[n, i] = P(true i | x_n, y_n)`` of noisy samples and 0 of clean samples::

        C = (1 - rate) C + rate * mean_n q[n, :] e_{y_n}'
        T = C with normalised rows

    Parameters
    ----------
    rate : float in (0, 1]
        Weight of the newest batch.
    burn_in : int, default=0
        Number of batches that are counted before the first update of T.

    References
    ----------
    Dempster, Laird, Rubin, 1977; Neal, Hinton, "A View of the EM Algorithm that Justifies Incremental, Sparse, and
    other Variants", 1998 (the running counts).
    """

    rate: float
    burn_in: int = 0

    def on_train_begin(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        """Initialise the counts by the initial T and equal class priors."""
        super().on_train_begin(net, **kwargs)
        # C[i, j] = share_ * counts_[j, i], so that one number decays, and a batch changes the rows of its labels
        self.counts_: Tensor = net.criterion_.transition_by_label
        self.sums_: Tensor = self.counts_.sum(0)
        self.share_ = 1 / len(self.sums_)
        self.n_batches_ = 0

    def on_epoch_begin(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        """Write the whole T, so that a resumed training continues with the same numbers."""
        self._normalize()
        if self.n_batches_ > self.burn_in:
            net.criterion_.set_counts(self.counts_, self.sums_)

    @torch.no_grad()
    def after_step(self, net: NoisyLabelNet, batch: Batch, logits: Tensor) -> None:
        """Count the noisy samples of the batch and, after the burn-in, update T."""
        loss: ForwardLoss = net.criterion_
        posterior = loss.posterior(logits, batch.label).to(self.counts_.dtype)
        if "is_clean" in batch.columns:
            posterior = posterior * ~batch.columns["is_clean"][:, None]
        self.share_ *= 1 - self.rate
        if is_whole := self.share_ < _LEAST_SHARE:
            self._normalize()
        weight = self.rate / (len(posterior) * self.share_)
        self.counts_.index_add_(0, batch.label, posterior, alpha=weight)
        self.sums_.add_(posterior.sum(0), alpha=weight)
        self.n_batches_ += 1
        if self.n_batches_ > self.burn_in:
            is_whole = is_whole or self.n_batches_ == self.burn_in + 1
            loss.set_counts(self.counts_, self.sums_, None if is_whole else batch.label)

    def _normalize(self) -> None:
        """Multiply the counts by their share. The sum of a class stays positive, which keeps its row of T."""
        sums = self.counts_.sum(0)
        self.sums_ = (sums * self.share_).clamp_min_(_PSEUDO_COUNT)
        self.counts_ *= self.sums_ / sums
        self.counts_.clamp_min_(torch.finfo(self.counts_.dtype).tiny)  # no log 0 for a label absent for long
        self.share_ = 1.0


#: Epochs between two evaluations of all samples, as in the paper on generalized cross-entropy
_EVERY = 10


@dataclass(eq=False, repr=False)
class Truncation(Update):
    """Set the ``weight`` of samples (by ``index``) to 0 if the net gives their noisy label a low probability, else 1.

    Parameters
    ----------
    threshold : float
        Largest probability of the label of a sample with weight 0.
    start : int
        Number of epochs before the first evaluation; evaluations follow every ten epochs.
    """

    threshold: float
    start: int

    def on_train_begin(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        """Keep all samples."""
        super().on_train_begin(net, **kwargs)
        self.kept_: Tensor | None = None

    def on_epoch_begin(self, net: NoisyLabelNet, dataset_train: Dataset | None = None, **kwargs: Any) -> None:
        """Evaluate all training samples, from `start` on every ten epochs."""
        epoch = len(net.history) - 1 - self.start
        if epoch < 0 or epoch % _EVERY:
            return
        index = []
        kept = []
        for batch in net.get_iterator(dataset_train):
            proba = torch.softmax(net.evaluation_step(batch), dim=1).cpu()
            index.append(batch.columns["index"])
            kept.append(proba.gather(1, batch.label[:, None]).squeeze(1) > self.threshold)
        rows = torch.cat(index)
        self.kept_ = torch.zeros(int(rows.max()) + 1, dtype=torch.bool)
        self.kept_[rows] = torch.cat(kept)
        if not self.kept_.any():
            warnings.warn(f"truncation={self.threshold} leaves no sample to train on; lower it.", stacklevel=2)

    def before_step(self, net: NoisyLabelNet, batch: Batch) -> None:
        """Set the weights of the samples of the batch."""
        if self.kept_ is not None:
            index = batch.columns["index"]
            batch.columns["weight"] = self.kept_.to(index.device)[index]
