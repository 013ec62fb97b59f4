"""What a problem is made of: rows with true labels, and the data that methods and measures are given."""

from typing import NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

# mean square of a reduced row's norm: as of a standardised table with so many columns
NORM = 30


class Rows(NamedTuple):
    """Training and test rows, dense or sparse, with true labels 0..c-1, before any noise.

    `part`: rows that column-dependent noise treats in one way. `answers`: noisy labels that came with the data.
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    part: np.ndarray | None = None
    answers: np.ndarray | None = None


class Data(NamedTuple):
    """Noisy, clean and test rows of one seed. `transition_matrix` is P(noisy | true) of the noisy rows."""

    X: np.ndarray
    y: np.ndarray
    X_meta: np.ndarray
    y_meta: np.ndarray
    y_meta_noisy: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    transition_matrix: np.ndarray
    y_true: np.ndarray


def split(X, y, n_train, n_test, seed, **columns):
    """Draw training and test rows, the classes in equal shares; further columns are those of the training rows."""
    index = np.arange(len(y))
    train, test = train_test_split(index, train_size=n_train, test_size=n_test, stratify=y, random_state=seed)
    return Rows(X[train], y[train], X[test], y[test], **{name: column[train] for name, column in columns.items()})


def standardised(rows):
    """Columns with the mean 0 and the variance 1 of the training rows."""
    scale = StandardScaler().fit(rows.X).transform
    return rows._replace(X=scale(rows.X), X_test=scale(rows.X_test))


def reduced(X, X_test, n_columns, reduction=PCA):
    """So many components, fitted on the training rows."""
    fitted = reduction(n_columns, random_state=0).fit(X)
    first, second = fitted.transform(X), fitted.transform(X_test)
    scale = np.sqrt(NORM / (first**2).sum(axis=1).mean())
    return first * scale, second * scale


def by_words(rows):
    """Texts as sparse TF-IDF of their words, which the training rows know."""
    words = TfidfVectorizer().fit(rows.X)
    return rows._replace(X=words.transform(rows.X), X_test=words.transform(rows.X_test))


def some_of_each(y, order, n):
    """The first n rows of each class, in this order."""
    return np.concatenate([order[y[order] == i][:n] for i in range(y.max() + 1)])
