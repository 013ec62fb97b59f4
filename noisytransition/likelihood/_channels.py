"""Channels: models of the noisy label of a sample, which give the posterior of its true label."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..transition._estimation import finite_log, normalise_rows

# smaller entries of T are raised to this share of a uniform one
_SMALLEST_RATE = 0.01


def floored(T: NDArray) -> NDArray[np.float64]:
    """T without small entries, whose logarithms would have much weight in a pool."""
    return np.maximum(T, _SMALLEST_RATE / len(T))


class OneT(NamedTuple):
    """One T for all samples."""

    transition_matrix: NDArray[np.float64]

    def posterior(self, proba: NDArray, noisy: NDArray[np.intp]) -> NDArray[np.float64]:
        """P(true | x, label) by Bayes' rule, shape (n, c); P(true | x) if the label is impossible."""
        return normalise_rows(proba * self.transition_matrix.T[noisy], proba)

    def of_classes(self, c: int) -> "OneT":
        """Channel of the first true classes."""
        return OneT(self.transition_matrix[:c])


class LogLinear(NamedTuple):
    """Posterior of the true label, ``P(i | x, j) ~ p_i^a T[i, j]^b exp(M[i, j])``.

    ``offsets[j, i]`` is M[i, j], and `powers` has a and b; log T is finite.
    """

    log_T: NDArray[np.float64]
    powers: NDArray[np.float64]
    offsets: NDArray[np.float64]

    def posterior(self, proba: NDArray, noisy: NDArray[np.intp]) -> NDArray[np.float64]:
        """P(true | x, label), shape (n, c)."""
        return special.softmax(self.factors(proba, noisy) @ self.powers + self.offsets[noisy], axis=1)

    def of_classes(self, c: int) -> "LogLinear":
        """Channel of the first true classes."""
        return LogLinear(self.log_T[:c], self.powers, self.offsets[:, :c])

    def factors(self, proba: NDArray, noisy: NDArray) -> NDArray[np.float64]:
        """Logarithms of probabilities and of T, which the powers multiply; shape (n, c, 2)."""
        return np.stack([finite_log(proba), self.log_T.T[noisy]], axis=-1)


Channel = OneT | LogLinear
