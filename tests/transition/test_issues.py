"""Ranking of labels by the posterior that they are right."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisytransition.transition import (
    find_label_issues,
    flip_labels,
    label_posterior,
    label_quality,
    pair_noise,
    relabel,
    symmetric_noise,
)

seeds = st.integers(0, 10_000)


def drawn(seed, n=30, c=4):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(c), size=n), rng.integers(c, size=n), rng.dirichlet(np.full(c, 0.5), size=c)


@given(seeds, st.floats(0, 1))
def test_issues_agree_with_bayes_rule_row_by_row(seed, threshold):
    proba, y, T = drawn(seed)
    quality = [p[j] * T[j, j] / sum(p[k] * T[k, j] for k in range(4)) for p, j in zip(proba, y, strict=True)]
    np.testing.assert_allclose(label_quality(proba, y, T), quality)
    found = find_label_issues(proba, y, T, threshold=threshold)
    assert found.dtype == np.intp
    assert set(found) == {n for n, q in enumerate(quality) if q < threshold}
    assert (np.diff(np.array(quality)[found]) >= -1e-12).all()


@given(seeds, st.floats(0.5, 1))
def test_relabelled_are_the_rows_whose_true_class_is_probable_enough(seed, threshold):
    proba, y, T = drawn(seed)
    before = y.copy()
    labels = relabel(proba, y, T, threshold=threshold)
    posterior = label_posterior(proba, y, T)
    for n, (label, row) in enumerate(zip(labels, posterior, strict=True)):
        assert label == (row.argmax() if row.max() >= threshold else y[n])
    np.testing.assert_array_equal(y, before)


def test_a_threshold_of_zero_relabels_all_and_finds_none():
    proba, y, T = drawn(0)
    np.testing.assert_array_equal(relabel(proba, y, T, threshold=0), label_posterior(proba, y, T).argmax(axis=1))
    assert find_label_issues(proba, y, T, threshold=0).size == 0
    np.testing.assert_array_equal(
        find_label_issues(proba, y, T, threshold=1), np.argsort(label_quality(proba, y, T), kind="stable")
    )


@given(seeds, st.permutations(range(4)))
def test_permuting_the_classes_changes_no_ranking(seed, order):
    proba, y, T = drawn(seed)
    order = np.array(order)
    permuted = proba[:, order], np.argsort(order)[y], T[np.ix_(order, order)]
    np.testing.assert_array_equal(find_label_issues(*permuted), find_label_issues(proba, y, T))
    np.testing.assert_array_equal(order[relabel(*permuted)], relabel(proba, y, T))


@given(seeds)
def test_without_noise_no_label_is_doubted(seed):
    proba, y, _ = drawn(seed)
    assert find_label_issues(proba, y, np.eye(4), threshold=1).size == 0
    np.testing.assert_array_equal(relabel(proba, y, np.eye(4)), y)


@given(seeds, st.floats(0.05, 0.7))
def test_under_symmetric_noise_the_ranking_is_that_of_the_probability_alone(seed, rate):
    proba, y, _ = drawn(seed)
    own = proba[np.arange(len(y)), y]
    ranking = find_label_issues(proba, y, symmetric_noise(4, rate), threshold=1)
    np.testing.assert_array_equal(ranking, np.argsort(own, kind="stable"))


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
    y = (proba.cumsum(axis=1) < rng.random((40_000, 1))).sum(axis=1).clip(max=3)
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
        function(*drawn(0), threshold=threshold)


@pytest.mark.parametrize("function", [label_quality, find_label_issues, relabel])
def test_what_does_not_fit(function):
    proba, y, T = drawn(0)
    with pytest.raises(ValueError, match="y_noisy has 29 entries for 30 rows"):
        function(proba, y[1:], T)
    with pytest.raises(ValueError, match="T has 3 rows"):
        function(proba, y, np.eye(3))
    assert len(function(proba[:0], y[:0], T)) == 0
