"""How often a clean row counts: as the row repeated, and by the loss of clean rows that are held out."""

import numpy as np
import pytest
from posteriors import simulated

from noisytransition.transition import em_transition_matrix, pair_noise
from noisytransition.transition._calibration import CalibratedLikelihood
from noisytransition.transition._clean_weight import HeldOutLoss

EVEN = np.full((3, 3), 1 / 3)


def permutations(rng, n):
    """Probabilities that vary alike in every row, so that repeated rows leave the prior of the map as it is."""
    return rng.permuted(np.tile([0.75, 0.2, 0.05], (n, 1)), axis=1)


def rows(seed=0, n=400, n_clean=60):
    rng = np.random.default_rng(seed)
    proba, clean = permutations(rng, n), permutations(rng, n_clean)
    y = np.array([rng.choice(3, p=p @ pair_noise(3, 0.3)) for p in proba])
    return proba, y, clean, np.array([rng.choice(3, p=p**2 / (p**2).sum()) for p in clean])


def held_out_rows():
    """Rows with the posteriors that they come from, and 30 clean ones. No flip is so rare that T ends at 0."""
    T = np.array([[0.6, 0.25, 0.15], [0.2, 0.6, 0.2], [0.15, 0.25, 0.6]])
    proba, y, noisy = simulated(0, T, n=1530, spread=3.0)
    return proba[30:], noisy[30:], proba[:30], y[:30]


def held_out_loss(proba, y, clean, y_clean, folds, *, init=EVEN, known=0.0):
    """Loss of each clean row, as a function of the weight."""
    likelihood = CalibratedLikelihood(proba, y, clean, y_clean, np.full(init.shape, known))
    return HeldOutLoss(likelihood, init, clean, y_clean, folds)


@pytest.mark.parametrize("k", [2, 3])
def test_a_weight_is_a_row_repeated(k):
    proba, y, clean, y_clean = rows()
    weighted, repeated = (
        em_transition_matrix(proba, y, proba_meta=p, y_meta=labels, full_output=True, **params)
        for p, labels, params in (
            (clean, y_clean, {"meta_weight": k}),
            (np.repeat(clean, k, axis=0), np.repeat(y_clean, k), {}),
        )
    )
    once = em_transition_matrix(proba, y, proba_meta=clean, y_meta=y_clean)
    np.testing.assert_allclose(weighted.transition_matrix, repeated.transition_matrix, atol=5e-4)
    assert np.abs(weighted.transition_matrix - once).max() > 5e-3
    np.testing.assert_allclose(weighted.calibration.matrix, repeated.calibration.matrix, atol=0.02)


@pytest.mark.parametrize("weight", [0, -1.0, np.nan, np.inf, "2", None, 1j])
def test_a_weight_is_a_number_above_0(weight):
    proba, y, clean, y_clean = rows(n=20, n_clean=9)
    with pytest.raises(ValueError, match=r"meta_weight=.*give a finite number above 0"):
        em_transition_matrix(proba, y, proba_meta=clean, y_meta=y_clean, meta_weight=weight)


@pytest.mark.parametrize("weight", [1.0, 7.0])
@pytest.mark.parametrize("known", [0.0, 2.0])
def test_held_out_loss_by_fits_from_scratch(weight, known):
    """Each fold's map from the start, to the end of the maximisation."""
    proba, y, clean, y_clean = held_out_rows()
    folds, pairs, expected = np.arange(30) % 3, np.full((3, 3), known), np.empty(30)
    for k in range(3):
        inside = folds != k
        likelihood = CalibratedLikelihood(proba, y, clean[inside], y_clean[inside], pairs, weight)
        for _ in range(20):  # each goes on from the one before
            found = likelihood.maximise(EVEN, np.zeros((3, 3)), 500, 0.0)
        calibrated = found.calibration(clean[~inside])
        expected[~inside] = -np.log(calibrated[np.arange(10), y_clean[~inside]])
    loss = held_out_loss(proba, y, clean, y_clean, folds, known=known)(weight)
    np.testing.assert_allclose(loss, expected, atol=0.02)
    assert abs(loss.mean() - expected.mean()) < 2e-3


def test_the_loss_of_a_row_is_that_of_a_map_that_has_not_seen_it():
    """Another label of a held-out row changes the row's own loss, and the map of the other folds' rows."""
    proba, y, clean, y_clean = held_out_rows()
    folds = np.arange(30) % 3
    loss = held_out_loss(proba, y, clean, y_clean, folds)(5.0)
    other = np.where(np.arange(30) == 0, (y_clean + 1) % 3, y_clean)
    moved = np.abs(held_out_loss(proba, y, clean, other, folds)(5.0) - loss)
    beside = (folds == 0) & (np.arange(30) > 0)
    assert moved[beside].max() < 0.02
    assert moved[folds != 0].max() > 0.05
    assert moved[0] > 0.05


def test_the_loss_at_a_weight_does_not_depend_on_the_weights_before():
    proba, y, clean, y_clean = held_out_rows()
    after, fresh = (held_out_loss(proba, y, clean, y_clean, np.arange(30) % 3) for _ in range(2))
    after(1.0)
    np.testing.assert_array_equal(after(7.0), fresh(7.0))


def many_classes(c=24):
    """More classes than a map with a matrix has: its maximisation ends before the maximum."""
    proba, y, noisy = simulated(0, pair_noise(c, 0.3), n=8 * c + 400, spread=2.0)
    return proba[8 * c :], noisy[8 * c :], proba[: 8 * c], y[: 8 * c]


@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_maps_do_not_depend_on_the_rows_that_are_held_out(weight, monkeypatch):
    proba, y, clean, y_clean = many_classes()
    folds, maps = np.arange(len(y_clean)) % 3, []
    maximise = CalibratedLikelihood.maximise

    def recorded(likelihood, *args):
        found = maximise(likelihood, *args)
        maps.append(found.calibration)
        return found

    monkeypatch.setattr(CalibratedLikelihood, "maximise", recorded)
    garbage = np.where(folds == 1, np.random.default_rng(0).integers(24, size=len(folds)), y_clean)
    for labels in (y_clean, garbage):
        held_out_loss(proba, y, clean, labels, folds, init=pair_noise(24, 0.1))(weight)
    assert len(maps) == 6
    for kept, (one, other) in zip((False, True, False), zip(maps[:3], maps[3:], strict=True), strict=True):
        assert np.array_equal(one.bias, other.bias) == kept
        assert np.array_equal(one.matrix, other.matrix) == kept


def test_maps_are_sought_from_where_that_of_T_is_and_in_as_many_steps():
    proba, y, clean, y_clean = many_classes()
    folds, init = np.arange(len(y_clean)) % 2, np.eye(24)
    of_weight = held_out_loss(proba, y, clean, y_clean, folds, init=init)
    of_weight(7.0)  # leaves no trace: the search begins at init again
    loss = of_weight(2.0)
    for k in range(2):
        params = {"proba_meta": clean[folds != k], "y_meta": y_clean[folds != k], "meta_weight": 2.0}
        found = em_transition_matrix(proba, y, init=init, prior=None, full_output=True, **params)
        calibrated = found.calibration(clean[folds == k])
        expected = -np.log(calibrated[np.arange(len(calibrated)), y_clean[folds == k]])
        np.testing.assert_allclose(loss[folds == k], expected, rtol=1e-12)
