"""Data of a problem: samples with true labels, and their split into noisy, clean and test samples."""

from typing import NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

# mean squared norm of a sample after the reduction, equal to a standardised table with 30 columns
NORM = 30


class Rows(NamedTuple):
    """Training and test samples, dense or sparse, with true labels 0..c-1, before any noise.

    `part`: mask of the samples that get one of two noise models. `answers`: noisy labels of the data set.
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    part: np.ndarray | None = None
    answers: np.ndarray | None = None


class Data(NamedTuple):
    """Noisy, clean and test samples of one seed. `transition_matrix` is P(noisy | true) of the noisy samples."""

    X: np.ndarray
    y: np.ndarray
    X_clean: np.ndarray
    y_clean: np.ndarray
    y_clean_noisy: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    transition_matrix: np.ndarray
    y_true: np.ndarray


def split(X, y, n_train, n_test, seed, **columns):
    """Draw a stratified split into training and test samples; `columns` are further arrays of the training samples."""
    index = np.arange(len(y))
    train, test = train_test_split(index, train_size=n_train, test_size=n_test, stratify=y, random_state=seed)
    return Rows(X[train], y[train], X[test], y[test], **{name: column[train] for name, column in columns.items()})


def standardised(rows):
    """Standardise columns by the training samples."""
    scale = StandardScaler().fit(rows.X).transform
    return rows._replace(X=scale(rows.X), X_test=scale(rows.X_test))


def reduced(X, X_test, n_columns, reduction=PCA):
    """Reduce to `n_columns` components, fitted on the training samples."""
    fitted = reduction(n_columns, random_state=0).fit(X)
    first, second = fitted.transform(X), fitted.transform(X_test)
    scale = np.sqrt(NORM / (first**2).sum(axis=1).mean())
    return first * scale, second * scale


def by_words(rows):
    """Convert texts to sparse TF-IDF, with the vocabulary of the training samples."""
    words = TfidfVectorizer().fit(rows.X)
    return rows._replace(X=words.transform(rows.X), X_test=words.transform(rows.X_test))


def some_of_each(y, order, n):
    """Return the first n samples of each class in this order."""
    return np.concatenate([order[y[order] == i][:n] for i in range(y.max() + 1)])


def most_votes(votes, seed):
    """Return the class with the most votes, of shape (n_samples, n_classes); ties are broken at random."""
    return (votes + np.random.default_rng(seed).random(votes.shape)).argmax(axis=1)


def needs(package):
    """Mark a function of samples with the package that it needs."""

    def mark(function):
        function.package = package
        return function

    return mark
