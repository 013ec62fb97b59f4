"""The built-in network."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn


class Standardise(nn.Flatten):
    """Flatten samples, subtract a mean from each column and divide by a scale; both are fixed."""

    def __init__(self, mean: ArrayLike, scale: ArrayLike) -> None:
        super().__init__()
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.tensor(np.asarray(mean, dtype=np.float32)))
        self.register_buffer("scale", torch.tensor(np.asarray(scale, dtype=np.float32)))

    def forward(self, x: Tensor) -> Tensor:
        """Standardised samples."""
        return (super().forward(x) - self.mean) / self.scale


class MLP(nn.Sequential):
    """Multi-layer perceptron with ReLU activations; inputs of any shape are flattened.

    Parameters
    ----------
    n_in : int
        Number of values in one sample.
    n_out : int
        Number of classes.
    hidden : int or sequence of int, default=128
        Width of each hidden layer. With multiples of 4, predictions do not depend on the order of samples, to the last
        bit. An empty sequence gives logistic regression.
    mean, scale : array-like of shape (n_in,), optional
        Standardisation of the columns. Default: none. Classifiers pass statistics of the noisy samples to their
        built-in networks.
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        hidden: int | Sequence[int] = 128,
        mean: ArrayLike | None = None,
        scale: ArrayLike | None = None,
    ) -> None:
        widths = [n_in, *([hidden] if isinstance(hidden, int | np.integer) else hidden)]
        first = nn.Flatten() if mean is None or scale is None else Standardise(mean, scale)
        layers = [layer for a, b in pairwise(widths) for layer in (nn.Linear(a, b), nn.ReLU())]
        super().__init__(first, *layers, nn.Linear(widths[-1], n_out))
