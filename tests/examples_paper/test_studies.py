"""Estimates and measures of the studies beside the tables."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import softmax
from stub_networks import Stub

from examples.paper import bound, probe
from examples.paper.pairs import by_residuals, counted
from noisytransition import flip_labels
from noisytransition.transition import pair_noise


# ---------------------------------------------------------------------------- bound
@pytest.mark.parametrize("depth", [1, 2])
def test_the_network_is_in_the_class_and_its_gap_below_the_bound(depth, monkeypatch):
    monkeypatch.setattr(bound, "WIDTH", 4)
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 1280)).astype(np.float32), random.integers(10, size=200)
    noisy = flip_labels(y, bound.T, random_state=0)
    data = SimpleNamespace(X=X[:100], y=noisy[:100], X_test=X[100:], y_test=y[100:])
    row = bound.run(data, 100, depth, 1.0, 0)  # raises for a network outside of the class
    assert abs(row["gap"]) < row["bound"]


# ---------------------------------------------------------------------------- pairs
@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=2000)
    proba = softmax(rng.normal(size=(2000, 10)) + 3 * np.eye(10)[y], axis=1)
    return proba, flip_labels(y, pair_noise(10, 0.3), random_state=0), y


def test_the_residuals_of_all_rows_or_a_posterior_that_is_right_give_T(rows):
    proba, noisy, y = rows
    for posterior, pairs in ((proba, np.arange(2000)), (np.eye(10)[y], np.arange(1))):
        np.testing.assert_allclose(by_residuals(posterior, noisy, y, pairs), counted(y, noisy), atol=1e-6)


# ---------------------------------------------------------------------------- probe
def test_a_network_that_separates_the_classes_is_right(tmp_path):
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    images = rng.integers(100, size=(60, 4, 4, 3), dtype=np.uint8) + (100 * y[:, None, None, None]).astype(np.uint8)
    assert probe.run(Stub(str(tmp_path / "log")), images, y)["accuracies"] == [1.0] * 5


# ---------------------------------------------------------------------------- label distribution
