"""Estimates of T from probabilities and labels, against loops and exact cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import floats, labels, labels_of_every_class, probabilities, row_stochastic, transition_matrices

from noisytransition.transition import (
    anchor_transition_matrix,
    confusion_transition_matrix,
    count_transition_matrix,
    gold_transition_matrix,
    pair_noise,
    symmetric_noise,
    transition_error,
)
from noisytransition.transition._estimation import floor_transition_matrix


# ---------------------------------------------------------------------------- gold
@given(st.integers(2, 6).flatmap(lambda c: st.tuples(row_stochastic(c + 10, c), labels_of_every_class(c + 10, c))))
def test_gold_is_the_mean_of_each_class(rows):
    proba, y = rows
    T = gold_transition_matrix(proba, y)
    for i in range(len(T)):
        rows = [proba[n] for n in range(len(y)) if y[n] == i]
        np.testing.assert_allclose(T[i], sum(rows) / len(rows), rtol=1e-9)
    half = gold_transition_matrix(proba.astype(np.float16), y)  # whose rows do not sum to 1
    assert half.dtype == np.float64
    np.testing.assert_allclose(half.sum(axis=1), 1, rtol=1e-12)


def test_labels_can_be_a_column():
    y = np.array([0, 1, 0, 1])
    T = count_transition_matrix(y, y[::-1])
    np.testing.assert_array_equal(count_transition_matrix(y[:, None], y[::-1, None]), T)
    proba = np.eye(2)[[0, 1, 0, 1]]
    np.testing.assert_array_equal(gold_transition_matrix(proba, y[:, None]), np.eye(2))


def test_a_class_without_clean_rows_is_named_or_replaced():
    proba = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1]]
    with pytest.raises(ValueError, match="missing"):
        gold_transition_matrix(proba, [0, 1])
    T = gold_transition_matrix(proba, [0, 1], missing=symmetric_noise(3, 0.5))
    np.testing.assert_allclose(T, [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]])
    with pytest.raises(ValueError, match="missing"):
        gold_transition_matrix(proba, [0, 1], missing=np.eye(2))


# ---------------------------------------------------------------------------- anchors
def anchors_one_by_one(proba, percentile):
    """The highest row at or below the percentile, class by class."""
    T = []
    for i in range(proba.shape[1]):
        column = sorted(proba[:, i])
        limit = column[int((len(column) - 1) * percentile / 100)]
        T.append(max((row for row in proba if row[i] <= limit), key=lambda row: row[i]))
    return np.array(T)


@given(probabilities(8, 23), st.sampled_from([30, 62.5, 97, 100]))
def test_anchors_agree_with_sorting_by_hand(proba, percentile):
    T = anchor_transition_matrix(proba, percentile=percentile)
    np.testing.assert_allclose(T, anchors_one_by_one(proba, percentile), rtol=1e-9)


@pytest.mark.parametrize("noise", [pair_noise(10, 0.4), symmetric_noise(10, 0.6)])
def test_anchors_recover_T_exactly_where_the_classes_are_separable(noise):
    """With "auto", also if many labels are flipped to a rare class."""
    for percentile in (None, "auto"):
        found = anchor_transition_matrix(noise[np.repeat(np.arange(10), 40)], percentile=percentile)
        np.testing.assert_allclose(found, noise, atol=1e-12)
    proba = noise[np.repeat(np.arange(10), [10] + 9 * [110])]
    assert proba.mean(axis=0)[0] > 0.03  # the rare class's mean probability hides that it is 1 % of the rows
    assert transition_error(noise, anchor_transition_matrix(proba, percentile=97)) > 0.05
    np.testing.assert_allclose(anchor_transition_matrix(proba, percentile="auto"), noise, atol=1e-12)


def test_a_percentile_ignores_outliers():
    proba = np.array([[0.99, 0.01]] + 50 * [[0.75, 0.25]] + 50 * [[0.25, 0.75]])
    np.testing.assert_allclose(anchor_transition_matrix(proba)[0], [0.99, 0.01])
    np.testing.assert_allclose(anchor_transition_matrix(proba, percentile="auto")[0], [0.75, 0.25])


# ---------------------------------------------------------------------------- counts, confusion and floors
@given(labels_of_every_class(20, 3), labels(20, 3), floats(0, 5))
def test_counts_are_counted(y, y_noisy, smoothing):
    counts = np.full((3, 3), smoothing)
    for i, j in zip(y, y_noisy, strict=True):
        counts[i, j] += 1
    np.testing.assert_allclose(
        count_transition_matrix(y, y_noisy, smoothing=smoothing, n_classes=3), counts / counts.sum(1, keepdims=True)
    )


def test_counts_need_rows_of_every_class_or_smoothing():
    with pytest.raises(ValueError, match=r"no samples of classes \[1\]"):
        count_transition_matrix([0, 0], [0, 1])
    np.testing.assert_allclose(count_transition_matrix([0, 0], [0, 1], smoothing=1), [[0.5, 0.5], [0.5, 0.5]])
    assert count_transition_matrix([0, 1], [0, 3], smoothing=1).shape == (4, 4)


@given(st.integers(2, 6).flatmap(lambda c: st.tuples(row_stochastic(15, c), labels(15, c))))
def test_confusion_counts_noisy_labels_by_probability(rows):
    proba, y = rows
    c = proba.shape[1]
    proba, y = np.concatenate([0.1 / c + 0.9 * np.eye(c), proba]), np.concatenate([np.arange(c), y])
    counts = np.zeros((c, c))
    for p, label in zip(proba, y, strict=True):
        counts[:, label] += p
    T = confusion_transition_matrix(proba, y)
    np.testing.assert_allclose(T, counts / counts.sum(1, keepdims=True), rtol=1e-9)
    with pytest.raises(ValueError, match="have probability 0"):
        confusion_transition_matrix([[1.0, 0.0]], [0])


@given(transition_matrices(5), floats(0, 0.19))
def test_a_floor_agrees_with_its_definition_and_is_reached_once(T, floor):
    floored, expected = floor_transition_matrix(T, floor), []
    for row in T:
        surplus = [max(p, floor) - floor for p in row]
        expected.append([floor + (1 - len(T) * floor) * s / sum(surplus) for s in surplus])
    np.testing.assert_allclose(floored, expected, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(floor_transition_matrix(floored, floor), floored, rtol=1e-7, atol=1e-12)
    np.testing.assert_array_less(np.abs(floored.sum(axis=1) - 1), 1e-14)
