"""Cross-entropy with a weight for each row, which is a small network's function of the loss of the row."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class WeightedLoss(nn.Module):
    r"""Weighted cross-entropy, ``sum of a_n * l_n``: a network V gives each row its weight a_n, from its loss l_n.

    ``a_n = V(l_n) / n_samples``, with V a linear layer to 100 units, ReLU, a linear layer to one output, sigmoid.
    Weights are constants in the gradient of the logits; V is learned by the meta-gradient only.

    References
    ----------
    Shu, Xie, Yi, Zhao, Zhou, Xu, Meng, "Meta-Weight-Net: Learning an Explicit Mapping For Sample Weighting", NeurIPS
    2019, equations (2) to (5).

    Examples
    --------
    >>> import torch
    >>> from noisytransition.losses import WeightedLoss
    >>> _ = torch.manual_seed(0)
    >>> WeightedLoss().weights(torch.tensor([0.1, 2.0])).detach().round(decimals=1)
    tensor([0.4000, 0.4000])
    """

    def __init__(self) -> None:
        super().__init__()
        self.weight_net = nn.Sequential(nn.Linear(1, 100), nn.ReLU(), nn.Linear(100, 1), nn.Sigmoid())

    def weights(self, losses: Tensor) -> Tensor:
        """V(l), between 0 and 1, for losses of shape (n_samples,)."""
        inputs = losses.detach()[:, None].to(next(self.parameters()).dtype)
        return self.weight_net(inputs).squeeze(1).to(losses.dtype)

    def shares(self, losses: Tensor) -> Tensor:
        """a_n, the factor of each row's loss in that of the batch; of shape (n_samples,)."""
        return self.weights(losses) / len(losses)

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Weighted loss of logits of shape (n_samples, n_classes) against noisy labels of shape (n_samples,)."""
        losses = F.cross_entropy(logits, y, reduction="none")
        return (self.shares(losses).detach() * losses).sum()

    # ---- for the look-ahead: gradient with respect to the logits, and meta-gradient for a tangent of the logits
    @torch.no_grad()
    def cotangent(self, logits: Tensor, y: Tensor) -> Tensor:
        """d loss / d logits = a_n (f - e_y), of shape (n_samples, n_classes)."""
        return self.shares(F.cross_entropy(logits, y, reduction="none"))[:, None] * _cross_entropy_gradient(logits, y)

    @torch.enable_grad()
    def meta_gradients(self, logits: Tensor, y: Tensor, tangent: Tensor) -> list[Tensor]:
        r"""Gradient of ``- <cotangent, tangent> = - sum of a_n <f - e_y, u>_n`` with respect to V's parameters.

        Parameters
        ----------
        logits, tangent : Tensor of shape (n_samples, n_classes)
            Of the noisy batch, from the look-ahead.
        y : Tensor of shape (n_samples,)
            Noisy labels, 0 to n_classes - 1.

        Returns
        -------
        list of Tensor
        """
        products = (_cross_entropy_gradient(logits, y) * tangent).sum(1).detach()
        gain = (self.shares(F.cross_entropy(logits.detach(), y, reduction="none")) * products).sum()
        return list(torch.autograd.grad(-gain, list(self.parameters())))


def _cross_entropy_gradient(logits: Tensor, y: Tensor) -> Tensor:
    """Gradient of the cross-entropy of each row with respect to its logits."""
    return torch.softmax(logits, dim=1) - F.one_hot(y, logits.shape[1]).to(logits.dtype)
