"""Rows drawn for tests of T on arrays: posteriors of the true label, and labels."""

import numpy as np
from scipy.special import softmax

from noisytransition.transition import flip_labels


def draw(seed, c=3, n=60, concentration=0.5):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(c, concentration), size=n), rng.integers(c, size=n)


def labels_of(proba, rng):
    """A label of each row, drawn from its posterior."""
    return (proba.cumsum(axis=1) < rng.random((len(proba), 1))).sum(axis=1).clip(max=proba.shape[1] - 1)


def verified_at(y, rows):
    """Labels of these rows, and -1 for the others."""
    return np.where(np.isin(np.arange(len(y)), rows), y, -1)


def simulated(seed, T, n=3000, spread=3.0):
    """Exact posteriors of rows, their true labels and noisy ones."""
    rng = np.random.default_rng(seed)
    proba = softmax(spread * rng.normal(size=(n, len(T))), axis=1)
    y = labels_of(proba, rng)
    return proba, y, flip_labels(y, T, random_state=seed)
