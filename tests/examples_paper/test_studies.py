"""Estimates and measures of the studies without a table in the paper."""

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


def test_complexity_of_ten_outputs_is_below_that_of_the_bound():
    """The supremum over a linear layer has a closed form: the Frobenius norm of the signed sum of the samples."""
    rng = np.random.default_rng(0)
    X, signs = bound.on_the_sphere(rng.normal(size=(50, 4))), rng.choice([-1, 1], size=(400, 10, 50))
    measured = 4 * np.linalg.norm(signs @ X, axis=(1, 2)).mean() / 50
    assert measured < bound.risk_bound(50, [1.0], delta=1)


def test_theorem_1_as_printed_is_above_the_proved_bound_if_M_bounds_the_loss():
    """Its terms are those for c = 10, d = 2, M_i = 2 and 3, M = 5, B = 4, N = 100, delta = 0.2."""
    for norms in ([0.1], [3.0], [10.0], [3.0, 3.0], [10.0, 10.0], [1.0] * 5):
        for n in (10, 1000):
            printed = bound.theorem_1(n, norms, largest=bound.largest_loss(norms))
            assert printed > bound.risk_bound(n, norms)
            assert bound.corollary(n, norms, largest=bound.largest_loss(norms)) == 2 * printed
    first = 2 * 10 * 5 * 4 * (np.sqrt(2 * np.log(2) * 2) + 1) * (2 * 3) / np.sqrt(100)
    second = 3 * 5 * np.sqrt(np.log(2 / 0.2) / (2 * 100))
    assert bound.theorem_1(100, [2.0, 3.0], largest=5.0, radius=4.0, delta=0.2) == pytest.approx(first + second)


# ---------------------------------------------------------------------------- pairs
def test_the_residuals_of_all_samples_or_a_posterior_that_is_right_give_T():
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=2000)
    proba = softmax(rng.normal(size=(2000, 10)) + 3 * np.eye(10)[y], axis=1)
    noisy = flip_labels(y, pair_noise(10, 0.3), random_state=0)
    for posterior, pairs in ((proba, np.arange(2000)), (np.eye(10)[y], np.arange(1))):
        np.testing.assert_allclose(by_residuals(posterior, noisy, y, pairs), counted(y, noisy), atol=1e-6)


# ---------------------------------------------------------------------------- probe
def test_a_network_that_separates_the_classes_is_right(tmp_path):
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    images = rng.integers(100, size=(60, 4, 4, 3), dtype=np.uint8) + (100 * y[:, None, None, None]).astype(np.uint8)
    assert probe.run(Stub(str(tmp_path / "log")), images, y)["accuracies"] == [1.0] * 5
