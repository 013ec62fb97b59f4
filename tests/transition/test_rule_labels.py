"""T of labels that a rule gives: against a twin by loops, where it is true and where it is not."""

import numpy as np
import pytest
from posteriors import labels_of
from scipy.special import softmax

from noisytransition.transition import _rule_labels as module
from noisytransition.transition import count_transition_matrix, em_transition_matrix, pair_noise, transition_error
from noisytransition.transition._rule_labels import labels_of_a_rule
from noisytransition.transition._temperature import fitted_temperature


def of_a_rule(seed=0, n=3000, n_clean=150, c=3):
    """Labels by the largest of some numbers that say a little of the class; the first rows are clean.

    Returns true labels, noisy ones, posteriors of a network that has learned the rule, those of one that has not.
    """
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n + n_clean, c))
    seen = logits / 2 + rng.normal(size=logits.shape)
    return (
        labels_of(softmax(logits, axis=1), rng),
        seen.argmax(axis=1),
        softmax(5 * seen, axis=1),
        softmax(logits, axis=1),
    )


def of_one_matrix(seed=0, n=3000, n_clean=150, c=3, rate=0.3):
    """The same with one T for all rows; the first network knows the posterior, the second one less of it."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n + n_clean, c))
    proba = softmax(logits, axis=1)
    y = labels_of(proba, rng)
    return y, labels_of(pair_noise(c, rate)[y], rng), proba, softmax(logits + rng.normal(size=logits.shape), axis=1)


def estimate(rows, T, n_clean=150, **params):
    y, noisy, proba, reference = rows
    clean, rest = slice(n_clean), slice(n_clean, None)
    others = {"reference": reference[rest], "reference_meta": reference[clean]} | params
    return labels_of_a_rule(proba[rest], noisy[rest], proba[clean], y[clean], T=T, **others)


def counted(rows, n_clean=150):
    y, noisy, *_ = rows
    return count_transition_matrix(y[n_clean:], noisy[n_clean:])


@pytest.fixture
def always(monkeypatch):
    """Take the estimate whatever the labels say."""
    monkeypatch.setattr(module, "_LEAST_GAIN", -np.inf)
    monkeypatch.setattr(module, "_SURE", -np.inf)
    monkeypatch.setattr(module, "_ALIKE", np.inf)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", [of_a_rule, of_one_matrix])
def test_estimate_by_loops(make, weighted, always):
    y, noisy, proba, reference = rows = make(n=60, n_clean=20)
    T, n = pair_noise(3, 0.2), 20
    weights = np.linspace(0.5, 1.5, n) if weighted else np.ones(n)
    found = estimate(rows, T, n, **{"weights_meta": weights} if weighted else {})
    scale = np.diag(fitted_temperature(reference[:n], y[:n], weights).matrix)[0]
    other = [softmax(scale * np.log(p)) for p in reference]
    S = em_transition_matrix(other[n:], noisy[n:], prior=None)
    of_noisy = [np.log(proba[k] @ T[:, noisy[k]]) - np.log(other[k] @ S[:, noisy[k]]) for k in range(n, len(y))]
    of_clean = [weights[k] * (np.log(proba[k, y[k]]) - np.log(other[k][y[k]])) for k in range(n)]
    assert found.excess == pytest.approx(np.mean(of_noisy) - np.mean(of_clean), rel=1e-6)
    for i in range(3):
        mine = [k for k in range(n) if y[k] == i]
        of_class = sum(proba[k] @ T for k in mine) / len(mine)
        np.testing.assert_allclose(found.transition_matrix[i], of_class)
        near = (len(mine) * of_class + 0.5) / (len(mine) + 1)
        np.testing.assert_allclose(found.std[i] ** 2, near * (1 - near) / len(mine))
        np.testing.assert_allclose(found.counts[i], sum(other[n:])[i] * of_class)
    np.testing.assert_allclose(np.vstack([found.proba_meta, found.proba]), other)


@pytest.mark.parametrize("seed", range(5))
def test_a_rule_is_found(seed):
    rows = of_a_rule(seed)
    found, truth = estimate(rows, np.eye(3)), counted(rows)
    assert found.excess > 0.3
    assert transition_error(truth, found.transition_matrix) < 0.2 < transition_error(truth, np.eye(3)) / 2


def test_intervals_hold_as_many_entries_as_they_say():
    covered = []
    for seed in range(40):
        rows = of_a_rule(seed)
        (low, high), truth = estimate(rows, np.eye(3)).error_bars().interval(0.9), counted(rows)
        covered.append(((low <= truth) & (truth <= high)).mean())
    assert 0.85 < np.mean(covered) < 0.97


def test_one_matrix_is_left_alone():
    assert all(estimate(of_one_matrix(seed), pair_noise(3, 0.3)) is None for seed in range(20))


def test_clean_rows_from_elsewhere_leave_T(monkeypatch):
    y, noisy, proba, _ = of_one_matrix()
    clean = np.arange(len(y)) < 150
    wrong = clean & (np.random.default_rng(0).random(len(y)) < 0.15)  # where the first network is surely wrong
    first = np.where(wrong[:, None], softmax(4 * np.roll(np.eye(3)[y], 1, axis=1), axis=1), proba)
    second = np.where(clean[:, None], proba, proba**0.1)  # at home with the clean rows
    rows, T = (y, noisy, first, second / second.sum(axis=1, keepdims=True)), pair_noise(3, 0.3)
    assert estimate(rows, T) is None
    monkeypatch.setattr(module, "_ALIKE", np.inf)
    assert estimate(rows, T) is not None


def test_a_network_that_knows_the_true_labels_better_may_predict_noisy_ones_better(always):
    rows = of_one_matrix(n=20_000, n_clean=20_000)
    assert estimate(rows, pair_noise(3, 0.3), 20_000).excess < -0.05


@pytest.mark.parametrize(("name", "most"), [("_LEAST_GAIN", 1.0), ("_SURE", 30.0)])
def test_a_small_or_an_uncertain_gain_is_left_alone(name, most, monkeypatch):
    assert estimate(of_a_rule(), np.eye(3)) is not None
    monkeypatch.setattr(module, name, most)
    assert estimate(of_a_rule(), np.eye(3)) is None


def test_permuting_the_classes_permutes_everything():
    order, place = np.array([2, 0, 1]), np.array([1, 2, 0])
    y, noisy, proba, reference = rows = of_a_rule()
    T = pair_noise(3, 0.1)
    plain, moved = (
        estimate(rows, T),
        estimate((place[y], place[noisy], proba[:, order], reference[:, order]), T[np.ix_(order, order)]),
    )
    np.testing.assert_allclose(moved.transition_matrix, plain.transition_matrix[np.ix_(order, order)])
    np.testing.assert_allclose(moved.counts, plain.counts[np.ix_(order, order)], rtol=1e-6)
    assert moved.excess == pytest.approx(plain.excess, rel=1e-6)


def test_a_class_without_clean_rows_keeps_its_row():
    y, noisy, proba, reference = of_a_rule(c=4)
    kept = (y != 3) | (np.arange(len(y)) >= 150)
    rows, T = tuple(a[kept] for a in (y, noisy, proba, reference)), pair_noise(4, 0.1)
    found = estimate(rows, T, 150 - (~kept).sum())
    np.testing.assert_array_equal(found.transition_matrix[3], T[3])
    assert (found.std[3] == 0.5).all()


def test_known_pairs_are_counted_too():
    rows, known = of_a_rule(), np.arange(9.0).reshape(3, 3)
    plain, found = estimate(rows, np.eye(3)), estimate(rows, np.eye(3), counts=known)
    np.testing.assert_allclose(found.counts, plain.counts + known)
    np.testing.assert_array_equal(found.transition_matrix, plain.transition_matrix)


def test_many_classes_have_one_matrix():
    assert estimate(of_a_rule(c=21, n=300), np.eye(21)) is None
