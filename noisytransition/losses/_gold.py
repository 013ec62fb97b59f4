"""Gold loss correction: clean rows cost cross-entropy, noisy rows the corrected loss, in one batch."""

import torch
from torch import Tensor

from ._forward import ForwardLoss, corrected_cross_entropy


class GoldCorrectionLoss(ForwardLoss):
    """`ForwardLoss` for noisy rows; cross-entropy for clean rows, which a label ``y + n_classes`` marks.

    A clean label is a second alphabet of labels, with the identity for its transition matrix: the loss is the
    corrected one of ``[T | I]``.

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
    >>> loss, z = GoldCorrectionLoss([[0.5, 0.5], [0.5, 0.5]]), torch.tensor([[0.0, 2.0]])
    >>> float(loss(z, torch.tensor([1])))  # noisy: T says nothing, log 2
    0.693...
    >>> float(loss(z, torch.tensor([1 + 2])))  # clean: cross-entropy
    0.126...
    """

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Mean loss of logits of shape (n_samples, n_classes) against labels of shape (n_samples,)."""
        log_transition = self.log_transition.to(logits.dtype)
        log_identity = torch.eye(len(log_transition), dtype=logits.dtype, device=logits.device).log()
        return corrected_cross_entropy(logits, y, torch.cat([log_transition, log_identity], dim=1))
