"""Expectation-maximisation while the network trains: T follows the posterior counts of its batches."""

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional as F

from ._forward import TINY, ForwardLoss


class EMLoss(ForwardLoss):
    r"""Corrected cross-entropy whose T is a running statistic of the training batches.

    In training mode, after each batch of n rows with posterior ``q[n, i] = P(true i | x_n, y_n)``::

        C = (1 - rate) C + rate * mean_n q[n, :] e_{y_n}'
        T = C with rows divided by their sums

    T is a buffer, like the mean of a batch normalisation: no optimiser moves it, and in evaluation mode it rests.

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        Where T starts; row i, column j is P(noisy = j | true = i).
    rate : float in (0, 1]
        Weight of the newest batch.
    hold : int, default=0
        Batches before T first moves; they are counted already.

    References
    ----------
    Dempster, Laird, Rubin, 1977; Neal, Hinton, "A View of the EM Algorithm that Justifies Incremental, Sparse, and
    other Variants", 1998 (the running counts).

    Examples
    --------
    >>> import torch
    >>> loss = EMLoss([[0.5, 0.5], [0.5, 0.5]], rate=1.0)
    >>> _ = loss(torch.tensor([[9.0, -9.0], [9.0, -9.0], [-9.0, 9.0]]), torch.tensor([0, 0, 1]))
    >>> loss.transition_matrix.round(3)
    array([[1., 0.],
           [0., 1.]])
    """

    counts: Tensor
    n_batches: Tensor

    def __init__(self, transition_matrix: ArrayLike, *, rate: float, hold: int = 0) -> None:
        super().__init__(transition_matrix)
        self.rate = rate
        self.hold = hold
        self.register_buffer("counts", self.log_transition.exp() / len(self.log_transition))
        self.register_buffer("n_batches", torch.zeros((), dtype=torch.int64))

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Mean loss of logits of shape (n_samples, n_classes) against noisy labels of shape (n_samples,)."""
        if not self.training:
            return super().forward(logits, y)
        log_transition = self.log_transition
        of_label = log_transition.T[y].to(logits.dtype)
        log_posterior = F.log_softmax(logits.detach() + of_label, dim=1)
        posterior = log_posterior.exp()
        self._count(posterior, y, log_transition)
        # the slope is that of cross-entropy with the posterior as labels; what the value has besides is constant
        constant = (posterior * (log_posterior - of_label)).sum() / len(y)
        return F.cross_entropy(logits, posterior) + constant

    @torch.no_grad()
    def _count(self, posterior: Tensor, y: Tensor, log_transition: Tensor) -> None:
        share = posterior.T.to(self.counts.dtype)
        self.counts.mul_(1 - self.rate).index_add_(1, y, share, alpha=self.rate / len(y))
        self.n_batches += 1
        # a class that gets no posterior any more keeps its row
        moved = torch.add(self.counts, log_transition.exp(), alpha=TINY).log_()
        self.transition_logits.copy_(torch.where(self.n_batches > self.hold, moved, self.transition_logits))
