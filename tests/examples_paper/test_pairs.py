"""T from pairs of true and noisy label: estimates that suppose nothing of the noise."""

import numpy as np
import pytest
from scipy.special import softmax

from examples.paper.pairs import by_residuals, counted, fitted_posterior
from noisytransition import flip_labels
from noisytransition.transition import pair_noise


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=2000)
    proba = softmax(rng.normal(size=(2000, 10)) + 3 * np.eye(10)[y], axis=1)
    return proba, flip_labels(y, pair_noise(10, 0.3), random_state=0), y


def test_the_residuals_of_all_rows_give_their_own_T(rows):
    proba, noisy, y = rows
    np.testing.assert_allclose(by_residuals(proba, noisy, y, np.arange(2000)), counted(y, noisy), atol=1e-6)


def test_a_posterior_that_is_right_needs_no_pairs(rows):
    _, noisy, y = rows
    np.testing.assert_allclose(by_residuals(np.eye(10)[y], noisy, y, np.arange(1)), counted(y, noisy), atol=1e-6)


def test_the_posterior_is_right_on_average_for_each_noisy_label(rows):
    proba, noisy, y = rows
    posterior = fitted_posterior(proba, noisy, y)
    np.testing.assert_allclose(posterior.sum(axis=1), 1)
    for label in range(10):
        own = noisy == label
        np.testing.assert_allclose(posterior[own].sum(axis=0), np.bincount(y[own], minlength=10), atol=1.5)
    rows = np.arange(2000)
    assert -np.log(posterior[rows, y]).mean() < -np.log(proba[rows, y]).mean()
