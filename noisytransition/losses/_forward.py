"""Forward correction: cross-entropy of the noisy label under the clean posterior times T."""

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

# smallest initial entry of T: with log 0 the gradient would be 0 for good, and a label with an empty column would have
# an infinite loss. A choice, not measured.
MIN_ENTRY = 1e-12


def corrected_cross_entropy(logits: Tensor, y: Tensor, log_transition: Tensor) -> Tensor:
    r"""Mean corrected cross-entropy, ``- log sum_i f_i(x) T[i, y]``.

    With f = softmax(logits); computed in log space, so that no entry of T or f underflows. Only the column of T
    of each noisy label is read: memory is proportional to n_samples x n_classes.

    Parameters
    ----------
    logits : Tensor of shape (n_samples, n_classes)
    y : Tensor of shape (n_samples,)
        Noisy labels, 0 to n_classes - 1.
    log_transition : Tensor of shape (n_classes, n_classes)
        log T; row i, column j is log P(noisy = j | true = i).

    Returns
    -------
    Tensor
        A scalar.

    References
    ----------
    Patrini et al., "Making Deep Neural Networks Robust to Label Noise", CVPR 2017, equation (6).

    Examples
    --------
    >>> import torch
    >>> from noisytransition.losses import corrected_cross_entropy
    >>> z, y = torch.tensor([[2.0, 0.0]]), torch.tensor([1])
    >>> float(corrected_cross_entropy(z, y, torch.tensor([[0.5, 0.5], [0.5, 0.5]]).log()))  # uniform: log 2
    0.693...
    """
    return -noisy_log_likelihood(logits, y, log_transition).mean()


def noisy_log_likelihood(logits: Tensor, y: Tensor, log_transition: Tensor) -> Tensor:
    """Return log P(noisy label | x) of each row; `corrected_cross_entropy` is minus its mean."""
    return torch.logsumexp(F.log_softmax(logits, 1) + log_transition.T[y], dim=1)


def clean_posterior(logits: Tensor, y: Tensor, log_transition: Tensor) -> Tensor:
    """P(true = i | x, noisy label y), the "responsibilities" of the corrected loss.

    Parameters
    ----------
    logits, y, log_transition
        As in `corrected_cross_entropy`.

    Returns
    -------
    Tensor of shape (n_samples, n_classes)
        Rows sum to 1.
    """
    return torch.softmax(logits + log_transition.T[y], dim=1)


class ForwardLoss(nn.Module):
    """Corrected cross-entropy that holds its transition matrix as ``T = row-softmax(transition_logits)``.

    T is a parameter of the loss: it moves to the device and is saved with it. Its value is changed by an update
    (`noisytransition.updates`); it is not among the network's parameters.

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        Row i, column j is P(noisy = j | true = i).

    Examples
    --------
    >>> import torch
    >>> from noisytransition.losses import ForwardLoss
    >>> loss = ForwardLoss([[0.6, 0.4], [0.0, 1.0]])
    >>> loss.transition_matrix.round(3)
    array([[0.6, 0.4],
           [0. , 1. ]])
    >>> float(loss(torch.tensor([[9.0, -9.0]]), torch.tensor([1])))  # - log 0.4
    0.916...
    """

    def __init__(self, transition_matrix: ArrayLike) -> None:
        super().__init__()
        T = np.maximum(np.asarray(transition_matrix, dtype=np.float64), MIN_ENTRY)
        logits = torch.as_tensor(np.log(T), dtype=torch.get_default_dtype())
        self.transition_logits = nn.Parameter(logits, requires_grad=False)

    @property
    def log_transition(self) -> Tensor:
        """Log T, a Tensor of shape (n_classes, n_classes)."""
        return F.log_softmax(self.transition_logits, dim=1)

    @property
    def transition_matrix(self) -> NDArray[np.float64]:
        """T, a float64 ndarray of shape (n_classes, n_classes); row i, column j is P(noisy j | true i)."""
        return torch.softmax(self.transition_logits.detach().double().cpu(), dim=1).numpy()

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Mean loss of logits of shape (n_samples, n_classes) against noisy labels of shape (n_samples,)."""
        return corrected_cross_entropy(logits, y, self.log_transition.to(logits.dtype))

    # ---- for the look-ahead: gradient with respect to the logits, and meta-gradient for a tangent of the logits
    @torch.no_grad()
    def cotangent(self, logits: Tensor, y: Tensor) -> Tensor:
        """d mean loss / d logits = (f - q) / n_samples, of shape (n_samples, n_classes)."""
        q = clean_posterior(logits, y, self.log_transition.to(logits.dtype))
        return (torch.softmax(logits, 1) - q) / len(y)

    @torch.no_grad()
    def meta_gradients(self, logits: Tensor, y: Tensor, tangent: Tensor) -> list[Tensor]:
        r"""Gradient of ``- <cotangent, tangent>`` with respect to the logits of T, in closed form.

        With q the posterior and u the tangent::

            A[k, j]    = 1/n sum_{n: y_n = j} q_nk (u_nk - sum_i q_ni u_ni)
            grad_Theta = A - T * rowsum(A)

        Parameters
        ----------
        logits, tangent : Tensor of shape (n_samples, n_classes)
        y : Tensor of shape (n_samples,)

        Returns
        -------
        list of one Tensor of shape (n_classes, n_classes)
        """
        log_transition = self.log_transition.to(logits.dtype)
        q = clean_posterior(logits, y, log_transition)
        terms = q * (tangent - (q * tangent).sum(1, keepdim=True))
        A = torch.zeros_like(log_transition).index_add_(1, y, terms.T) / len(y)
        gradient = A - log_transition.exp() * A.sum(1, keepdim=True)
        return [gradient.to(self.transition_logits.dtype)]
