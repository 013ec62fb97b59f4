"""Automatic learning rates."""

import numpy as np
import pytest
from scipy import sparse
from torch import nn, optim

from noisytransition import CrossEntropyClassifier


def rate(module, X, **params):
    """Learning rate of a fit."""
    clf = CrossEntropyClassifier(module, max_epochs=1, random_state=0, **params)
    return clf.fit(X, np.arange(X.shape[0]) % 3).net_.lr


def table(n_columns, n=60):
    return np.random.default_rng(0).normal(size=(n, n_columns)).astype(np.float32)


@pytest.mark.parametrize(("module", "narrow"), [("linear", 0.005), ("mlp", 0.001)])
def test_the_rate_of_a_built_in_network_falls_with_the_width(module, narrow):
    assert rate(module, table(10)) == narrow
    wide = rate(module, table(1000))
    # the mean absolute value of a standard normal number is 0.8
    assert wide == pytest.approx(narrow * 40 / (0.8 * 1000), rel=0.05)
    assert rate(module, table(4000)) == pytest.approx(wide / 4, rel=0.05)


def test_columns_that_are_mostly_0_count_by_their_values():
    X = np.zeros((60, 4000), dtype=np.float32)
    X[np.arange(60), np.arange(60)] = 1
    assert rate("linear", X) == rate("linear", sparse.csr_array(X)) == 0.005


def test_the_rate_of_a_linear_module_depends_on_the_values_that_it_takes():
    X = table(200)
    assert rate(nn.Linear(200, 3), X) == pytest.approx(rate("linear", X), rel=0.05)
    assert rate(nn.Linear(200, 3), 10 * X) == pytest.approx(rate(nn.Linear(200, 3), X) / 10, rel=1e-5)
    images = X.reshape(-1, 2, 10, 10)
    of_images = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3))
    assert rate(of_images, images) == 0.001
    assert rate(nn.Sequential(nn.Flatten(), nn.Linear(200, 3)), images) == rate(nn.Linear(200, 3), X)


def test_the_rate_of_a_deeper_module_is_that_of_adam():
    assert rate(nn.Sequential(nn.Linear(200, 8), nn.ReLU(), nn.Linear(8, 3)), table(200)) == 0.001


def test_other_rates_are_as_given():
    assert rate("linear", table(1000), lr=0.02) == 0.02
    assert rate("linear", table(1000), optimizer=optim.SGD) == 0.1
