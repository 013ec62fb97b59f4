"""Laws and errors that cut across the estimators and noise models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import floats, probabilities, transition_matrices

from noisytransition import transition
from noisytransition.transition import (
    anchor_transition_matrix,
    check_probabilities,
    check_transition_matrix,
    cifar10_noise,
    count_transition_matrix,
    digits_noise,
    flip_noise,
    floor_transition_matrix,
    gold_transition_matrix,
    pair_noise,
    sampling_limit,
    superclass_noise,
    symmetric_noise,
    transition_error,
    uniform_noise,
)
from noisytransition.transition._checks import check_label_indices

rates = floats(0, 1)


def anchors_one_by_one(proba, percentile, n_anchors):
    """Sort the rows at or below the percentile, class by class."""
    T = []
    for i in range(proba.shape[1]):
        column = sorted(proba[:, i])
        limit = column[int((len(column) - 1) * percentile / 100)]
        rows = sorted((row for row in proba if row[i] <= limit), key=lambda row: -row[i])[:n_anchors]
        T.append(sum(rows) / len(rows))
    return np.array(T)


def floored_row_by_row(T, floor):
    floored = []
    for row in T:
        surplus = [max(p, floor) - floor for p in row]
        floored.append([floor + (1 - len(T) * floor) * s / sum(surplus) for s in surplus])
    return np.array(floored)


# ---------------------------------------------------------------------------- anchors
@given(probabilities(8, 23), st.sampled_from([30, 62.5, 97, 100]), st.integers(1, 8))
def test_anchors_agree_with_sorting_by_hand(proba, percentile, n_anchors):
    T = anchor_transition_matrix(proba, percentile=percentile, n_anchors=n_anchors)
    np.testing.assert_allclose(T, anchors_one_by_one(proba, percentile, n_anchors), rtol=1e-9)


@pytest.mark.parametrize("c", [2, 10, 100])
def test_auto_recovers_T_exactly_where_the_classes_are_separable(c):
    T = pair_noise(c, 0.4)
    proba = T[np.repeat(np.arange(c), 40)]
    np.testing.assert_allclose(anchor_transition_matrix(proba, percentile="auto"), T, atol=1e-12)
    np.testing.assert_allclose(anchor_transition_matrix(proba, percentile="auto", n_anchors=20), T, atol=1e-12)


@pytest.mark.parametrize("noise", [pair_noise(10, 0.4), symmetric_noise(10, 0.6), uniform_noise(10, 0.5)])
def test_auto_is_right_where_many_labels_are_flipped_to_a_rare_class(noise):
    proba = noise[np.repeat(np.arange(10), [10] + 9 * [110])]
    assert proba.mean(axis=0)[0] > 0.03  # the rare class's mean probability hides that it is 1 % of the rows
    assert transition_error(noise, anchor_transition_matrix(proba, percentile=97)) > 0.05
    np.testing.assert_allclose(anchor_transition_matrix(proba, percentile="auto"), noise, atol=1e-12)


def test_a_percentile_ignores_outliers():
    proba = np.array([[0.99, 0.01]] + 50 * [[0.75, 0.25]] + 50 * [[0.25, 0.75]])
    np.testing.assert_allclose(anchor_transition_matrix(proba)[0], [0.99, 0.01])
    np.testing.assert_allclose(anchor_transition_matrix(proba, percentile="auto")[0], [0.75, 0.25])


@pytest.mark.parametrize("percentile", [-5, 100.5, np.nan])
def test_percentiles_out_of_range(percentile):
    with pytest.raises(ValueError, match='give None, "auto" or a number above 0 and at most 100'):
        anchor_transition_matrix(np.eye(3), percentile=percentile)


def test_anchors_need_rows():
    with pytest.raises(ValueError, match="n_anchors=1 for 0 rows of proba; give at most one per row"):
        anchor_transition_matrix(np.empty((0, 3)))


# ---------------------------------------------------------------------------- gold, counts, floors
def test_estimates_do_not_change_their_inputs():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=9)
    y, T = np.arange(9) % 3, symmetric_noise(4, 0.1)
    kept = proba.copy(), y.copy(), T.copy()
    gold_transition_matrix(proba, y)
    anchor_transition_matrix(proba, percentile="auto", n_anchors=2)
    count_transition_matrix(y, y[::-1])
    floor_transition_matrix(T, 0.1)
    for array, copy in zip((proba, y, T), kept, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_gold_rows_sum_to_one_though_half_precision_does_not():
    proba = np.random.default_rng(0).dirichlet(np.ones(5), size=40).astype(np.float16)
    T = gold_transition_matrix(proba, np.arange(40) % 5)
    assert T.dtype == np.float64
    np.testing.assert_allclose(T.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("missing", "message"),
    [(np.eye(2), "missing has 2 rows and columns, but there are 3"), (np.ones((3, 3)), "row 0 of missing sums to 3")],
)
def test_gold_validates_missing(missing, message):
    with pytest.raises(ValueError, match=message):
        gold_transition_matrix(np.eye(3), [0, 1, 1], missing=missing)


def test_gold_ignores_missing_if_every_class_has_rows():
    stand_in = np.full((3, 3), 1 / 3)
    np.testing.assert_allclose(gold_transition_matrix(np.eye(3), [0, 1, 2], missing=stand_in), np.eye(3))


def test_counts_take_the_number_of_classes_from_either_side_or_as_given():
    assert count_transition_matrix([0, 1, 2], [0, 1, 1]).shape == (3, 3)
    assert count_transition_matrix([0, 1], [0, 3], smoothing=1).shape == (4, 4)
    np.testing.assert_allclose(count_transition_matrix([0, 1], [0, 1], 3, smoothing=0.5)[2], 1 / 3)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([0, 2], [0, 1], 2), r"y_true holds 0..2; valid class indices are 0..1"),
        (([0, 1], [0, 2], 2), r"y_noisy holds 0..2"),
        (([0, 1], [0]), "y_noisy has 1 entries for 2 rows"),
        (([], []), "n_classes=0; give at least 1"),
    ],
)
def test_counts_refuse(args, message):
    with pytest.raises(ValueError, match=message):
        count_transition_matrix(*args)


@given(transition_matrices(5), floats(0, 0.19))
def test_a_floor_agrees_with_its_definition_and_is_reached_once(T, floor):
    floored = floor_transition_matrix(T, floor)
    np.testing.assert_allclose(floored, floored_row_by_row(T, floor), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(floor_transition_matrix(floored, floor), floored, rtol=1e-7, atol=1e-12)
    np.testing.assert_array_less(np.abs(floored.sum(axis=1) - 1), 1e-14)


# ---------------------------------------------------------------------------- noise models
@given(st.integers(2, 15), rates)
def test_every_noise_model_is_a_transition_matrix_with_its_noise_rate(c, r):
    halves = superclass_noise(np.arange(2 * c) % c, r)
    for T, wrong in (
        (symmetric_noise(c, r), r),
        (uniform_noise(c, r), r * (c - 1) / c),
        (pair_noise(c, r), r),
        (cifar10_noise(r), 0.4 * r),
        (digits_noise(r), 0.5 * r),
        (halves, r),
    ):
        check_transition_matrix(T)
        assert 1 - np.mean(T.diagonal()) == pytest.approx(wrong, abs=1e-12)


def test_all_superclasses_in_one_are_symmetric_noise_and_all_apart_are_none():
    np.testing.assert_allclose(superclass_noise(["a"] * 6, 0.3), symmetric_noise(6, 0.3))
    np.testing.assert_array_equal(superclass_noise(np.arange(6), 0.3), np.eye(6))


@given(st.integers(2, 8), rates)
def test_flips_write_out_the_pair_noise(c, r):
    T = pair_noise(c, r)
    np.testing.assert_allclose(flip_noise({i: (i + 1) % c for i in range(c)}, c, r), T, atol=1e-15)
    np.testing.assert_allclose(flip_noise({(i, (i + 1) % c): r for i in range(c)}), T, atol=1e-15)


def test_flips_that_add_up_to_one_but_for_rounding_leave_no_negative_entry():
    rest = [0.2, 0.4, 0.3, 0.1]
    assert np.sum([0.0, *rest]) > 1
    T = flip_noise({(0, j + 1): p for j, p in enumerate(rest)})
    assert T[0, 0] == 0
    np.testing.assert_array_equal(T[0, 1:], rest)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: flip_noise({0: 0.5}, 2, 0.5), "give integer class indices"),
        (lambda: flip_noise({(0, 1, 2): 0.5}), "give integer class indices"),
        (lambda: flip_noise({-1: 0}, 2, 0.5), r"flips has -1 -> 0; give two different classes of 0..1"),
        (lambda: flip_noise({(0, 1): 1.5}), r"the probability of 0 -> 1=1.5; give a probability between 0 and 1"),
        (lambda: flip_noise({}, rate=0.5), "n_classes=0; give at least 1"),
        (lambda: uniform_noise(2, -0.1), "rate=-0.1; give a probability between 0 and 1"),
        (lambda: cifar10_noise(np.nan), "rate=nan"),
        (lambda: digits_noise(2), "rate=2"),
        (lambda: superclass_noise([], 0.5), r"superclasses has shape \(0,\)"),
        (lambda: superclass_noise([0, 0], 7), "rate=7"),
    ],
)
def test_noise_models_refuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# ---------------------------------------------------------------------------- errors and limits
def test_the_error_of_nothing_right_is_two():
    assert transition_error(np.eye(4), pair_noise(4, 1)) == 2


def test_matrices_of_different_size_have_no_error():
    with pytest.raises(ValueError, match="T_pred has 2 rows and columns, but there are 3 classes"):
        transition_error(np.eye(3), np.eye(2))
    with pytest.raises(ValueError, match="row 0 of T_true sums to 2"):
        transition_error([[1, 1], [0, 1]], np.eye(2))


@given(transition_matrices(3), st.integers(1, 200))
def test_one_number_of_rows_is_that_of_all_classes(T, n):
    assert sampling_limit(T, n) == pytest.approx(sampling_limit(T, [n, n, n]))
    assert 0 <= sampling_limit(T, n) <= 2


def test_the_limit_is_finite_for_large_counts_and_tiny_probabilities():
    p, n = 1e-9, 10_000_000
    T = [[1 - p, p], [0, 1]]
    assert sampling_limit(T, n) == pytest.approx(2 * p * (1 - p) ** n, rel=1e-6)  # E|X - np| = 2 np (1-p)^n, np < 1
    for tiny in (5e-324, 2.2250738585072014e-308, 1e-300):
        for m in (1, 4, n):
            assert sampling_limit([[1.0, tiny], [0, 1]], m) < 1e-190
    half = sampling_limit(np.full((2, 2), 0.5), n)
    assert half == pytest.approx(2 * np.sqrt(0.25 / n * 2 / np.pi), rel=1e-6)  # nearly normal


# ---------------------------------------------------------------------------- checks
@pytest.mark.parametrize("check", [check_transition_matrix, check_probabilities])
@pytest.mark.parametrize("array", [np.empty((0, 0)), np.eye(2)[None], 3.0])
def test_arrays_of_the_wrong_shape(check, array):
    with pytest.raises(ValueError, match="has shape"):
        check(array)


def test_rows_may_be_off_by_rounding_only():
    for check, slack in ((check_transition_matrix, 1e-6), (check_probabilities, 1e-3)):
        check([[0.5, 0.5 + 0.9 * slack], [0, 1]])
        with pytest.raises(ValueError, match="row 1 of"):
            check([[0.5, 0.5], [0, 1 - 1.1 * slack]])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0]], r"y has shape \(1, 1\); give a 1-d array"),
        ([True], "y has dtype bool; give integer class indices"),
        ([1.0], r"for example np.searchsorted\(classes, y\)"),
        ([-1], r"y holds -1..-1; valid class indices are 0, 1, 2, ...: encode the labels"),
    ],
)
def test_what_is_no_label_index(y, message):
    with pytest.raises(ValueError, match=message):
        check_label_indices(y)


def test_label_indices_come_back_as_machine_integers():
    for y in (np.array([0, 200], dtype=np.uint8), [], (0, 1)):
        indices = check_label_indices(y)
        assert indices.dtype == np.intp
        assert indices.tolist() == list(y)


# ---------------------------------------------------------------------------- the package
def test_everything_public_is_named_and_documented():
    assert transition.__all__ == sorted(transition.__all__)
    for name in transition.__all__:
        public = getattr(transition, name)
        doc = public.__doc__
        for section in ("Attributes",) if isinstance(public, type) else ("Parameters", "Returns", "Raises", "Examples"):
            assert f"{section}\n" in doc, (name, section)
