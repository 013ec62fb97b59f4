"""Cross-entropy weighted by the probability of the label, by importance, or by a small network."""

import math

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

# Its exponential is finite in float32, and losses are not in half precision
_LARGEST_LOG_RATIO = 80.0


class GeneralizedCrossEntropyLoss(nn.Module):
    """Generalized cross-entropy, ``(1 - p_y^q) / q`` with p = softmax(logits), optionally truncated.

    Its gradient is ``p_y^q`` times that of cross-entropy, so improbable labels have less weight.

    Parameters
    ----------
    q : float in [0, 1], default=0.7
        0 is cross-entropy, 1 is ``1 - p_y``.
    truncation : float in (0, 1), optional
        Samples with ``weight`` 0 have the constant loss ``(1 - truncation^q) / q`` without a gradient.

    References
    ----------
    Zhang, Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels", NeurIPS 2018,
    equations (6) and (8).
    """

    def __init__(self, q: float = 0.7, *, truncation: float | None = None) -> None:
        super().__init__()
        self.q = q
        self.truncation = truncation
        #: columns of the batch that `forward` takes as arguments
        self.columns = () if truncation is None else ("weight",)

    def forward(self, logits: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """Mean loss of logits of shape (n_samples, n_classes); `y` and `weight` have shape (n_samples,)."""
        log_p = -F.cross_entropy(logits, y, reduction="none")
        # in log space: the derivative of p^q is infinite at p = 0
        loss = -torch.expm1(self.q * log_p) / self.q if self.q else -log_p
        if self.truncation is not None and weight is not None:
            p = self.truncation
            constant = (1 - p**self.q) / self.q if self.q else -math.log(p)
            loss = torch.where(weight > 0, loss, torch.full_like(loss, constant))
        return loss.mean()


class ImportanceReweightedLoss(nn.Module):
    """Importance-reweighted cross-entropy, with weights ``p_y / ((T + dT)' p)_y`` and p = softmax(logits).

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        Fixed noise transition matrix T: entry (i, j) is P(noisy = j | true = i). dT starts at zero.

    Notes
    -----
    While dT is fixed, the weights are constants. If dT is learned (``revision.requires_grad``), dT and the logits also
    have gradients through the weights.

    References
    ----------
    Xia et al., "Are Anchor Points Really Indispensable in Label-Noise Learning?", NeurIPS 2019, equations (4), (6).
    """

    def __init__(self, transition_matrix: ArrayLike) -> None:
        super().__init__()
        self.base = nn.Buffer(torch.as_tensor(np.asarray(transition_matrix), dtype=torch.get_default_dtype()))
        self.revision = nn.Parameter(torch.zeros_like(self.base), requires_grad=False)

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Mean loss of logits of shape (n_samples, n_classes) against noisy labels of shape (n_samples,)."""
        log_p = torch.log_softmax(logits, dim=1)
        of_label = log_p.gather(1, y[:, None])
        T = (self.base + self.revision).clamp_min(0).to(logits.dtype)  # T + dT may have negative entries
        ratios = (log_p - of_label).clamp_max(_LARGEST_LOG_RATIO).exp()  # P(i | x) / P(y | x), which can be infinite
        beta = 1 / (ratios * T.T[y]).sum(1).clamp_min(torch.finfo(ratios.dtype).tiny ** 0.5)  # large but finite
        return -((beta if self.revision.requires_grad else beta.detach()) * of_label.squeeze(1)).mean()

    @property
    def transition_matrix(self) -> NDArray[np.float64]:
        """T + dT as a float64 ndarray, with negative entries set to 0 and rows normalised."""
        T = (self.base + self.revision).detach().double().cpu().numpy().clip(min=1e-12)
        return T / T.sum(axis=1, keepdims=True)


class WeightedLoss(nn.Module):
    """Weighted cross-entropy, ``sum of a_n * l_n``, with ``a_n = V(l_n) / n_samples`` from a weighting network V.

    V is a linear layer with 100 units, ReLU, a linear layer with one output, and a sigmoid. Weights are constants in
    the gradient of the logits; V is learned by the meta-gradient only.

    References
    ----------
    Shu, Xie, Yi, Zhao, Zhou, Xu, Meng, "Meta-Weight-Net: Learning an Explicit Mapping For Sample Weighting", NeurIPS
    2019, equations (2) to (5).
    """

    def __init__(self) -> None:
        super().__init__()
        self.weight_net = nn.Sequential(nn.Linear(1, 100), nn.ReLU(), nn.Linear(100, 1), nn.Sigmoid())

    def weights(self, losses: Tensor) -> Tensor:
        """V(l), between 0 and 1, for losses of shape (n_samples,)."""
        inputs = losses.detach()[:, None].to(next(self.parameters()).dtype)
        return self.weight_net(inputs).squeeze(1).to(losses.dtype)

    def shares(self, losses: Tensor) -> Tensor:
        """Factors a_n of the losses in the loss of the batch, of shape (n_samples,)."""
        return self.weights(losses) / len(losses)

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Weighted loss of logits of shape (n_samples, n_classes) against noisy labels of shape (n_samples,)."""
        losses = F.cross_entropy(logits, y, reduction="none")
        return (self.shares(losses).detach() * losses).sum()

    # ---- look-ahead: gradient for the logits, and meta-gradient for a tangent of the logits
    @torch.no_grad()
    def cotangent(self, logits: Tensor, y: Tensor) -> Tensor:
        """Gradient of the loss for the logits, a_n (f - e_y), of shape (n_samples, n_classes)."""
        return self.shares(F.cross_entropy(logits, y, reduction="none"))[:, None] * _cross_entropy_gradient(logits, y)

    @torch.enable_grad()
    def meta_gradients(self, logits: Tensor, y: Tensor, tangent: Tensor) -> list[Tensor]:
        """Gradient of ``- <cotangent, tangent> = - sum of a_n <f - e_y, u>_n`` for the parameters of V."""
        products = (_cross_entropy_gradient(logits, y) * tangent).sum(1).detach()
        gain = (self.shares(F.cross_entropy(logits.detach(), y, reduction="none")) * products).sum()
        return list(torch.autograd.grad(-gain, list(self.parameters())))


def _cross_entropy_gradient(logits: Tensor, y: Tensor) -> Tensor:
    """Gradient of the cross-entropy of each sample for its logits."""
    return torch.softmax(logits, dim=1) - F.one_hot(y, logits.shape[1]).to(logits.dtype)
