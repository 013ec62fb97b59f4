"""The problems of the benchmarks: noisy rows, clean rows, held-out clean rows, test rows, and the true T."""

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from noisytransition.transition import digits_noise, flip_labels, pair_noise, sampling_limit, symmetric_noise


class Problem(NamedTuple):
    """One draw of a problem; `limit` is the error of T counted with the true labels."""

    X: np.ndarray
    y: np.ndarray
    X_meta: np.ndarray
    y_meta: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    T: np.ndarray
    limit: float


def noise(name, n_classes):
    """Transition matrix by name: asymmetric-0.4, pair-0.4, symmetric-0.6, ..."""
    kind, rate = name.rsplit("-", 1)
    if kind == "asymmetric":
        return digits_noise(float(rate))
    return {"pair": pair_noise, "symmetric": symmetric_noise}[kind](n_classes, float(rate))


def digits(noise_name, seed, n_clean=100):
    """scikit-learn's handwritten digits, a quarter for testing, scaled to 0..1."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.25, stratify=y, random_state=seed)
    X, X_meta, y, y_meta = train_test_split(X, y, test_size=n_clean, stratify=y, random_state=seed)
    return _noisy(noise(noise_name, 10), seed, X, y, X_meta, y_meta, X_test, y_test)


def gaussians(noise_name, seed, n=10_000, n_clean=500, n_test=5_000):
    """Five overlapping classes in ten dimensions: unit variance, means of norm 2 in random directions."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(5, 10))
    means *= 2 / np.linalg.norm(means, axis=1, keepdims=True)
    y = rng.integers(5, size=n + n_clean + n_test)
    X = means[y] + rng.normal(size=(len(y), 10))
    (X, X_meta, X_test), (y, y_meta, y_test) = (np.split(a, [n, n + n_clean]) for a in (X, y))
    return _noisy(noise(noise_name, 5), seed, X, y, X_meta, y_meta, X_test, y_test)


def _noisy(T, seed, X, y, X_meta, y_meta, X_test, y_test):
    limit = sampling_limit(T, np.bincount(y, minlength=len(T)))
    return Problem(X, flip_labels(y, T, random_state=seed), X_meta, y_meta, X_test, y_test, T, limit)


PROBLEMS = {"digits": digits, "gaussians": gaussians}
