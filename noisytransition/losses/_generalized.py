"""Generalized cross-entropy: between cross-entropy and the mean absolute error, which is robust to label noise."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# weight of the newest batch in the running means of its labels; a choice. The mean of one batch alone is worse for many
# classes, which have few rows in it.
_RATE = 0.05
# lower bound of q log p in the running means: labels less probable than this have equal weights
_LOWEST = -50.0


class GeneralizedCrossEntropyLoss(nn.Module):
    r"""Generalized cross-entropy, ``(1 - p_y^q) / q``, with p the softmax of the logits; truncation is optional.

    The limit q to 0 is cross-entropy, q = 1 is ``1 - p_y``. The gradient is ``p_y^q`` times that of cross-entropy:
    labels that are improbable under the network have less weight.

    Parameters
    ----------
    q : float in [0, 1], default=0.7
        0 is cross-entropy, 1 is ``1 - p_y``.
    truncation : float in (0, 1), optional
        The loss of rows with ``weight`` 0 is the constant ``(1 - truncation^q) / q``, without a gradient.

    References
    ----------
    Zhang, Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels", NeurIPS
    2018, equations (6) and (8).

    Examples
    --------
    >>> import torch
    >>> from noisytransition.losses import GeneralizedCrossEntropyLoss
    >>> z, y = torch.tensor([[0.0, 0.0]]), torch.tensor([1])
    >>> float(GeneralizedCrossEntropyLoss(q=1.0)(z, y))
    0.5
    """

    def __init__(self, q: float = 0.7, *, truncation: float | None = None) -> None:
        super().__init__()
        self.q = q
        self.truncation = truncation

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the rows that `forward` takes as arguments."""
        return () if self.truncation is None else ("weight",)

    def forward(self, logits: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """Mean loss of logits of shape (n_samples, n_classes); labels and weights are of shape (n_samples,)."""
        log_p = -F.cross_entropy(logits, y, reduction="none")
        # in log space: the derivative of p^q is infinite at p = 0
        loss = -torch.expm1(self.q * log_p) / self.q if self.q else -log_p
        if self.truncation is not None and weight is not None:
            loss = torch.where(weight > 0, loss, torch.full_like(loss, self._max_loss(self.truncation)))
        return loss.mean()

    def _max_loss(self, p: float) -> float:
        return (1 - p**self.q) / self.q if self.q else -math.log(p)


class BalancedGeneralizedCrossEntropyLoss(GeneralizedCrossEntropyLoss):
    r"""Generalized cross-entropy in which every label keeps its share of the gradient.

    The weight of a row is ``w = p_y^q / m_y``, with ``m_y`` the mean of ``p_y^q`` over the rows with the same noisy
    label, and the training loss is the mean of ``-w log p_y``, w without a gradient. Without the division, labels that
    are improbable under the net in all of their rows have almost no weight, so a class that the net does not know yet
    is never learned.

    ``m`` is a running mean over the training batches; rows that truncation leaves out do not count. In evaluation mode,
    the loss is `GeneralizedCrossEntropyLoss`.

    Parameters
    ----------
    n_classes : int
        Number of labels that have a running mean.
    q : float in [0, 1], default=0.7
        With 0 the loss is cross-entropy.
    truncation : float in (0, 1), optional
        As in `GeneralizedCrossEntropyLoss`.

    Examples
    --------
    >>> import torch
    >>> from noisytransition.losses import BalancedGeneralizedCrossEntropyLoss
    >>> loss = BalancedGeneralizedCrossEntropyLoss(2, q=1.0)
    >>> z, y = torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([1, 1])  # p_y: 0.12 and 0.5, w: 0.4 and 1.6
    >>> float(loss(z, y))
    0.96...
    """

    sums: Tensor
    counts: Tensor

    def __init__(self, n_classes: int, q: float = 0.7, *, truncation: float | None = None) -> None:
        super().__init__(q, truncation=truncation)
        self.register_buffer("sums", torch.zeros(n_classes))
        self.register_buffer("counts", torch.zeros(n_classes))

    def forward(self, logits: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """Mean loss of logits of shape (n_samples, n_classes); labels and weights are of shape (n_samples,)."""
        if not self.training:
            return super().forward(logits, y, weight)
        n = len(y)
        if self.truncation is not None and weight is not None:
            logits, y = logits[weight > 0], y[weight > 0]
        cost = F.cross_entropy(logits, y, reduction="none")
        power = torch.exp((-self.q * cost.detach().to(self.sums.dtype)).clamp_min(_LOWEST))
        self._count(power, y)
        relative = power / (self.sums / self.counts)[y]
        return (relative.to(cost.dtype) * cost).sum() / n

    def _count(self, power: Tensor, y: Tensor) -> None:
        """Add the ``p_y^q`` of a batch to the running sums of its labels."""
        found = torch.bincount(y, minlength=len(self.counts)).to(self.counts.dtype)
        decay = torch.where(found > 0, 1 - _RATE, 1.0)
        self.sums.mul_(decay).index_add_(0, y, power)
        self.counts.mul_(decay).add_(found)
