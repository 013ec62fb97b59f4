"""Automatic learning rates."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from torch import nn, optim

from noisytransition import CrossEntropyClassifier
from noisytransition.nets import MLP


def fitted(module, X, **params):
    """Net of a fit of one epoch."""
    clf = CrossEntropyClassifier(module, **{"max_epochs": 1, "random_state": 0} | params)
    return clf.fit(X, np.arange(X.shape[0]) % 3).net_


def rate(module, X, **params):
    """Learning rate of a fit."""
    return fitted(module, X, **params).lr


def decay(module, X, **params):
    """Weight decay of a fit."""
    return fitted(module, X, **params).optimizer_.defaults["weight_decay"]


def table(n_columns, n=60):
    return np.random.default_rng(0).normal(size=(n, n_columns)).astype(np.float32)


@pytest.mark.parametrize(("module", "narrow"), [("linear", 0.005), ("mlp", 0.001)])
def test_the_rate_of_a_built_in_network_falls_with_the_width(module, narrow):
    assert rate(module, table(10)) == narrow
    # the mean absolute value of a standard normal number is 0.8
    for n_columns in (300, 1200):
        assert rate(module, table(n_columns)) == pytest.approx(narrow * 40 / (0.8 * n_columns), rel=0.05)


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


def test_the_rate_of_a_deeper_module_is_that_of_adam_and_others_are_as_given():
    assert rate(nn.Sequential(nn.Linear(200, 8), nn.ReLU(), nn.Linear(8, 3)), table(200)) == 0.001
    assert rate("linear", table(1000), lr=0.02) == 0.02
    assert rate("linear", table(1000), optimizer=optim.SGD) == 0.1


# ---------------------------------------------------------------------------- prior of the weights
@pytest.mark.parametrize("module", ["linear", "mlp"])
def test_a_built_in_network_has_logits_of_the_logistic_variance_a_priori(module):
    X = table(50)
    of_samples = (((X - X.mean(axis=0)) / X.std(axis=0)) ** 2).sum(axis=1).mean()
    assert decay(module, X) == pytest.approx(of_samples / (np.pi**2 / 3) / 60, rel=0.2)  # standard deviations near 1
    assert decay(module, np.tile(X, (2, 1))) == pytest.approx(decay(module, X) / 2, rel=1e-5)  # of a mean loss
    weights = np.random.default_rng(0).normal(size=(1000, 50)) / np.sqrt(60 * decay(module, X))
    assert (weights @ X.T).var() == pytest.approx(np.pi**2 / 3, rel=0.2)


def test_the_linear_network_is_logistic_regression_with_this_prior():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)).astype(np.float32)
    y = (X[:, 0] + rng.logistic(size=200) > 0).astype(int)
    network = CrossEntropyClassifier("linear", max_epochs=100, batch_size=-1, lr=0.05, random_state=0)
    network.set_params(optimizer__weight_decay=decay("linear", X)).fit(X, y)
    same = LogisticRegression(C=1 / (200 * decay("linear", X))).fit(X, y)
    np.testing.assert_allclose(network.predict_proba(X), same.predict_proba(X), atol=0.02)


def test_other_networks_and_rates_have_no_decay():
    X = table(50)
    assert decay("mlp", X, lr=0.01) == decay("mlp", X, optimizer=optim.SGD) == decay(nn.Linear(50, 3), X) == 0
    assert decay("mlp", X, optimizer__weight_decay=0.1) == 0.1
    assert decay(MLP, X, module__n_in=50, module__n_out=3) == 0  # inputs are as given


def test_rare_features_have_no_decay():
    X = np.zeros((64, 640), dtype=np.float32)
    X[np.arange(640) % 64, np.arange(640)] = 1  # each feature in one of two batches
    assert decay("linear", X) == 0
    assert decay("linear", X, batch_size=-1) > 0
    assert decay("linear", sparse.csr_array(X), batch_size=-1) == decay("linear", X, batch_size=-1)
