"""The problems of the benchmarks: noisy rows, clean rows, test rows, and the true T."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from noisytransition import ComparisonData
from noisytransition.transition import digits_noise, flip_labels, flip_noise, pair_noise, symmetric_noise


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


def breast_cancer(rates, seed, n_clean=20):
    """scikit-learn's breast cancer table: malignant and benign flip at these two rates; features standardised."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    clean = np.concatenate([np.flatnonzero(y == k)[: n_clean // 2] for k in (0, 1)])  # rows are shuffled
    noisy = np.setdiff1d(np.arange(len(y)), clean)
    scale = StandardScaler().fit(X[noisy]).transform
    T = flip_noise({(0, 1): rates[0], (1, 0): rates[1]}, 2)
    return _noisy(T, seed, scale(X[noisy]), y[noisy], scale(X[clean]), y[clean], scale(X_test), y_test)


def wine(noise_name, seed, n_clean=18):
    """scikit-learn's wine table, 100 noisy rows, 60 for testing; features standardised."""
    X, y = load_wine(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=60, stratify=y, random_state=seed)
    X, X_meta, y, y_meta = train_test_split(X, y, test_size=n_clean, stratify=y, random_state=seed)
    scale = StandardScaler().fit(X).transform
    return _noisy(noise(noise_name, 3), seed, scale(X), y, scale(X_meta), y_meta, scale(X_test), y_test)


def _noisy(T, seed, X, y, X_meta, y_meta, X_test, y_test):
    y_noisy = flip_labels(y, T, random_state=seed)
    return ComparisonData(X, y_noisy, X_meta, y_meta, X_test, y_test, T, y)


PROBLEMS = {"digits": digits, "gaussians": gaussians}
