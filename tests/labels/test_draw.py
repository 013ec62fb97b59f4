"""Verified samples that were not drawn at random: by their given label, or because their label looks wrong."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posteriors import simulated

from noisytransition import LabelNoiseModel
from noisytransition.labels._draw import is_chosen_by_suspicion, weights_of_draw, weights_of_labels
from noisytransition.noise_model._shares import prediction_powered
from noisytransition.transition import count_transition_matrix, transition_error

TWO = np.array([[0.95, 0.05], [0.2, 0.8]])


def cyclic_noise(c):
    """Each class has two wrong labels, of 0.2 and 0.1."""
    no_noise = np.eye(c)
    return 0.7 * no_noise + 0.2 * np.roll(no_noise, 1, axis=1) + 0.1 * np.roll(no_noise, 3, axis=1)


def drawn(rng, noisy, n, odds):
    """Verified samples; given labels of the upper half are drawn `odds` times as often."""
    weights = np.where(noisy >= (noisy.max() + 1) // 2, odds, 1.0)
    return rng.choice(len(noisy), n, replace=False, p=weights / weights.sum())


def quiet_fit(proba, noisy, y, rows, **given):
    verified = np.full(len(y), -1)
    verified[rows] = y[rows]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="T may be wrong")
        return LabelNoiseModel().fit(proba, noisy, y_verified=verified, **given)


# ---------------------------------------------------------------------------- tests of the draw
def test_random_draws_are_hardly_ever_taken_for_others():
    by_suspicion = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        c = int(rng.choice([2, 3, 10, 50]))
        proba, noisy = rng.dirichlet(np.full(c, 0.3), size=1000), rng.choice(c, 1000, p=rng.dirichlet(np.full(c, 2.0)))
        of, others = np.split(rng.permutation(1000), [int(rng.integers(5, 300))])
        by_suspicion += is_chosen_by_suspicion(proba[of], noisy[of], proba[others], noisy[others])
    assert by_suspicion == 0


def test_the_fewer_samples_the_closer_are_the_weights_to_one():
    """Ten times as many samples with the same shares contradict a draw at random more."""
    of_verified, of_all = np.array([30, 10, 10]), np.array([400, 400, 200])
    few, many, most = (np.abs(np.log(weights_of_labels(k * of_verified, of_all))) for k in (1, 10, 1000))
    assert (few < many).all()
    np.testing.assert_allclose(np.exp(most), np.exp(np.abs(np.log([2 / 3, 2, 1]))), atol=0.01)
    assert (weights_of_labels(np.array([21, 19, 20, 20, 20]), np.full(5, 200)) == 1).all()


def test_a_missing_given_label_has_the_weight_one():
    weights = weights_of_draw(None, np.array([0, 1, 1, -1]), np.array([4.0, 1.0]))
    np.testing.assert_allclose(weights, [2, 0.5, 0.5, 1])  # those of the others have the mean 1
    assert (weights_of_draw(None, np.full(5, -1), np.ones(2)) == 1).all()
    assert (weights_of_labels(np.zeros(3, int), np.array([4, 5, 6])) == 1).all()


# ---------------------------------------------------------------------------- T
@pytest.mark.parametrize(("T", "odds"), [(TWO, 0.1), (TWO, 10.0), (cyclic_noise(5), 10.0)])
def test_a_draw_by_label_changes_neither_T_nor_shares_nor_coverage(T, odds):
    found = {1.0: [], odds: []}
    for seed in range(6):
        proba, y, noisy = simulated(seed, T, n=2000, spread=3.0)
        for each, results in found.items():
            rows = drawn(np.random.default_rng(seed), noisy, 120, each)
            model = quiet_fit(proba, noisy, y, rows)
            assert "chosen" not in model.diagnostics_
            shares = model.noisy_class_counts_ / model.noisy_class_counts_.sum()
            of_rest = np.bincount(np.delete(y, rows)) / (len(y) - len(rows))
            low, high = model.transition_interval(0.9)
            missed = ((low > T) | (high < T)).mean()
            results.append((transition_error(T, model.transition_matrix_), np.abs(shares - of_rest).sum() / 2, missed))
    worse = np.mean(found[odds], axis=0) - np.mean(found[1.0], axis=0)
    assert (worse < 2 * np.std(found[1.0], axis=0) / 6**0.5 + 0.005).all()


def test_all_samples_of_a_given_label_may_be_verified():
    """No weights can represent a given label without remaining or without verified samples."""
    for verified_label in (0, 1):
        errors = []
        for seed in range(4):
            proba, y, noisy = simulated(seed, TWO, n=2000, spread=3.0)
            rows = np.flatnonzero(noisy == verified_label)
            rest = np.flatnonzero(noisy != verified_label)[: 40 * (seed % 2)]  # or none of the others
            model = quiet_fit(proba, noisy, y, np.concatenate([rows, rest]))
            errors.append(transition_error(count_transition_matrix(y, noisy), model.transition_matrix_))
        assert np.mean(errors) < 0.04


@pytest.mark.parametrize(("T", "at_random"), [(TWO, 40), (cyclic_noise(5), 0)], ids=["two", "five"])
def test_samples_chosen_as_suspicious_are_warned_of(T, at_random):
    errors, of_random = [], []
    for seed in range(3):
        proba, y, noisy = simulated(seed, T, n=2000, spread=3.0)
        proba = proba @ T  # a classifier that learns the noisy labels
        order = np.argsort(proba[np.arange(2000), noisy])
        model = quiet_fit(proba, noisy, y, np.unique(np.append(order[: 120 - at_random], np.arange(at_random))))
        assert "chosen" in model.diagnostics_
        errors.append(transition_error(T, model.transition_matrix_))
        of_random.append(transition_error(T, quiet_fit(proba, noisy, y, np.arange(120)).transition_matrix_))
    assert np.mean(errors) < 1.5 * np.mean(of_random) + 0.01


# ---------------------------------------------------------------------------- probabilities that are known
def test_missing_probabilities_and_ones_are_a_random_draw():
    proba, y, noisy = simulated(0, cyclic_noise(4), n=500)
    verified = np.where(np.arange(len(y)) % 10 == 0, y, -1)
    plain = LabelNoiseModel().fit(proba, noisy, y_verified=verified)
    for same in (np.where(verified < 0, -3.0, 1.0), [None] * len(y)):
        found = LabelNoiseModel().fit(proba, noisy, y_verified=verified, verified_probability=same)
        assert (found.transition_matrix_ == plain.transition_matrix_).all()
        assert found.out_of_fold_.drawn is None
    assert found.class_shares().equals(plain.class_shares())  # follow from the matrix and the draw


@given(st.integers(0, 1000), st.integers(2, 4))
@settings(max_examples=10, deadline=None)
def test_weighted_means_are_those_of_repeated_samples(seed, k):
    """Slow twin: a sample of weight 3 counts as three."""
    rng = np.random.default_rng(seed)
    f, of_verified, y = rng.random((500, k)), rng.random((40, k)), rng.integers(2, size=(40, k)).astype(float)
    weights = rng.integers(1, 4, size=40)
    found = prediction_powered(f, of_verified, y, weights=weights.astype(float))
    again = prediction_powered(f, of_verified, y, weights=5.0 * weights)
    np.testing.assert_allclose(found, again)  # weights are up to a factor
    np.testing.assert_allclose(
        prediction_powered(f * 0, of_verified * 0, y, weights=weights.astype(float)).share,
        np.repeat(y, weights, axis=0).mean(axis=0),
    )
    same = prediction_powered(f, of_verified, y, weights=np.ones(40))
    np.testing.assert_allclose(same.share, prediction_powered(f, of_verified, y).share)


@pytest.mark.parametrize("at_random", [True, False])
def test_samples_with_known_probabilities_neither_count_as_chosen_nor_hide_others(at_random):
    proba, y, noisy = simulated(0, cyclic_noise(4), n=1500)
    proba = proba @ cyclic_noise(4)
    of_given = proba[np.arange(len(y)), noisy]
    others = np.arange(80) if at_random else np.argsort(of_given)[:80]
    relative = np.where(of_given < 0.3, 5.0, 0.1)
    rows = np.random.default_rng(0).choice(len(y), 300, p=relative / relative.sum())
    relative[others] = np.nan
    model = quiet_fit(proba, noisy, y, np.append(rows, others), verified_probability=relative)
    assert ("chosen" in model.diagnostics_) == (not at_random)
