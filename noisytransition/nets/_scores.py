"""Probabilities and accuracies of a net."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from .._precision import full_precision

if TYPE_CHECKING:
    from ._net import NoisyLabelNet


def softmax(logits: Tensor) -> Tensor:
    """Probabilities, in full precision."""
    return torch.softmax(full_precision(logits), dim=-1)


def accuracy(net: "NoisyLabelNet", X: Dataset, y: NDArray) -> float:
    """Accuracy of the network's predictions."""
    return float(np.mean(net.predict_proba(X).argmax(axis=1) == y))


def noisy_accuracy(net: "NoisyLabelNet", X: Dataset, y: NDArray) -> float:
    """Accuracy of the noisy labels predicted through T; of a loss without T, by the network alone."""
    proba = net.predict_proba(X)
    T = getattr(net.criterion_, "transition_matrix", np.eye(proba.shape[1]))
    return float(np.mean((proba @ T).argmax(axis=1) == y))
