"""A temperature alone: the best of a grid, and what it mends."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posteriors import labels_of
from scipy import special
from strategies import floats

from noisytransition.transition._temperature import fitted_temperature, tempered_log_loss


@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(1, 30), floats(0.05, 5))
@settings(max_examples=30)
def test_the_temperature_is_the_best_of_a_fine_grid(seed, c, n, concentration):
    rng = np.random.default_rng(seed)
    proba, y = rng.dirichlet(np.full(c, concentration), size=n), rng.integers(c, size=n)
    u = np.log(np.maximum(proba, 1e-7))

    def loss(log_scale):
        return -special.log_softmax(np.exp(log_scale) * u, axis=1)[np.arange(n), y].sum()

    found = tempered_log_loss(proba, y)
    assert found.shape == (n,)
    assert found.sum() <= min(map(loss, np.linspace(-3, 2, 501))) + 1e-4 * n
    assert found.sum() <= loss(0.0) + 1e-6 * n  # the plain log-loss


def test_a_temperature_mends_probabilities_that_are_too_sure():
    true, rng = np.array([0.6, 0.3, 0.1]), np.random.default_rng(0)
    y = rng.choice(3, size=3000, p=true)
    sure = np.tile(true**4 / (true**4).sum(), (3000, 1))
    expected = -np.log(true)[y].mean()
    assert -np.log(sure)[np.arange(3000), y].mean() > expected + 0.2
    assert tempered_log_loss(sure, y).mean() == pytest.approx(expected, abs=0.01)


def test_a_probability_of_0_costs_a_finite_loss():
    loss = tempered_log_loss(np.eye(2)[[0, 1, 1]], np.array([0, 1, 0]))
    assert np.isfinite(loss).all()
    assert loss[2] > loss[0]


def test_the_temperature_is_that_of_the_lowest_loss():
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(2000, 3))
    y = labels_of(special.softmax(logits, axis=1), rng)
    found = fitted_temperature(special.softmax(3 * logits, axis=1), y)
    np.testing.assert_allclose(found.matrix, np.eye(3) / 3, atol=0.03)
    np.testing.assert_array_equal(found.bias, 0)
    losses = [
        -special.log_softmax(s * logits, axis=1)[range(2000), y].sum()
        for s in 3 * found.matrix[0, 0] * np.array([0.98, 1, 1.02])
    ]
    assert losses[1] == min(losses)


def test_a_weight_counts_a_row_so_often():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(3), size=40), rng.integers(3, size=40)
    weights = rng.integers(4, size=40)
    weighted, repeated = tempered_log_loss(proba, y, weights), np.arange(40).repeat(weights)
    single = tempered_log_loss(proba[repeated], y[repeated])
    np.testing.assert_allclose(weighted.sum(), single.sum(), rtol=1e-6)
    one, other = fitted_temperature(proba, y, weights), fitted_temperature(proba[repeated], y[repeated])
    np.testing.assert_allclose(one.matrix, other.matrix, rtol=1e-3)
