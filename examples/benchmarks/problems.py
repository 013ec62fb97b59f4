"""Data sets of the benchmarks: noisy, clean and test samples, and the true T."""

import numpy as np
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from noisytransition import ComparisonData
from noisytransition.transition import digits_noise, flip_labels, flip_noise, pair_noise, symmetric_noise


def noise(name, n_classes):
    """Return a transition matrix by name: asymmetric-0.4, pair-0.4, symmetric-0.6, ..."""
    kind, rate = name.rsplit("-", 1)
    if kind == "asymmetric":
        return digits_noise(float(rate))
    return {"pair": pair_noise, "symmetric": symmetric_noise}[kind](n_classes, float(rate))


def digits(noise_name, seed, n_clean=100):
    """Load scikit-learn's digits, scaled to 0..1; a quarter of the images is for testing."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.25, stratify=y, random_state=seed)
    X, X_clean, y, y_clean = train_test_split(X, y, test_size=n_clean, stratify=y, random_state=seed)
    return _noisy(noise(noise_name, 10), seed, X, y, X_clean, y_clean, X_test, y_test)


def gaussians(noise_name, seed, n=10_000, n_clean=500, n_test=5_000):
    """Draw five overlapping Gaussian classes in ten dimensions: unit variance, means of norm 2, random directions."""
    rng = np.random.default_rng(seed)
    means = _means(rng)
    y = rng.integers(5, size=n + n_clean + n_test)
    X = means[y] + rng.normal(size=(len(y), 10))
    (X, X_clean, X_test), (y, y_clean, y_test) = (np.split(a, [n, n + n_clean]) for a in (X, y))
    return _noisy(noise(noise_name, 5), seed, X, y, X_clean, y_clean, X_test, y_test)


def _means(rng):
    means = rng.normal(size=(5, 10))
    return means * 2 / np.linalg.norm(means, axis=1, keepdims=True)


def gaussians_posterior(seed, X):
    """Return the exact P(true class | x) of samples of `gaussians`."""
    means = _means(np.random.default_rng(seed))
    return softmax(X @ means.T - (means**2).sum(axis=1) / 2, axis=1)


def table(noise_name, seed, n=20_000, n_clean=40, n_test=5_000):
    """Generate a table of four classes: 22 numeric columns (some correlated, some skewed) and 8 categorical columns.

    Numeric columns are standardised, categories one-hot. Classes depend on all columns, on an interaction of two
    numeric columns, and on an interaction of a numeric and a categorical column.
    """
    numeric, categories, _, y = _draw_table(seed, n + n_clean + n_test)
    X = np.hstack([(numeric - numeric.mean(axis=0)) / numeric.std(axis=0), *categories])
    (X, X_clean, X_test), (y, y_clean, y_test) = (np.split(a, [n, n + n_clean]) for a in (X, y))
    return _noisy(noise(noise_name, 4), seed, X, y, X_clean, y_clean, X_test, y_test)


def _draw_table(seed, n, n_classes=4):
    rng = np.random.default_rng(seed)
    numeric = rng.normal(size=(n, 22))
    numeric[:, 10:14] += 0.8 * numeric[:, :4]
    codes = [rng.integers(k, size=n) for k in (2, 3, 4, 5, 6, 8, 10, 12)]
    categories = [np.eye(code.max() + 1)[code] for code in codes]
    score = 0.3 * numeric @ rng.normal(size=(22, n_classes))
    score += sum(0.6 * one_hot @ rng.normal(size=(one_hot.shape[1], n_classes)) for one_hot in categories)
    score += 2 * np.tanh(numeric[:, :1] * numeric[:, 1:2]) * rng.normal(size=n_classes)
    score += np.where(codes[3] > 2, 1, -1)[:, None] * numeric[:, 2:3] * rng.normal(size=n_classes)
    proba = softmax(1.5 * score, axis=1)
    numeric[:, 5:10] = np.exp(0.7 * numeric[:, 5:10])  # skewed like amounts of money
    y = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=n_classes - 1)
    return numeric, categories, proba, y


def table_posterior(seed, X, n_clean=40, n_test=5_000):
    """Return the exact P(true class | x) of the noisy samples of `table`."""
    return _draw_table(seed, len(X) + n_clean + n_test)[2][: len(X)]


def breast_cancer(rates, seed, n_clean=20):
    """Load scikit-learn's breast cancer table, standardised; `rates`: of malignant and benign labels."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    clean = np.concatenate([np.flatnonzero(y == k)[: n_clean // 2] for k in (0, 1)])  # samples are shuffled
    noisy = np.setdiff1d(np.arange(len(y)), clean)
    scale = StandardScaler().fit(X[noisy]).transform
    T = flip_noise({(0, 1): rates[0], (1, 0): rates[1]}, 2)
    return _noisy(T, seed, scale(X[noisy]), y[noisy], scale(X[clean]), y[clean], scale(X_test), y_test)


def wine(noise_name, seed, n_clean=18, n_test=60):
    """Load scikit-learn's wine table, standardised: 100 noisy and 60 test samples by default."""
    X, y = load_wine(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=n_test, stratify=y, random_state=seed)
    X, X_clean, y, y_clean = train_test_split(X, y, test_size=n_clean, stratify=y, random_state=seed)
    scale = StandardScaler().fit(X).transform
    return _noisy(noise(noise_name, 3), seed, scale(X), y, scale(X_clean), y_clean, scale(X_test), y_test)


def _noisy(T, seed, X, y, X_clean, y_clean, X_test, y_test):
    y_noisy = flip_labels(y, T, random_state=seed)
    return ComparisonData(X, y_noisy, X_clean, y_clean, X_test, y_test, T, y)


PROBLEMS = {"digits": digits, "gaussians": gaussians}
