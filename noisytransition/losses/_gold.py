"""Gold loss correction: cross-entropy for clean rows and the corrected loss for noisy rows, in one batch."""

import torch
from torch import Tensor
from torch.nn import functional as F

from ._forward import ForwardLoss


class GoldCorrectionLoss(ForwardLoss):
    """Corrected loss of noisy rows (`ForwardLoss`), cross-entropy of clean rows, which the column ``trusted`` marks.

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        Row i, column j is P(noisy = j | true = i).

    References
    ----------
    Hendrycks, Mazeika, Wilson, Gimpel, "Using Trusted Data to Train Deep Networks on Labels Corrupted by Severe
    Noise", NeurIPS 2018, Algorithm 1.

    Examples
    --------
    >>> import torch
    >>> from noisytransition.losses import GoldCorrectionLoss
    >>> loss, z = GoldCorrectionLoss([[0.5, 0.5], [0.5, 0.5]]), torch.tensor([[0.0, 2.0]])
    >>> float(loss(z, torch.tensor([1]), trusted=torch.tensor([False])))  # noisy: T is uniform, log 2
    0.693...
    >>> float(loss(z, torch.tensor([1]), trusted=torch.tensor([True])))  # clean: cross-entropy
    0.126...
    """

    columns = ("trusted",)

    def forward(self, logits: Tensor, y: Tensor, trusted: Tensor) -> Tensor:  # type: ignore[override]
        """Mean loss of logits of shape (n_samples, n_classes); `y` and `trusted` are of shape (n_samples,)."""
        clean = F.cross_entropy(logits, y, reduction="none")
        noisy = -self.log_likelihood(logits, y)
        return torch.where(trusted, clean, noisy).mean()
