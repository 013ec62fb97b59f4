"""Order of an epoch in which rows come as often as their weights say."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import Sampler


class ProportionalSampler(Sampler[int]):
    """Draw rows in proportion to their weights, as evenly as possible (systematic sampling in a random order).

    Of n draws, row i has ``n w_i / sum(w)``, rounded down or up at random so that this is the mean over epochs. So the
    mean loss of the batches has the gradient of the weighted mean loss, whatever the loss is.

    Parameters
    ----------
    weights : array-like of shape (n_samples,)
        Positive.

    References
    ----------
    Madow, "On the Theory of Systematic Sampling, II", Annals of Mathematical Statistics, 1949.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from noisytransition.nets import ProportionalSampler
    >>> sampler, _ = ProportionalSampler([2.0, 1.0, 0.5, 0.5]), torch.manual_seed(0)
    >>> [np.bincount(list(sampler), minlength=4).tolist() for _ in range(3)]
    [[2, 1, 0, 1], [2, 1, 1, 0], [2, 1, 1, 0]]
    """

    def __init__(self, weights: ArrayLike) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)

    def __len__(self) -> int:
        return len(self.weights)

    def __iter__(self) -> Iterator[int]:
        yield from self.order().tolist()

    def order(self) -> NDArray[np.int64]:
        """Indices of an epoch, from a generator with a seed of the global one, as torch's sampler has it."""
        n, seed = len(self), int(torch.empty((), dtype=torch.int64).random_().item())
        generator = torch.Generator().manual_seed(seed)
        rows, start = torch.randperm(n, generator=generator).numpy(), torch.rand((), generator=generator).item()
        shares = np.cumsum(self.weights[rows])
        ends = np.floor(n * shares / shares[-1] + start)
        ends[-1] = n  # also where rounding makes it more
        drawn = rows.repeat(np.diff(ends, prepend=0.0).astype(np.intp))
        return drawn[torch.randperm(n, generator=generator).numpy()]
