"""Logarithmic pool of several views of the true label."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from ..transition._estimation import finite_log


class Views(NamedTuple):
    """What features, labels and clean samples say about the true class of the same samples, each of shape (n, c).

    Attributes
    ----------
    features : ndarray
        P(true | x), without the label.
    label : ndarray
        P(label | true), 1 for samples without a label.
    clean : ndarray, optional
        P(true | x) by a classifier that was trained on clean samples alone.
    """

    features: NDArray
    label: NDArray
    clean: NDArray | None = None

    def logs(self) -> NDArray[np.float64]:
        """Logarithms, of shape (n, c, number of views)."""
        return np.stack([finite_log(of) for of in self if of is not None], axis=-1)


def pool_weights(views: Views, y: NDArray, offset: NDArray | float = 0.0) -> NDArray[np.float64]:
    """Weights of the three views in the pool ``P(i) ~ exp(sum_k w[k] logs[i, k])``, for clean samples with labels y.

    Maximum a posteriori, with unit normal priors. Their means (1, 1, 0) are Bayes' rule. A weight below 1 says that a
    view is certain too often, or repeats what another view says. `offset` is the log ratio of the class priors of clean
    and noisy samples.

    References
    ----------
    Genest, Zidek, "Combining Probability Distributions: A Critique and an Annotated Bibliography", 1986.
    """
    logs = views.logs()
    rows = np.arange(len(y))
    prior = np.array([1.0, 1.0, 0.0])[: logs.shape[-1]]

    def loss(w: NDArray) -> tuple[float, NDArray]:
        log_p = special.log_softmax(logs @ w + offset, axis=1)
        slope = np.einsum("ni,nik->k", np.exp(log_p), logs) - logs[rows, y].sum(axis=0)
        return ((w - prior) ** 2).sum() / 2 - log_p[rows, y].sum(), w - prior + slope

    found: Any = optimize.minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(prior))
    return found.x


def pooled(views: Views, weights: Sequence[float] | NDArray) -> NDArray[np.float64]:
    """Probabilities of the true label, shape (n, c)."""
    return special.softmax(views.logs() @ np.asarray(weights), axis=1)
