"""Generalized cross-entropy: between cross-entropy, which trusts every label, and a robust absolute error."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class GeneralizedCrossEntropyLoss(nn.Module):
    r"""``(1 - p_y^q) / q``, with p the softmax of the logits; optionally cut off where a label is improbable.

    q to 0 is cross-entropy, q = 1 is ``1 - p_y``. The gradient is ``p_y^q`` times that of cross-entropy: labels that
    the network finds improbable pull less.

    Parameters
    ----------
    q : float in [0, 1], default=0.7
    truncation : float in (0, 1), optional
        Rows marked by a label ``y + n_classes`` cost the constant ``(1 - truncation^q) / q`` and pull no more.

    References
    ----------
    Zhang, Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels", NeurIPS
    2018, equations (6) and (8).

    Examples
    --------
    >>> import torch
    >>> z, y = torch.tensor([[0.0, 0.0]]), torch.tensor([1])
    >>> float(GeneralizedCrossEntropyLoss(q=1.0)(z, y))
    0.5
    """

    def __init__(self, q: float = 0.7, *, truncation: float | None = None) -> None:
        super().__init__()
        self.q = q
        self.truncation = truncation

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Mean loss of logits of shape (n_samples, n_classes) against labels of shape (n_samples,)."""
        n_classes = logits.shape[1]
        log_p = -F.cross_entropy(logits, y % n_classes, reduction="none")
        # in log space: the derivative of p^q is infinite at p = 0
        loss = -torch.expm1(self.q * log_p) / self.q if self.q else -log_p
        if self.truncation is not None:
            loss = torch.where(y < n_classes, loss, torch.full_like(loss, self._ceiling(self.truncation)))
        return loss.mean()

    def _ceiling(self, p: float) -> float:
        return (1 - p**self.q) / self.q if self.q else -math.log(p)
