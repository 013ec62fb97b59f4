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
