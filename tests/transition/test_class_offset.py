"""Clean rows that are drawn class by class: their offset is found, and T and shares with it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from posteriors import labels_of
from scipy.special import softmax
from scipy.stats import chi2
from strategies import row_stochastic

from noisytransition.transition import flip_labels, pair_noise, transition_error
from noisytransition.transition._calibration import CalibratedLikelihood
from noisytransition.transition._class_offset import (
    class_offset,
    evidence_of_drawing_by_class,
    seem_drawn_by_class,
    tilted,
)
from noisytransition.transition._em import first_maximum

SHARES = np.array([0.75, 0.2, 0.05])
T3 = pair_noise(3, 0.3)


def problem(n_clean=(60, 60, 60), seed=0, n=4000, shares=SHARES):
    """Posteriors that are right for the noisy rows; clean rows drawn class by class, or at random (a number)."""
    rng, c = np.random.default_rng(seed), len(shares)
    y = rng.choice(c, size=5 * n, p=shares)
    proba = softmax(2 * (np.eye(c)[y] + rng.normal(size=(5 * n, c)) / 2**0.5) * 2 + np.log(shares), axis=1)
    y, order = labels_of(proba, rng), rng.permutation(5 * n)
    if np.ndim(n_clean):
        clean = np.concatenate([order[y[order] == k][:m] for k, m in enumerate(n_clean)])
    else:
        clean = order[:n_clean]
    rest = np.setdiff1d(order, clean)[:n]
    noisy = flip_labels(y, pair_noise(c, 0.3), random_state=seed + 1000)
    return proba[rest], noisy[rest], proba[clean], y[clean], y[rest]


def shares_of(rows):
    return np.bincount(rows[-1]) / len(rows[-1])


def offset_of(rows):
    proba, noisy, proba_meta, y_meta, _ = rows
    c = proba.shape[1]
    likelihood = CalibratedLikelihood(proba, noisy, proba_meta, y_meta, np.zeros((c, c)))
    n_clean = np.bincount(y_meta, minlength=c)
    offset, calibration = class_offset(likelihood, np.full((c, c), 1 / c), n_clean)
    return offset, (n_clean, calibration(proba), calibration(proba_meta))


def maximum(rows, **params):
    proba, noisy, proba_meta, y_meta, _ = rows
    return first_maximum(proba, noisy, proba_meta=proba_meta, y_meta=y_meta, **params).settled()


@pytest.mark.parametrize("n_clean", [(60, 60, 60), (90, 60, 30), (20, 20, 60)])
def test_the_offset_is_found_and_T_with_it(n_clean):
    rows = problem(n_clean)
    shares = shares_of(rows)
    truth = np.log(np.array(n_clean) / sum(n_clean) / shares)
    offset, given = offset_of(rows)
    np.testing.assert_array_equal(given[0], n_clean)
    np.testing.assert_allclose(offset, truth, atol=0.25)
    assert evidence_of_drawing_by_class(offset, *given) > 1
    with_offset, without = maximum(rows, meta_offset=offset), maximum(rows)
    errors = [transition_error(T3, found.transition_matrix) for found in (with_offset, without)]
    assert errors[0] < min(0.1, errors[1] + 0.01)
    found = with_offset.counts.sum(axis=1) / with_offset.counts.sum()
    np.testing.assert_allclose(found, shares, atol=0.02)


def test_without_the_offset_a_rare_class_has_too_large_a_share():
    rows = problem((100,) * 3, n=1000)
    shares = [maximum(rows, meta_offset=offset).counts.sum(axis=1)[2] / 1000 for offset in (0.0, offset_of(rows)[0])]
    assert shares[0] > 1.5 * shares_of(rows)[2]
    assert shares[1] == pytest.approx(shares_of(rows)[2], rel=0.2)


def test_clean_rows_that_are_drawn_at_random_have_none():
    found = [offset_of(problem(180, seed, n=1500)) for seed in range(20)]
    assert not any(evidence_of_drawing_by_class(offset, *given) > 1 for offset, given in found)
    assert np.mean([abs(offset).max() for offset, _ in found]) < 0.5


def test_equal_shares_of_equal_classes_have_none():
    found = [offset_of(problem((60,) * 3, seed, n=1500, shares=np.full(3, 1 / 3))) for seed in range(10)]
    assert not any(evidence_of_drawing_by_class(offset, *given) > 1 for offset, given in found)
    assert max(abs(offset).max() for offset, _ in found) < 0.3


def test_permuting_the_classes_permutes_the_offset():
    proba, noisy, proba_meta, y_meta, y = problem(n=1500)
    order = np.array([2, 0, 1])
    place = np.argsort(order)
    moved = offset_of((proba[:, order], place[noisy], proba_meta[:, order], place[y_meta], place[y]))[0]
    np.testing.assert_allclose(moved, offset_of((proba, noisy, proba_meta, y_meta, y))[0][order], atol=0.05)


@pytest.mark.parametrize(
    ("n_clean", "shares"),
    [([50, 50], [0.9, 0.1]), ([50, 50], [0.55, 0.45]), ([9, 1], [0.5] * 2), ([30, 30], [0.75, 0.25])],
)
@pytest.mark.parametrize("at_random", [0.0, 0.3, 1.0])
def test_it_is_decided_as_by_loops(n_clean, shares, at_random):
    """Clean rows that look as if this part of them was drawn at random."""
    rng, n_clean, shares = np.random.default_rng(0), np.array(n_clean), np.array(shares)
    r, n = n_clean / n_clean.sum(), n_clean.sum()
    of_both = (2000, shares[1]), (n, (1 - at_random) * r[1] + at_random * shares[1])
    logits = [4.0 * (rng.random(m) < share) - 2 + rng.normal(size=m) for m, share in of_both]
    proba, proba_meta = (softmax(np.column_stack([0 * z, z]), axis=1) for z in logits)
    statistic = sum((n_clean[k] - n * shares[k]) ** 2 / (n * shares[k]) for k in range(2))
    p = proba[:, 1]
    of_class = [np.average(p, weights=weights) for weights in (1 - p, p)]
    distances = [proba_meta[:, 1].mean() - expected for expected in (p.mean(), r[0] * of_class[0] + r[1] * of_class[1])]
    gain = (distances[0] ** 2 - distances[1] ** 2) / 2 / (p.var(ddof=1) * (1 / n + 1 / 2000))
    found = evidence_of_drawing_by_class(np.log(r / shares), n_clean, proba, proba_meta)
    assert found == pytest.approx(gain if chi2.sf(statistic, 1) < 1e-3 else -np.inf)


def test_shares_that_wrong_labels_alone_speak_for_are_not_believed():
    """Labels of a rule: a class seems rare, and clean rows look as the noisy ones do."""
    rng, given = np.random.default_rng(0), np.log([0.5 / 0.8, 0.5 / 0.2])
    alike = softmax(3 * rng.normal(size=(1200, 2)) + np.log([0.9, 0.1]), axis=1)
    assert evidence_of_drawing_by_class(given, np.array([100, 100]), alike[200:], alike[:200]) < -1


@pytest.mark.parametrize(
    ("y", "c", "seem"),
    [([0, 0, 1, 1], 2, True), ([0, 1], 2, False), ([0, 0, 1, 1], 3, False), ([0, 0, 1, 1, 1], 2, False)],
)
def test_equally_many_clean_rows_seem_drawn_by_class(y, c, seem):
    assert seem_drawn_by_class(np.array(y), c) is seem
    assert not seem_drawn_by_class(np.repeat(np.arange(21), 2), 21)


@given(row_stochastic(5, 3, least=0.001), st.lists(st.floats(-4, 4), min_size=3, max_size=3))
def test_tilted_by_loops(proba, offset):
    found = tilted(proba, np.array(offset))
    for row, expected in zip(found, proba, strict=True):
        weighed = [p * np.exp(o) for p, o in zip(expected, offset, strict=True)]
        np.testing.assert_allclose(row, np.array(weighed) / sum(weighed))
    np.testing.assert_allclose(tilted(found, -np.array(offset)), proba, atol=1e-9)
    assert tilted(proba, np.zeros(3)) is proba
