import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import binary_fractions, floats, labels

from noisytransition.transition import (
    count_transition_matrix,
    flip_labels,
    pair_noise,
    sampling_limit,
    superclass_noise,
    symmetric_noise,
    transition_error,
)


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


@pytest.mark.parametrize("T", [pair_noise(10, 0.45), superclass_noise(np.repeat(range(5), 2), 0.6)])
@pytest.mark.parametrize("seed", range(3))
def test_the_error_of_counting_is_that_of_sampling(T, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(10), 1000))
    error = transition_error(T, count_transition_matrix(y, flip_labels(y, T, seed), 10))
    assert 0.3 < error / sampling_limit(T, 1000) < 2


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_integer_labels_keep_their_type(dtype):
    y = np.array([0, 2, 1], dtype=dtype)
    flipped = flip_labels(y, pair_noise(3, 1))
    assert flipped.dtype == dtype
    assert flipped.tolist() == [1, 0, 2]


def test_a_type_too_narrow_for_the_classes_is_widened():
    flipped = flip_labels(np.array([255], dtype=np.uint8), pair_noise(300, 1))
    assert flipped.tolist() == [256]


def test_long_names_are_not_cut_to_the_length_of_those_in_y():
    flipped = flip_labels(["cat"], pair_noise(2, 1), classes=["cat", "automobile"])
    assert flipped.tolist() == ["automobile"]


def test_classes_name_the_rows_in_the_order_given():
    T = np.array([[0, 0, 1], [0, 1, 0], [0, 1, 0]])
    assert flip_labels([5, 9, 7], T, classes=[9, 5, 7]).tolist() == [5, 7, 5]


def test_labels_other_than_indices_are_sorted():
    assert flip_labels([3, 1, 2], pair_noise(3, 1)).tolist() == [1, 2, 3]
    assert flip_labels([True, False], pair_noise(2, 1)).tolist() == [False, True]
    assert flip_labels([0.5, -0.5], pair_noise(2, 1)).tolist() == [-0.5, 0.5]


def test_no_labels_give_no_labels():
    assert flip_labels([], np.eye(3)).shape == (0,)
    assert flip_labels([], np.eye(2), classes=["a", "b"]).shape == (0,)


def test_the_inputs_and_the_global_generator_are_unchanged():
    y, T = np.array([0, 1, 2] * 10), symmetric_noise(3, 0.5)
    kept = y.copy(), T.copy()
    np.random.seed(0)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    for random_state in (None, 0):
        flip_labels(y, T, random_state)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    np.testing.assert_array_equal(y, kept[0])
    np.testing.assert_array_equal(T, kept[1])


def test_a_generator_advances():
    y, T = np.zeros(50, dtype=int), symmetric_noise(2, 0.5)
    rng = np.random.default_rng(0)
    assert flip_labels(y, T, rng).tolist() != flip_labels(y, T, rng).tolist()


@pytest.mark.parametrize(
    ("random_state", "message"),
    [(-1, "random_state=-1; give at least 0"), ("seed", "random_state='seed'; give"), (0.5, "random_state=0.5")],
)
def test_what_is_no_random_state(random_state, message):
    with pytest.raises(ValueError, match=message):
        flip_labels([0, 1], np.eye(2), random_state)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([0, 0], "give 2 different labels, one per row of T"),
        ([[0, 1]], "give 2 different labels"),
        ([5, 6], r"y has the label .*0.*; classes has \[5, 6\]"),
        (["a", "b"], "y has the label"),
    ],
)
def test_classes_that_do_not_fit(classes, message):
    with pytest.raises(ValueError, match=message):
        flip_labels([0, 1], np.eye(2), classes=classes)
