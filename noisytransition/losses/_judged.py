"""Corrected cross-entropy whose T is judged by labels that it was not trained on."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional as F

from ._forward import ForwardLoss, corrected_cross_entropy, row_softmax


class JudgedLoss(ForwardLoss):
    """`ForwardLoss` that trains through one T and reports another: the best so far, by held-out noisy labels.

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        Where both start; row i, column j is P(noisy = j | true = i).

    Examples
    --------
    >>> import torch
    >>> loss = JudgedLoss([[0.5, 0.5], [0.5, 0.5]])
    >>> _ = loss.transition_logits.copy_(torch.tensor([[0.9, 0.1], [0.1, 0.9]]).log())  # T has moved
    >>> outputs = [(torch.tensor([[3.0, -3.0], [-3.0, 3.0]]), torch.tensor([1, 0]))]
    >>> loss.judge(outputs)  # these labels do not speak for it
    >>> loss.transition_matrix.round(3)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    kept_logits: Tensor

    def __init__(self, transition_matrix: ArrayLike) -> None:
        super().__init__(transition_matrix)
        self.register_buffer("kept_logits", self.transition_logits.clone())

    @property
    def transition_matrix(self) -> NDArray[np.float64]:
        """The T that is kept, a float64 ndarray of shape (n_classes, n_classes)."""
        return row_softmax(self.kept_logits)

    @torch.no_grad()
    def judge(self, outputs: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Keep the T of the training if it makes held-out noisy labels more likely than the T that is kept.

        Parameters
        ----------
        outputs : sequence of (Tensor of shape (n, n_classes), Tensor of shape (n,))
            Logits and noisy labels of rows that are not trained on. Without any, T is kept as it is now.
        """
        if not outputs or self._loss(self.transition_logits, outputs) < self._loss(self.kept_logits, outputs):
            self.kept_logits.copy_(self.transition_logits)

    @staticmethod
    def _loss(transition_logits: Tensor, outputs: Sequence[tuple[Tensor, Tensor]]) -> float:
        total, log_T = 0.0, F.log_softmax(transition_logits, 1)
        for logits, y in outputs:  # half precision cannot tell two T's apart
            z = logits.to(torch.promote_types(logits.dtype, torch.float32))
            total += len(y) * corrected_cross_entropy(z, y.to(z.device), log_T.to(z.dtype)).item()
        return total
