"""Expectation-maximisation while the network trains: T follows the posterior counts of its batches."""

from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._forward import TINY, ForwardLoss


class _LossAndPosterior(torch.autograd.Function):
    """Mean corrected cross-entropy with the posterior it is made of, which gives the gradient in closed form too."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, y: Tensor, log_transition: Tensor) -> tuple[Tensor, Tensor]:
        log_f = torch.log_softmax(logits, 1)
        log_joint = log_f + log_transition.T[y]
        log_likelihood = torch.logsumexp(log_joint, 1, keepdim=True)
        posterior = (log_joint - log_likelihood).exp()
        ctx.save_for_backward(((log_f.exp() - posterior) / len(y)).to(logits.dtype))
        ctx.mark_non_differentiable(posterior)
        return -log_likelihood.mean(), posterior

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return slope * gradient, None, None


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
        loss, posterior = _LossAndPosterior.apply(logits, y, self.log_transition.to(logits.dtype))
        if self.training:
            self._count(posterior, y)
        return loss

    @torch.no_grad()
    def _count(self, posterior: Tensor, y: Tensor) -> Any:
        batch = torch.zeros_like(self.counts).index_add_(0, y, posterior.to(self.counts.dtype)).T
        self.counts.lerp_(batch / len(y), self.rate)
        self.n_batches += 1
        if self.n_batches > self.hold:  # a class that gets no posterior any more keeps its row
            self.transition_logits.copy_((self.counts + TINY * self.log_transition.exp()).log())
