"""The default module."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from torch import nn


class MLP(nn.Sequential):
    """Multi-layer perceptron with ReLU activations; any input shape, flattened.

    Parameters
    ----------
    n_in : int
        Number of values in one row.
    n_out : int
        Number of classes.
    hidden : int or sequence of int, default=128
        Width of each hidden layer; multiples of 4 keep predictions independent of the order of rows to the last
        bit. An empty sequence gives logistic regression.

    Examples
    --------
    >>> from noisytransition.nets import MLP
    >>> MLP(64, 10, hidden=(32, 16))
    MLP(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Linear(in_features=64, out_features=32, bias=True)
      (2): ReLU()
      (3): Linear(in_features=32, out_features=16, bias=True)
      (4): ReLU()
      (5): Linear(in_features=16, out_features=10, bias=True)
    )
    """

    def __init__(self, n_in: int, n_out: int, hidden: int | Sequence[int] = 128) -> None:
        widths = [n_in, *([hidden] if isinstance(hidden, int | np.integer) else hidden)]
        layers = [layer for a, b in pairwise(widths) for layer in (nn.Linear(a, b), nn.ReLU())]
        super().__init__(nn.Flatten(), *layers, nn.Linear(widths[-1], n_out))
