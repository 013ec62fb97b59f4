"""Generated data sets of the zoo: functions of a seed that return `Rows`."""

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import expit, softmax
from sklearn.datasets import make_moons
from sklearn.feature_extraction.text import TfidfTransformer

from .rows import Rows, split, standardised

N_TEST = 2000


# ---------------------------------------------------------------------------- tables
def unscaled_customers(seed, n=300):
    """Return unscaled years, amounts of money and months, and one-hot columns."""
    frame, y = _customers(np.random.default_rng(seed), n + N_TEST)
    X = pd.get_dummies(frame.assign(tenure=12 * frame["tenure"]), dtype=float).to_numpy()
    return Rows(X[:n], y[:n], X[n:], y[n:], part=X[:n, 0] > 45)


def customers(seed, n=1500):
    """Return age, spend, tenure, plan and city of customers who leave (0), may leave (1) or stay (2)."""
    frame, y = _customers(np.random.default_rng(seed), n + N_TEST)
    part = frame["city"].isin(["Porto", "Lyon"]).to_numpy()
    frame[["age", "spend", "tenure"]] -= frame[["age", "spend", "tenure"]][:n].mean()
    frame[["age", "spend", "tenure"]] /= frame[["age", "spend", "tenure"]][:n].std()
    X = pd.get_dummies(frame, dtype=float).to_numpy()
    return Rows(X[:n], y[:n], X[n:], y[n:], part=part[:n])


def _customers(rng, n):
    frame = pd.DataFrame(
        {
            "age": rng.normal(45, 13, n).clip(18, 90).round(),
            "spend": rng.lognormal(3.5, 0.7, n).round(2),
            "tenure": rng.exponential(4, n).round(1),
            "plan": rng.choice(["basic", "plus", "family"], n, p=[0.5, 0.3, 0.2]),
            "city": rng.choice(["Porto", "Lyon", "Graz", "Turin", "Ghent"], n),
        }
    )
    score = 0.03 * (frame["age"] - 45) + 0.9 * np.log(frame["spend"] / 33) + 0.35 * (frame["tenure"] - 4)
    score += frame["plan"].map({"basic": -0.8, "plus": 0.4, "family": 1.2})
    score += rng.logistic(scale=0.45, size=n)
    return frame, np.digitize(score, [-0.8, 0.7])


def ordered(n_classes, n=1200):
    """Make classes of equal size from a noisy score of ten columns."""

    def rows(seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n + N_TEST, 10))
        score = X @ rng.normal(size=10) + 0.5 * np.sin(2 * X[:, 0]) + 0.6 * rng.normal(size=len(X))
        y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
        return Rows(X[:n], y[:n], X[n:], y[n:], part=X[:n, 1] > 0)

    return rows


def mixed(n_classes, n=1200):
    """Make a table of standardised numeric columns (some skewed) and four one-hot categories."""

    def rows(seed):
        rng = np.random.default_rng(seed)
        numeric = rng.normal(size=(n + N_TEST, 8))
        codes = [rng.integers(k, size=len(numeric)) for k in (2, 4, 6, 10)]
        one_hot = np.hstack([np.eye(code.max() + 1)[code] for code in codes])
        score = numeric @ rng.normal(size=(8, n_classes)) + 1.5 * one_hot @ rng.normal(size=(22, n_classes))
        score += 2 * np.tanh(numeric[:, :1] * numeric[:, 1:2]) * rng.normal(size=n_classes)
        y = (1.5 * score + rng.gumbel(size=score.shape)).argmax(axis=1)
        numeric[:, 4:] = np.exp(numeric[:, 4:])  # skewed like amounts of money
        made = standardised(split(np.hstack([numeric * 10.0 ** np.arange(-3, 5), one_hot]), y, n, N_TEST, seed))
        return made._replace(part=made.X[:, 8] > 0)

    return rows


# ---------------------------------------------------------------------------- texts and embeddings
def topics(n_classes, n):
    """Make sparse TF-IDF of texts of 5 to 40 words; in each class a tenth of 3,000 words is more frequent."""

    def rows(seed):
        rng = np.random.default_rng(seed)
        y, length = rng.integers(n_classes, size=n + N_TEST), rng.integers(5, 41, size=n + N_TEST)
        of_class = 1 / np.arange(10, 3010) * np.where(rng.random((n_classes, 3000)) < 0.1, 6, 1)
        counts = [rng.multinomial(k, of_class[i] / of_class[i].sum()) for i, k in zip(y, length, strict=True)]
        counts = csr_array(np.array(counts, dtype=float))
        words = TfidfTransformer().fit(counts[:n]).transform
        return Rows(words(counts[:n]), y[:n], words(counts[n:]), y[n:])

    return rows


def embeddings(n_classes, n):
    """Make 512 columns, rows of norm 1, like text embeddings; most of the variance is unrelated to the class."""

    def rows(seed):
        rng = np.random.default_rng(seed)
        y = rng.integers(n_classes, size=n + N_TEST)
        spread = rng.normal(size=(60, 512)) / np.sqrt(np.arange(1, 61))[:, None]
        common, means = rng.normal(size=512), rng.normal(size=(n_classes, 512))
        X = 2 * common + 0.35 * means[y] + rng.normal(size=(len(y), 60)) @ spread + 0.5 * rng.normal(size=(len(y), 512))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return Rows(X[:n], y[:n], X[n:], y[n:], part=X[:n, 0] > np.median(X[:n, 0]))

    return rows


# ---------------------------------------------------------------------------- clouds
def gaussians(n_classes, norm, n_columns=10, shares=None, n=1200):
    """Make Gaussian classes of unit variance; means have this norm and random directions."""

    def rows(seed):
        rng = np.random.default_rng(seed)
        means = rng.normal(size=(n_classes, n_columns))
        means *= norm / np.linalg.norm(means, axis=1, keepdims=True)
        y = rng.choice(n_classes, n + N_TEST, p=shares)
        X = means[y] + rng.normal(size=(len(y), n_columns))
        return Rows(X[:n], y[:n], X[n:], y[n:], part=X[:n, 0] > 0)

    return rows


def quadratic(seed, n=1200):
    """Draw four classes from a softmax of squares and products of six columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + N_TEST, 6))
    products = np.stack([X[:, i] * X[:, j] for i in range(6) for j in range(i + 1)], axis=1)
    proba = softmax(products @ rng.normal(size=(21, 4)), axis=1)
    y = (proba.cumsum(axis=1) < rng.random((len(X), 1))).sum(axis=1).clip(max=3)
    return Rows(X[:n], y[:n], X[n:], y[n:], part=X[:n, 0] > 0)


def moons(seed, n=1200):
    """Draw two overlapping half circles, and a column without information."""
    X, y = make_moons(n + N_TEST, noise=0.25, random_state=seed)
    X = np.column_stack([1.5 * X, np.random.default_rng(seed).normal(size=len(X))])
    return Rows(X[:n], y[:n], X[n:], y[n:], part=X[:n, 0] > 0.75)


def rare(seed, n=1200):
    """Draw two classes; one has 5 % of the samples."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + N_TEST, 8))
    score = X @ np.array([1.5, -1.2, 1, 0.8, 0.5, 0, 0, 0]) + X[:, 0] * X[:, 1]
    order = score + rng.logistic(scale=0.4, size=len(X))
    y = (order > np.quantile(order, 0.95)).astype(int)
    return Rows(X[:n], y[:n], X[n:], y[n:], part=expit(X[:n, 2]) > 0.5)
