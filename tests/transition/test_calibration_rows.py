"""Sums over noisy rows: blocks against all rows at once."""

import numpy as np
import pytest
from scipy import special

from noisytransition.transition import _calibration_rows
from noisytransition.transition._calibration_rows import RowsByLabel, RowsOfFewClasses


def draw(c, n=300):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, c)), np.sort(rng.integers(c, size=n)), rng.dirichlet(np.ones(c), c)


def expected(u, y, scale, bias, matrix, T):
    """The same sums, of all rows at once."""
    p = special.softmax(scale * u + u @ matrix.T + bias, axis=1)
    joint = p * T.T[y]
    posterior = joint / joint.sum(axis=1, keepdims=True)
    residual = posterior - p
    counts = posterior.T @ np.eye(len(T))[y]
    return np.log(joint.sum(axis=1)).sum(), counts, residual.sum(axis=0), residual.T @ u


@pytest.mark.parametrize("scale", [1.3, 150.0], ids=["small logits", "large logits"])
@pytest.mark.parametrize("rows_of", [RowsOfFewClasses, RowsByLabel])
@pytest.mark.parametrize("size", [1, 17 * 5, 10**9])
def test_blocks_of_rows_give_the_sums_of_all_rows_at_once(rows_of, size, scale, monkeypatch):
    (u, y, T), c = draw(5), 5
    has_matrix = rows_of is RowsOfFewClasses
    bias, matrix = np.linspace(-1, 1, c), 0.1 * np.eye(c)[::-1] * has_matrix
    monkeypatch.setattr(_calibration_rows, "_BLOCK_SIZE", size)
    sums = rows_of(u, y, c).sums(scale, bias, matrix, T)
    likelihood, counts, of_bias, of_matrix = expected(u, y, scale, bias, matrix, T)
    for value, twin in zip(
        sums, (likelihood, counts, of_bias, of_matrix if has_matrix else np.diag(of_matrix)), strict=True
    ):
        np.testing.assert_allclose(value, twin, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rows_of", [RowsOfFewClasses, RowsByLabel])
def test_no_row_adds_nothing(rows_of):
    _, _, T = draw(4)
    sums = rows_of(np.zeros((0, 4)), np.zeros(0, dtype=int), 4).sums(1.0, np.zeros(4), np.zeros((4, 4)), T)
    assert all(not np.any(value) for value in sums)


def test_a_class_that_no_row_may_have_takes_no_part():
    u, y, T = draw(4)
    bias = np.array([0.0, 0.0, -1e9, 0.0])
    for rows_of in (RowsOfFewClasses, RowsByLabel):
        _, counts, of_bias, _ = rows_of(u, y, 4).sums(1.0, bias, np.zeros((4, 4)), T)
        assert not counts[2].any()
        assert of_bias[2] == 0
