"""Expectation-maximisation of T during training, from running posterior counts of the batches."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..losses import ForwardLoss, clean_posterior
from ._update import Update

if TYPE_CHECKING:
    from ..nets import Batch, NoisyLabelNet

# weight of the present T as a pseudo-count: a class without posterior in any batch keeps its row. Small beside the
# count of a single row; a choice, not measured.
_PSEUDO_COUNT = 1e-12


class PosteriorCounts(Update):
    r"""Estimate T by a moving average of posterior counts over the training batches (online EM).

    After each batch of n rows with posterior ``q[n, i] = P(true i | x_n, y_n)``::

        C = (1 - rate) C + rate * mean_n q[n, :] e_{y_n}'
        T = C with rows divided by their sums

    Parameters
    ----------
    rate : float in (0, 1]
        Weight of the newest batch.
    burn_in : int, default=0
        Batches that are counted before T is updated for the first time.

    References
    ----------
    Dempster, Laird, Rubin, 1977; Neal, Hinton, "A View of the EM Algorithm that Justifies Incremental, Sparse, and
    other Variants", 1998 (the running counts).
    """

    def __init__(self, rate: float, burn_in: int = 0) -> None:
        self.rate = rate
        self.burn_in = burn_in

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Start from the counts of equally frequent classes under the initial T."""
        super().on_train_begin(net, **kwargs)
        T = net.criterion_.log_transition.exp()
        self.counts_: Tensor = T / len(T)
        self.n_batches_ = 0

    @torch.no_grad()
    def after_step(self, net: "NoisyLabelNet", batch: "Batch", logits: Tensor) -> None:
        """Count the batch and, after the burn-in, update T."""
        loss: ForwardLoss = net.criterion_
        log_transition = loss.log_transition
        posterior = clean_posterior(logits, batch.label, log_transition.to(logits.dtype)).to(self.counts_.dtype)
        self.counts_.mul_(1 - self.rate).index_add_(1, batch.label, posterior.T, alpha=self.rate / len(posterior))
        self.n_batches_ += 1
        if self.n_batches_ > self.burn_in:
            loss.transition_logits.copy_(torch.add(self.counts_, log_transition.exp(), alpha=_PSEUDO_COUNT).log_())
