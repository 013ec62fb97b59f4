"""Logarithmic pool of several views of the true label."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from ..transition._estimation import finite_log


class Views(NamedTuple):
    """What features, labels and clean samples say about the true class of the same samples, each of shape (n, c)."""

    features: NDArray  # P(true | x), without the label
    label: NDArray | None = None  # P(label | true), 1 for samples without a label
    clean: NDArray | None = None  # P(true | x) by a classifier that was trained on clean samples alone

    def logs(self) -> dict[str, NDArray[np.float64]]:
        """Logarithms by view."""
        return {name: finite_log(of) for name, of in self._asdict().items() if of is not None}


def pool_weights(views: Views, y: NDArray, log_prior_ratio: NDArray | float = 0.0) -> dict[str, float]:
    """Weights of the views in the pool ``P(i) ~ exp(sum_k w[k] logs[k][i])``, for clean samples with labels y.

    Maximum a posteriori, with unit normal priors around Bayes' rule. A weight below 1 says that a view is certain too
    often, or repeats what another view says. `log_prior_ratio` compares the class priors of clean and noisy samples.

    References
    ----------
    Genest, Zidek, "Combining Probability Distributions: A Critique and an Annotated Bibliography", 1986.
    """
    logs = views.logs()
    of_views = np.stack(list(logs.values()), axis=-1)
    rows = np.arange(len(y))
    # Bayes' rule, if features and label are independent given the true class
    prior = np.array([name != "clean" for name in logs], dtype=np.float64)

    def loss(w: NDArray) -> tuple[float, NDArray]:
        log_p = special.log_softmax(of_views @ w + log_prior_ratio, axis=1)
        slope = np.einsum("ni,nik->k", np.exp(log_p), of_views) - of_views[rows, y].sum(axis=0)
        return ((w - prior) ** 2).sum() / 2 - log_p[rows, y].sum(), w - prior + slope

    found: Any = optimize.minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(prior))
    return dict(zip(logs, found.x.tolist(), strict=True))


def pooled(views: Views, weights: dict[str, float]) -> NDArray[np.float64]:
    """Probabilities of the true label, shape (n, c)."""
    return special.softmax(sum(weights[name] * of_view for name, of_view in views.logs().items()), axis=1)


def shares_of_views(views: Views, weights: dict[str, float]) -> dict[str, float] | None:
    """Share of each view in the pool: mean size of its weighted log-probabilities, relative to their sum.

    None without samples.
    """
    if not len(views.features):
        return None
    size = {
        name: weights[name] * float(np.abs(of_view - of_view.mean(axis=1, keepdims=True)).mean())
        for name, of_view in views.logs().items()
    }
    return {name: of_view / (sum(size.values()) or 1.0) for name, of_view in size.items()}
