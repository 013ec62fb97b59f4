"""Corrected cross-entropy whose T is judged by labels that it was not trained on."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn import functional as F

from ._forward import ForwardLoss, noisy_log_likelihood, row_softmax

# of the way from the start to the T of the training
_SHARES = (0.25, 0.5, 0.75, 1.0)
# bounds of the logarithm of a temperature
_LOG_TEMPERATURES = (-3.0, 3.0)


class JudgedLoss(ForwardLoss):
    """`ForwardLoss` that trains through one T and reports another: the start, or one that held-out labels speak for.

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        Where both start; row i, column j is P(noisy = j | true = i).

    Examples
    --------
    >>> import torch
    >>> loss = JudgedLoss([[0.5, 0.5], [0.5, 0.5]])
    >>> _ = loss.transition_logits.copy_(torch.tensor([[0.9, 0.1], [0.1, 0.9]]).log())  # T has moved
    >>> outputs = [(torch.tensor([[3.0, -3.0], [3.0, -3.0]]), torch.tensor([0, 1]))]
    >>> loss.judge(outputs)  # these labels do not speak for it
    >>> loss.transition_matrix.round(3)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    start_logits: Tensor
    kept_logits: Tensor
    likelihood: Tensor

    def __init__(self, transition_matrix: ArrayLike) -> None:
        super().__init__(transition_matrix)
        for name in ("start_logits", "kept_logits"):
            self.register_buffer(name, self.transition_logits.clone())
        # mean log-likelihood of the held-out labels at the best epoch so far
        self.register_buffer("likelihood", torch.tensor(-torch.inf))

    @property
    def transition_matrix(self) -> NDArray[np.float64]:
        """The T that is kept, a float64 ndarray of shape (n_classes, n_classes)."""
        return row_softmax(self.kept_logits)

    @torch.no_grad()
    def judge(self, outputs: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Keep a part of the way from the start to the T of the training, if held-out labels speak for it.

        Of a quarter, a half, three quarters and all of the way the part is taken that makes the labels most likely:
        steps of T by small batches overshoot. If network and T fit the labels better than after every epoch before,
        that T is kept if it makes them more likely than the start does, by more than a standard error of the
        difference; else the start. Each T is taken with the temperature of the logits that is best for it: a network
        that is not sure yet, or too sure, would ask for a sharper or a flatter T.

        Parameters
        ----------
        outputs : sequence of (Tensor of shape (n, n_classes), Tensor of shape (n,))
            Logits and noisy labels of rows that are not trained on. Without any, T is kept as it is now.
        """
        if not outputs:
            self.kept_logits.copy_(self.transition_logits)
            return
        z, y = (torch.cat(parts) for parts in zip(*outputs, strict=True))
        z, y = z.to(torch.promote_types(z.dtype, torch.float32)), y.to(z.device)  # half precision is too coarse
        start, end = (F.softmax(logits, 1) for logits in (self.start_logits, self.transition_logits))
        ways = [torch.lerp(start, end, share).log() for share in _SHARES]
        fits = [_at_best_temperature(z, y, log_T) for log_T in ways]
        best = max(range(len(ways)), key=lambda k: fits[k].sum().item())
        if (likelihood := fits[best].mean()) > self.likelihood:
            self.likelihood.copy_(likelihood)
            gain = fits[best] - _at_best_temperature(z, y, start.log())
            pays = gain.mean() > gain.std(correction=0) / (len(gain) - 1) ** 0.5  # of one row: not a number, no
            self.kept_logits.copy_(ways[best] if pays else self.start_logits)


def _at_best_temperature(logits: Tensor, y: Tensor, log_transition: Tensor) -> Tensor:
    """Return the log-likelihood of each label under T, at the temperature that is best for all."""
    log_T = log_transition.to(logits)

    def at(log_temperature: float) -> Tensor:
        return noisy_log_likelihood(logits / np.exp(log_temperature), y, log_T)

    best: Any = minimize_scalar(lambda t: -at(t).mean().item(), bounds=_LOG_TEMPERATURES, method="bounded")
    return at(best.x)
