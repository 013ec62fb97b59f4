"""Generalized cross-entropy: between cross-entropy and the mean absolute error, which is robust to label noise."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


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
