from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import binary_fractions, permutations, transition_matrices

from noisytransition.transition import pair_noise, sampling_limit, transition_error


@given(binary_fractions(4, 4), binary_fractions(4, 4), permutations(4), permutations(4))
def test_the_error_is_a_distance_and_frames_are_read_by_name(T, other, rows, columns):
    error = transition_error(T, other)
    assert transition_error(T, T) == 0 <= error <= 2
    assert error == pytest.approx(transition_error(other, T))
    assert error == pytest.approx(sum(abs(T[i, j] - other[i, j]) for i in range(4) for j in range(4)) / 4)
    names = np.array(["a", "b", "c", "d"])
    frame, moved = (pd.DataFrame(matrix, index=names, columns=names).iloc[rows, columns] for matrix in (T, other))
    assert transition_error(frame, moved) == pytest.approx(error)


def test_a_frame_is_read_by_position_beside_an_array_and_numbers_of_rows_by_name():
    T, names = np.array([[0.8, 0.2], [0.0, 1.0]]), ["ant", "bee"]
    frame, n = pd.DataFrame(T, index=names, columns=names), pd.Series({"bee": 40, "ant": 10})
    assert transition_error(frame.iloc[::-1, ::-1], T) == pytest.approx(0.4)
    assert sampling_limit(frame.iloc[[1, 0]], n) == pytest.approx(sampling_limit(T, [10, 40]))
    assert transition_error(np.eye(4), pair_noise(4, 1)) == 2


# ---------------------------------------------------------------------------- sampling limit
def mean_deviation(n, p):
    """Mean of abs(X / n - p), where X is binomial."""
    return sum(comb(n, k) * p**k * (1 - p) ** (n - k) * abs(k / n - p) for k in range(n + 1))


@given(transition_matrices(3), st.lists(st.integers(1, 60), min_size=3, max_size=3))
def test_the_limit_is_the_expected_error_of_counting_with_the_true_labels(T, n):
    """One number is that of all classes."""
    for limit, of_class in ((sampling_limit(T, n), n), (sampling_limit(T, n[0]), [n[0]] * 3)):
        total = sum(mean_deviation(m, p) for m, row in zip(of_class, T, strict=True) for p in row)
        assert limit == pytest.approx(total / 3, rel=1e-8, abs=1e-10)


def test_the_limit_is_accurate_for_many_rows():
    """By De Moivre's formula in exact fractions."""
    expected = {100: 0.03644922319643980, 3000: 0.006674883634024842, 20000: 0.002585400947461732}
    for n, limit in expected.items():
        assert sampling_limit([[0.7, 0.3], [0.0, 1.0]], n) == pytest.approx(limit, rel=1e-10)


@pytest.mark.parametrize("n", [0, [1, 2], 2.5, [3, 3, 3, 3, 0]])
def test_numbers_of_rows_are_positive_integers_of_each_class(n):
    with pytest.raises(ValueError, match="n_per_class="):
        sampling_limit(np.eye(5), n)


def test_the_limit_is_finite_for_large_counts_and_tiny_probabilities():
    p, n = 1e-9, 10_000_000
    T = [[1 - p, p], [0, 1]]
    assert sampling_limit(T, n) == pytest.approx(2 * p * (1 - p) ** n, rel=1e-6)  # E|X - np| = 2 np (1-p)^n, np < 1
    for tiny in (5e-324, 2.2250738585072014e-308, 1e-300):
        for m in (1, 4, n):
            assert sampling_limit([[1.0, tiny], [0, 1]], m) < 1e-190
    half = sampling_limit(np.full((2, 2), 0.5), n)
    assert half == pytest.approx(2 * np.sqrt(0.25 / n * 2 / np.pi), rel=1e-6)  # nearly normal
