"""Rows with noisy labels, of one T and of none."""

import numpy as np
from posteriors import labels_of
from scipy.special import softmax

from noisytransition.transition import flip_labels, symmetric_noise


def draw(seed, n=60, c=3, rate=0.4):
    """Rows of one T: true and noisy labels, features, posteriors and groups that go with the true label."""
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    s = flip_labels(y, symmetric_noise(c, rate), random_state=rng)
    X = rng.normal(size=(n, 2)) + y[:, None]
    proba = softmax(rng.normal(size=(n, c)) + 2 * np.eye(c)[y], axis=1)
    return y, s, {"features": X, "proba": proba, "groups": (X[:, 0] + rng.normal(size=n) > 1).astype(int)}


def rows_by_difficulty(seed, n=1500, c=3):
    """Labels that are wrong more often, and towards the likelier class, where the posterior is less sure."""
    rng = np.random.default_rng(seed)
    proba = softmax(1.5 * rng.normal(size=(n, c)), axis=1)
    return labels_of(proba, rng), labels_of(proba, rng), proba
