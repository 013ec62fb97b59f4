import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    floats,
    labels,
    labels_of_every_class,
    permutations,
    probabilities,
    row_stochastic,
    transition_matrices,
)

from noisytransition.transition import (
    anchor_transition_matrix,
    confusion_transition_matrix,
    count_transition_matrix,
    flip_labels,
    floor_transition_matrix,
    gold_transition_matrix,
    pair_noise,
    symmetric_noise,
    transition_error,
    uniform_noise,
)


def exact(rng, T, prior, n=4000):
    """Noisy posteriors of rows that show their class clearly, with one pure row (an anchor) per class."""
    y = np.concatenate([np.arange(len(T)), rng.choice(len(T), size=n, p=prior)])
    clean = 0.97 * np.eye(len(T))[y] + 0.03 * rng.dirichlet(np.full(len(T), 0.5), size=len(y))
    clean[: len(T)] = np.eye(len(T))
    return clean @ T, y


def rare(c):
    """A prior with a class of 1 %."""
    prior = np.full(c, 0.99 / (c - 1))
    prior[0] = 0.01
    return prior


# ---------------------------------------------------------------------------- gold
@given(st.integers(2, 6).flatmap(lambda c: st.tuples(row_stochastic(c + 10, c), labels_of_every_class(c + 10, c))))
def test_gold_is_the_mean_of_each_class(rows):
    proba, y = rows
    T = gold_transition_matrix(proba, y)
    for i in range(len(T)):
        rows = [proba[n] for n in range(len(y)) if y[n] == i]
        np.testing.assert_allclose(T[i], sum(rows) / len(rows), rtol=1e-9)
    np.testing.assert_allclose(T.sum(1), 1)


@pytest.mark.parametrize("c", [10, 100])
def test_gold_recovers_T_from_exact_posteriors_of_separable_classes(c):
    T = pair_noise(c, 0.4)
    y = np.repeat(np.arange(c), 3)
    np.testing.assert_allclose(gold_transition_matrix(T[y], y), T, atol=1e-12)


def test_a_class_without_clean_rows_is_named_or_replaced():
    proba = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1]]
    with pytest.raises(ValueError, match=r"classes \[2\].*missing="):
        gold_transition_matrix(proba, [0, 1])
    T = gold_transition_matrix(proba, [0, 1], missing=symmetric_noise(3, 0.5))
    np.testing.assert_allclose(T, [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]])


@pytest.mark.parametrize(
    ("y", "message"),
    [([0, 3], "valid class indices"), ([0], "1 entries for 2 rows"), ([0.0, 1.0], "dtype"), ([[0], [1]], "1-d")],
)
def test_gold_refuses_labels_that_do_not_fit(y, message):
    with pytest.raises(ValueError, match=message):
        gold_transition_matrix([[0.9, 0.1], [0.1, 0.9]], y)


# ---------------------------------------------------------------------------- anchors
@pytest.mark.parametrize("c", [10, 100])
@pytest.mark.parametrize("with_rare", [False, True])
def test_anchors_recover_T_exactly_where_every_class_has_one(c, with_rare):
    rng = np.random.default_rng(0)
    T = pair_noise(c, 0.4)
    proba, _ = exact(rng, T, rare(c) if with_rare else np.full(c, 1 / c))
    before = proba.copy()
    np.testing.assert_allclose(anchor_transition_matrix(proba), T, atol=1e-12)
    np.testing.assert_array_equal(proba, before)


def test_a_constant_percentile_fails_where_a_class_is_rare_and_auto_does_not():
    rng = np.random.default_rng(0)
    T = symmetric_noise(10, 0.2)
    proba, _ = exact(rng, T, rare(10))
    constant, auto = (transition_error(T, anchor_transition_matrix(proba, percentile=p)) for p in (97, "auto"))
    assert auto < 0.1 < constant


@given(probabilities(5, 30, st.integers(2, 6)), st.sampled_from([None, 50, 97, "auto"]), st.integers(1, 5))
def test_anchor_rows_sum_to_one(proba, percentile, n_anchors):
    T = anchor_transition_matrix(proba, percentile=percentile, n_anchors=n_anchors)
    np.testing.assert_allclose(T.sum(1), 1)
    assert (T >= 0).all()


def test_several_anchors_are_averaged():
    proba = np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]])
    np.testing.assert_allclose(anchor_transition_matrix(proba, n_anchors=2), [[0.8, 0.2], [0.3, 0.7]])


@given(row_stochastic(15, 4), labels_of_every_class(15, 4), labels(15, 4), permutations(4))
def test_permuting_the_classes_permutes_every_estimate(proba, y, y_noisy, p):
    place = np.argsort(p)
    for estimate, moved in (
        (gold_transition_matrix(proba, y), gold_transition_matrix(proba[:, p], place[y])),
        (anchor_transition_matrix(proba), anchor_transition_matrix(proba[:, p])),
        (count_transition_matrix(y, y_noisy, 4), count_transition_matrix(place[y], place[y_noisy], 4)),
    ):
        np.testing.assert_allclose(moved, estimate[np.ix_(p, p)])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"percentile": 0}, "percentile=0"),
        ({"percentile": "most"}, "percentile='most'"),
        ({"n_anchors": 0}, "n_anchors=0"),
        ({"n_anchors": 9}, "n_anchors=9 for 2 rows"),
        ({"n_anchors": 1.5}, "give an integer"),
    ],
)
def test_anchors_refuse(params, message):
    with pytest.raises(ValueError, match=message):
        anchor_transition_matrix([[0.9, 0.1], [0.1, 0.9]], **params)


# ---------------------------------------------------------------------------- counts and floors
@given(labels_of_every_class(20, 3), labels(20, 3), floats(0, 5))
def test_counts_are_counted(y, y_noisy, smoothing):
    counts = np.full((3, 3), smoothing)
    for i, j in zip(y, y_noisy, strict=True):
        counts[i, j] += 1
    np.testing.assert_allclose(
        count_transition_matrix(y, y_noisy, smoothing=smoothing, n_classes=3), counts / counts.sum(1, keepdims=True)
    )


def test_counts_need_rows_of_every_class_or_smoothing():
    with pytest.raises(ValueError, match=r"no rows of classes \[1\]"):
        count_transition_matrix([0, 0], [0, 1])
    np.testing.assert_allclose(count_transition_matrix([0, 0], [0, 1], smoothing=1), [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(ValueError, match="smoothing=-1"):
        count_transition_matrix([0, 1], [0, 1], smoothing=-1)


def test_counts_of_many_rows_are_T():
    T, y = symmetric_noise(4, 0.3), np.repeat(np.arange(4), 20_000)
    np.testing.assert_allclose(count_transition_matrix(y, flip_labels(y, T, random_state=0)), T, atol=0.02)


@given(transition_matrices(4), floats(0, 0.2))
def test_a_floored_matrix_has_no_smaller_entry_and_rows_that_sum_to_one(T, floor):
    floored = floor_transition_matrix(T, floor)
    np.testing.assert_allclose(floored.sum(1), 1)
    assert floored.min() >= floor * (1 - 1e-12)
    np.testing.assert_allclose(floor_transition_matrix(np.eye(4), floor).diagonal(), 1 - 3 * floor)


def test_no_floor_changes_nothing_and_too_high_a_floor_is_refused():
    T = pair_noise(5, 0.4)
    np.testing.assert_allclose(floor_transition_matrix(T, 0), T)
    for floor in (0.2, -0.1):
        with pytest.raises(ValueError, match=r"less than 1/c = 0.2"):
            floor_transition_matrix(T, floor)


# ---------------------------------------------------------------------------- confusion
@given(st.integers(2, 6).flatmap(lambda c: st.tuples(row_stochastic(15, c), labels(15 + c, c))))
def test_confusion_counts_noisy_labels_by_prediction(rows):
    proba, y = rows
    c = proba.shape[1]
    proba = np.concatenate([0.1 / c + 0.9 * np.eye(c), proba])  # every class is predicted
    hard, soft = np.zeros((c, c)), np.zeros((c, c))
    for p, label in zip(proba, y, strict=True):
        hard[p.argmax(), label] += 1
        soft[:, label] += p
    for is_soft, counts in ((False, hard), (True, soft)):
        T = confusion_transition_matrix(proba, y, soft=is_soft)
        np.testing.assert_allclose(T, counts / counts.sum(1, keepdims=True), rtol=1e-9)


def test_a_class_that_is_never_predicted_gets_its_soft_row():
    proba, y = [[0.9, 0.1], [0.6, 0.4]], [0, 1]
    T = confusion_transition_matrix(proba, y)
    np.testing.assert_allclose(T, [[0.5, 0.5], [0.2, 0.8]])
    with pytest.raises(ValueError, match=r"classes \[1\] no probability"):
        confusion_transition_matrix([[1.0, 0.0]], [0])


@pytest.mark.parametrize("c", [10, 100])
def test_confusion_of_a_perfect_model_recovers_T(c):
    T = pair_noise(c, 0.4)
    y = np.repeat(np.arange(c), 1000)
    counted = confusion_transition_matrix(np.eye(c)[y], flip_labels(y, T, random_state=0))
    assert transition_error(T, counted) < 0.05


# ---------------------------------------------------------------------------- anchors
def anchors_one_by_one(proba, percentile, n_anchors):
    """Sort the rows at or below the percentile, class by class."""
    T = []
    for i in range(proba.shape[1]):
        column = sorted(proba[:, i])
        limit = column[int((len(column) - 1) * percentile / 100)]
        rows = sorted((row for row in proba if row[i] <= limit), key=lambda row: -row[i])[:n_anchors]
        T.append(sum(rows) / len(rows))
    return np.array(T)


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
def floored_row_by_row(T, floor):
    floored = []
    for row in T:
        surplus = [max(p, floor) - floor for p in row]
        floored.append([floor + (1 - len(T) * floor) * s / sum(surplus) for s in surplus])
    return np.array(floored)


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
