"""Noise models against their definitions, and labels drawn from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import binary_fractions, floats, labels

from noisytransition.transition import (
    cifar10_noise,
    digits_noise,
    flip_labels,
    flip_noise,
    pair_noise,
    superclass_noise,
    symmetric_noise,
)
from noisytransition.transition._checks import check_transition_matrix


@given(st.integers(2, 12), floats(0, 1))
def test_definitions(c, r):
    """Each is a transition matrix with its noise rate."""
    eye, ones = np.eye(c), np.ones((c, c))
    pairs = (1 - r) * eye + r * np.roll(eye, 1, axis=1)
    cifar, digits = np.eye(10), np.eye(10)
    for T, flips in ((cifar, {9: 1, 2: 0, 4: 7, 3: 5}), (digits, {7: 1, 2: 7, 5: 6, 6: 5, 3: 8})):
        for i, j in flips.items():
            T[i, i], T[i, j] = 1 - r, r
    halves = (1 - r) * np.eye(2 * c) + r * np.roll(np.eye(2 * c), c, axis=1)
    for T, expected, rate in (
        (symmetric_noise(c, r), (1 - r) * eye + r / (c - 1) * (ones - eye), r),
        (pair_noise(c, r), pairs, r),
        (flip_noise({(i, (i + 1) % c): r for i in range(c)}, c), pairs, r),
        (cifar10_noise(r), cifar, 0.4 * r),
        (digits_noise(r), digits, 0.5 * r),
        (superclass_noise(np.arange(2 * c) % c, r), halves, r),
    ):
        check_transition_matrix(T)
        np.testing.assert_allclose(T, expected, atol=1e-12)
        assert 1 - np.mean(T.diagonal()) == pytest.approx(rate, abs=1e-12)


def test_superclasses():
    T = superclass_noise([0, 0, 0, 1, 2, 2], 0.6)
    np.testing.assert_allclose(T[0], [0.4, 0.3, 0.3, 0, 0, 0])
    np.testing.assert_allclose(T[3], np.eye(6)[3])
    np.testing.assert_allclose(superclass_noise(["a"] * 6, 0.3), symmetric_noise(6, 0.3))
    np.testing.assert_array_equal(superclass_noise(np.arange(6), 0.3), np.eye(6))


def test_flips_that_add_up_to_one_but_for_rounding_leave_no_negative_entry():
    T = flip_noise({(0, 1): 0.2, (0, 2): 0.4, (0, 3): 0.3, (0, 4): 0.1}, 5)
    assert 0 <= T[0, 0] < 1e-15
    np.testing.assert_array_equal(T[0, 1:], [0.2, 0.4, 0.3, 0.1])


# ---------------------------------------------------------------------------- labels
def test_a_seed_repeats_the_draw_and_every_kind_of_generator_is_taken():
    T, y = symmetric_noise(3, 0.5), np.tile([0, 1, 2], 30)
    for make in (lambda: 3, lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)):
        np.testing.assert_array_equal(flip_labels(y, T, make()), flip_labels(y, T, make()))
    assert not np.array_equal(flip_labels(y, T, 3), flip_labels(y, T, 4))


class FixedDraws(np.random.Generator):
    """A generator whose uniform draws are given."""

    def __init__(self, draws):
        super().__init__(np.random.PCG64(0))
        self.draws = np.asarray(draws, dtype=float)

    def random(self, size):
        assert size == len(self.draws)
        return self.draws


def flip_one_by_one(y, T, draws):
    """Inverse of the cumulated probabilities, one row at a time."""
    flipped = []
    for i, draw in zip(y, draws, strict=True):
        total, j = 0.0, 0
        while j < len(T) - 1 and draw >= total + T[i][j]:
            total += T[i][j]
            j += 1
        flipped.append(j)
    return flipped


@st.composite
def flips(draw):
    """Labels, a T whose rows sum to 1 without rounding, and a uniform number below 1 for each label."""
    c, n = draw(st.integers(2, 7)), draw(st.integers(1, 40))
    uniform = hnp.arrays(np.float64, n, elements=floats(0, np.nextafter(1, 0)))
    return draw(labels(n, c)), draw(binary_fractions(c, c)), draw(uniform)


@given(flips())
def test_one_draw_per_row_is_inverted(problem):
    y, T, draws = problem
    assert flip_labels(y, T, FixedDraws(draws)).tolist() == flip_one_by_one(y, T, draws)


@given(st.integers(2, 60), st.floats(0.01, 0.99))
def test_the_extreme_draws_reach_no_impossible_class(c, rate):
    # rows whose cumulated sum ends below 1 by rounding, with impossible classes at both ends
    T = np.zeros((c + 2, c + 2))
    T[:, 1:-1] = symmetric_noise(c, rate)[0] * (1 - 5e-7)
    y = np.arange(c + 2)
    assert (flip_labels(y, T, FixedDraws(np.zeros(c + 2))) == 1).all()
    assert (flip_labels(y, T, FixedDraws(np.full(c + 2, np.nextafter(1, 0)))) == c).all()


@pytest.mark.parametrize(
    ("y", "c", "classes", "flipped"),
    [
        (["b", "a", "c"], 3, None, ["c", "b", "a"]),
        ([30, 10], 3, [10, 20, 30], [10, 20]),
        ([2, 0], 3, None, [0, 1]),  # indices, though class 1 is not among them
        ([3, 1, 2], 3, None, [1, 2, 3]),  # other labels are sorted
        ([True, False], 2, None, [False, True]),
        ([], 2, ["a", "b"], []),
        ([0.5, -0.5], 2, None, [-0.5, 0.5]),
        ([5, 9, 7], 3, [9, 5, 7], [7, 5, 9]),
        (["cat"], 2, ["cat", "automobile"], ["automobile"]),  # a name is not cut to the length of those in y
        (np.array([255], dtype=np.uint8), 300, None, [256]),  # a type that is too narrow is widened
        *((np.array([0, 2, 1], dtype=dtype), 3, None, [1, 0, 2]) for dtype in (np.int8, np.uint8, np.int32)),
    ],
)
def test_labels_of_any_kind_stay_of_that_kind(y, c, classes, flipped):
    """Each label is flipped to the next class."""
    found = flip_labels(y, pair_noise(c, 1), classes=classes)
    assert found.tolist() == flipped
    if c == 3 and classes is None:
        assert found.dtype == np.asarray(y).dtype
