"""Rows drawn for tests of T on arrays: posteriors of the true label, and labels."""

import numpy as np

from noisytransition.transition import flip_labels


def draw(seed, c=3, n=60, concentration=0.5):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(c, concentration), size=n), rng.integers(c, size=n)


def simulated(seed, T, n=3000, spread=3.0):
    """Exact posteriors of rows, their true labels and noisy ones."""
    rng = np.random.default_rng(seed)
    z = spread * rng.normal(size=(n, len(T)))
    proba = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=len(T) - 1)
    return proba, y, flip_labels(y, T, random_state=seed)
