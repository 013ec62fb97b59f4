"""Rows with noisy labels, of one T and of none."""

import numpy as np

from noisytransition.transition import flip_labels, symmetric_noise


def draw(seed, n=60, c=3, rate=0.4):
    """Rows of one T: true and noisy labels, features, posteriors and groups that go with the true label."""
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    s = flip_labels(y, symmetric_noise(c, rate), random_state=rng)
    X = rng.normal(size=(n, 2)) + y[:, None]
    z = rng.normal(size=(n, c)) + 2 * np.eye(c)[y]
    proba = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return y, s, {"features": X, "proba": proba, "groups": (X[:, 0] + rng.normal(size=n) > 1).astype(int)}


def rows_by_difficulty(seed, n=1500, c=3):
    """Labels that are wrong more often, and towards the likelier class, where the posterior is less sure."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, c))
    proba = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y, s = ((proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=c - 1) for _ in range(2))
    return y, s, proba
