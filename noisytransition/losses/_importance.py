"""Importance reweighting: cross-entropy weighted by P(true = y | x) / P(noisy = y | x)."""

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

# in float32 and float64 its exponential is finite, and half precision is not used for losses
_LARGEST_LOG_RATIO = 80.0


class ImportanceReweightedLoss(nn.Module):
    r"""Importance-reweighted cross-entropy: weights ``p_y / ((T + dT)' p)_y``, with p the softmax of the logits.

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        T: row i, column j is P(noisy = j | true = i). It is fixed; dT starts at zero.

    Notes
    -----
    While dT is fixed, beta is a constant weight. When dT is learned (``revision.requires_grad``), dT and the logits
    have gradients through beta too.

    References
    ----------
    Xia et al., "Are Anchor Points Really Indispensable in Label-Noise Learning?", NeurIPS 2019, equations (4), (6).

    Examples
    --------
    >>> import torch
    >>> from noisytransition.losses import ImportanceReweightedLoss
    >>> loss = ImportanceReweightedLoss([[0.5, 0.5], [0.0, 1.0]])
    >>> float(loss(torch.zeros(1, 2), torch.tensor([0])))  # beta = 0.5 / 0.25
    1.386...
    """

    base: Tensor

    def __init__(self, transition_matrix: ArrayLike) -> None:
        super().__init__()
        self.register_buffer("base", torch.as_tensor(np.asarray(transition_matrix), dtype=torch.get_default_dtype()))
        self.revision = nn.Parameter(torch.zeros_like(self.base), requires_grad=False)

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Mean loss of logits of shape (n_samples, n_classes) against noisy labels of shape (n_samples,)."""
        log_p = torch.log_softmax(logits, dim=1)
        of_label = log_p.gather(1, y[:, None])
        T = (self.base + self.revision).clamp_min(0).to(logits.dtype)  # T + dT may have negative entries
        ratios = (log_p - of_label).clamp_max(_LARGEST_LOG_RATIO).exp()  # P(i | x) / P(y | x), which may be infinite
        beta = 1 / (ratios * T.T[y]).sum(1).clamp_min(torch.finfo(ratios.dtype).tiny ** 0.5)  # large, and finite
        return -((beta if self.revision.requires_grad else beta.detach()) * of_label.squeeze(1)).mean()

    @property
    def transition_matrix(self) -> NDArray[np.float64]:
        """T + dT, with negative entries set to 0 and rows made to sum to 1; a float64 ndarray."""
        T = (self.base + self.revision).detach().double().cpu().numpy().clip(min=1e-12)
        return T / T.sum(axis=1, keepdims=True)
