"""The comparison of bound and gap, on random features."""

from types import SimpleNamespace

import numpy as np
import pytest

from examples.paper.bound import T, corrected_loss, run
from noisytransition import flip_labels


@pytest.mark.parametrize("depth", [1, 2])
def test_the_network_is_in_the_class_and_its_gap_below_the_bound(depth, monkeypatch):
    monkeypatch.setattr("examples.paper.bound.WIDTH", 4)
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 1280)).astype(np.float32), random.integers(10, size=200)
    data = SimpleNamespace(X=X[:100], y=flip_labels(y, T, random_state=0)[:100], X_test=X[100:], y_test=y[100:])
    row = run(data, 100, depth, 1.0, 0)  # raises for a network outside of the class
    assert abs(row["gap"]) < row["bound"]


def test_corrected_loss():
    assert corrected_loss(np.eye(10)[[0, 3]], np.array([0, 5])) == pytest.approx(-np.log(T[3, 5] * T[0, 0]) / 2)
