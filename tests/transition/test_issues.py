"""Ranking of labels by the posterior that they are right."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from posteriors import labels_of
from strategies import binary_fractions, floats, noisy_rows, permutations, rows_with_labels

from noisytransition.transition import (
    _checks,
    find_label_issues,
    flip_labels,
    label_posterior,
    label_quality,
    pair_noise,
    relabel,
    symmetric_noise,
)


def quality_by_bayes_rule(p, label, T):
    """Of one row; where p and T rule the label out, p alone counts."""
    joint = [p[k] * T[k, label] for k in range(len(T))]
    return joint[label] / sum(joint) if any(joint) else p[label]


@given(noisy_rows(), floats(0, 1))
def test_issues_agree_with_bayes_rule_row_by_row(rows, threshold):
    proba, y, T = rows
    quality = label_quality(proba, y, T)
    np.testing.assert_allclose(quality, [quality_by_bayes_rule(*row, T) for row in zip(proba, y, strict=True)])
    found = find_label_issues(proba, y, T, threshold=threshold)
    assert found.dtype == np.intp
    doubtful = [n for n, q in enumerate(quality) if q < threshold]
    assert found.tolist() == sorted(doubtful, key=lambda n: quality[n])


@given(noisy_rows(), floats(0.5, 1))
def test_relabelled_are_the_rows_whose_true_class_is_probable_enough(rows, threshold):
    proba, y, T = rows
    before = y.copy()
    labels = relabel(proba, y, T, threshold=threshold)
    posterior = label_posterior(proba, y, T)
    for n, (label, row) in enumerate(zip(labels, posterior, strict=True)):
        assert label == (row.argmax() if row.max() >= threshold else y[n])
    np.testing.assert_array_equal(y, before)


@given(noisy_rows())
def test_a_threshold_of_zero_relabels_all_and_finds_none(rows):
    proba, y, T = rows
    np.testing.assert_array_equal(relabel(proba, y, T, threshold=0), label_posterior(proba, y, T).argmax(axis=1))
    assert find_label_issues(proba, y, T, threshold=0).size == 0
    quality = label_quality(proba, y, T)
    order = np.argsort(quality, kind="stable")
    np.testing.assert_array_equal(find_label_issues(proba, y, T, threshold=1), order[quality[order] < 1])


@given(noisy_rows(4, rows=binary_fractions), permutations(4))
def test_permuting_the_classes_changes_no_ranking(rows, order):
    proba, y, T = rows
    permuted = proba[:, order], np.argsort(order)[y], T[np.ix_(order, order)]
    np.testing.assert_array_equal(find_label_issues(*permuted), find_label_issues(proba, y, T))
    np.testing.assert_array_equal(order[relabel(*permuted)], relabel(proba, y, T))


@given(rows_with_labels(4))
def test_without_noise_no_label_is_doubted_that_has_a_probability(rows):
    proba, y = rows
    possible = proba[np.arange(len(y)), y] > 0
    np.testing.assert_array_equal(find_label_issues(proba, y, np.eye(4), threshold=1), np.flatnonzero(~possible))
    np.testing.assert_array_equal(relabel(proba, y, np.eye(4))[possible], y[possible])


@given(noisy_rows(4, rows=binary_fractions), st.integers(1, 14))
def test_under_symmetric_noise_the_ranking_is_that_of_the_probability_alone(rows, n):
    """Of labels that are not certain."""
    proba, y, _ = rows
    own = proba[np.arange(len(y)), y]
    ranking = find_label_issues(proba, y, symmetric_noise(4, 3 * n / 64), threshold=1)
    order = np.argsort(own, kind="stable")
    np.testing.assert_array_equal(ranking, order[own[order] < 1])


def test_labels_that_no_class_is_mistaken_for_are_trusted():
    """Pair noise alone: a flip to the next class is likely, one to another class is not."""
    T = pair_noise(3, 0.45)
    proba = [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]]
    # row 0: is it a flipped 2?  row 1: is it a flipped 0?
    np.testing.assert_allclose(label_quality(proba, [0, 1, 1], T)[:2], [0.22 / 0.355, 0.22 / 0.355])
    assert find_label_issues([[0.9, 0.1, 0.0], [0.0, 0.1, 0.9]], [1, 1], T).tolist() == [0]


def test_quality_is_the_share_of_right_labels():
    rng, T = np.random.default_rng(0), pair_noise(4, 0.4)
    proba = rng.dirichlet(np.full(4, 0.4), size=40_000)
    y = labels_of(proba, rng)
    noisy = flip_labels(y, T, random_state=0)
    quality = label_quality(proba, noisy, T)
    for low in (0.0, 0.25, 0.5, 0.75):
        part = (quality >= low) & (quality < low + 0.25)
        assert (y == noisy)[part].mean() == pytest.approx(quality[part].mean(), abs=0.02)
    changed = relabel(proba, noisy, T, threshold=0.8)
    assert (changed == y).mean() > (noisy == y).mean() + 0.2


@pytest.mark.parametrize("function", [find_label_issues, relabel])
@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan")])
def test_thresholds_are_probabilities(function, threshold):
    with pytest.raises(ValueError, match=r"threshold=.*between 0 and 1"):
        function([[0.5, 0.5]], [0], np.eye(2), threshold=threshold)


@pytest.mark.parametrize("function", [label_quality, find_label_issues, relabel])
def test_what_does_not_fit(function):
    proba, y, T = np.full((30, 4), 0.25), np.arange(30) % 4, pair_noise(4, 0.4)
    with pytest.raises(ValueError, match="y_noisy has 29 entries for 30 rows"):
        function(proba, y[1:], T)
    with pytest.raises(ValueError, match="T has 3 rows"):
        function(proba, y, np.eye(3))
    assert len(function(proba[:0], y[:0], T)) == 0


# ---------------------------------------------------------------------------- memory
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_of_rows_give_the_bits_of_all_at_once(order, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    proba = np.asarray(rng.dirichlet(np.ones(4), 101), dtype=dtype, order=order)
    y, T = rng.integers(4, size=101), symmetric_noise(4, 0.3)
    functions = label_posterior, label_quality, find_label_issues, partial(relabel, threshold=0.6)
    whole = [function(proba, y, T) for function in functions]
    monkeypatch.setattr(_checks, "_BLOCK", 40)
    for function, expected in zip(functions, whole, strict=True):
        np.testing.assert_array_equal(function(proba, y, T), expected)


@pytest.mark.parametrize("function", [label_quality, find_label_issues, relabel])
def test_no_copy_of_the_posteriors_is_made(function):
    proba, y = np.full((80_000, 100), 0.01, dtype=np.float32), np.zeros(80_000, dtype=int)
    tracemalloc.start()
    function(proba, y, symmetric_noise(100, 0.2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * proba.nbytes


@pytest.mark.parametrize(
    ("wrong", "message"),
    [(np.nan, r"proba\[70, 1\] = nan"), (-0.5, r"proba\[70, 1\] = -0.5"), (0.9, "row 70 of proba sums to 1.4")],
)
def test_errors_name_the_row_of_a_later_block(wrong, message, monkeypatch):
    monkeypatch.setattr(_checks, "_BLOCK", 40)
    proba = np.full((90, 2), 0.5)
    proba[70, 1] = wrong
    with pytest.raises(ValueError, match=message):
        label_quality(proba, np.zeros(90, dtype=int), np.eye(2))
