import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posteriors import simulated
from scipy.special import softmax
from strategies import noisy_rows, row_stochastic

from noisytransition.likelihood import _calibration, em_transition_matrix, transition_uncertainty
from noisytransition.likelihood import _uncertainty as module
from noisytransition.likelihood._calibration import CalibratedLikelihood
from noisytransition.likelihood._uncertainty import leave_one_out
from noisytransition.transition import pair_noise, symmetric_noise

T3 = np.array([[0.7, 0.3, 0.0], [0.05, 0.8, 0.15], [0.1, 0.1, 0.8]])


def rows(seed=0, n=300, n_clean=40, T=T3, sharpness=2.0):
    """Posteriors that are right, and labels drawn from them."""
    proba, y, noisy = simulated(seed, T, n=n + n_clean, spread=sharpness)
    return proba[:n], noisy[:n], proba[n:], y[n:]


# ---------------------------------------------------------------------------- without each clean sample
@pytest.mark.parametrize(("weight", "c"), [(1.0, 3), (8.0, 3), (8.0, 2)])
def test_leave_one_out_is_that_of_refits(weight, c):
    """Refit without each clean sample: the scores differ less from these than from those of the fit to all."""
    proba, y, of_clean, clean = rows(3, n=400, n_clean=30, T=pair_noise(c, 0.3))
    weights = np.full(30, weight)

    def fitted(kept):
        none = np.zeros((c, c))
        likelihood = CalibratedLikelihood(proba**1.5, y, of_clean[kept] ** 1.5, clean[kept], none, weights[kept])
        for _ in range(3):  # the first call is short
            found = likelihood.maximise(np.full((c, c), 1 / c), none)
        return found

    best = fitted(np.arange(30))
    exact = []
    for i in range(30):
        without = fitted(np.delete(np.arange(30), i)).calibration
        exact.append(np.log(without(of_clean[[i]] ** 1.5 / (of_clean[[i]] ** 1.5).sum())[0, clean[i]]))
    calibrated = [best.calibration(p**1.5 / (p**1.5).sum(axis=1, keepdims=True)) for p in (proba, of_clean)]
    T, none = best.transition_matrix, np.zeros((c, c))
    left_out = leave_one_out(calibrated[0], y, T, calibrated[1], clean, weights, none)
    scores = np.log(left_out[np.arange(30), clean])
    of_all = np.log(calibrated[1][np.arange(30), clean])
    assert abs(scores.sum() - np.sum(exact)) < 0.5 * abs(of_all.sum() - np.sum(exact))
    assert np.corrcoef(scores - of_all, exact - of_all)[0, 1] > 0.9


# ---------------------------------------------------------------------------- the twin
def numeric_scores(log_likelihood, theta, step=1e-6):
    ahead = [log_likelihood(theta + step * e) - log_likelihood(theta - step * e) for e in np.eye(len(theta))]
    return np.array(ahead).T / (2 * step)  # a row for each sample


def twin_covariance(proba, y, T, proba_clean, full):
    """Covariance of the free entries: scores of all rows by finite differences of the joint likelihood."""
    c = len(T)
    free = [(i, j) for i in range(c) for j in range(c) if j != T[i].argmax()]
    n_map = 1 + c + c * c if full else 1 + c

    def mapped(p, theta):
        u = np.log(p)
        u = u - u.mean(axis=1, keepdims=True)
        B = theta[1 + c : n_map].reshape(c, c) if full else np.zeros((c, c))
        return softmax(np.exp(theta[0]) * u + u @ B.T + theta[1 : 1 + c], axis=1)

    def with_T(theta):
        M = T.copy()
        for (i, j), value in zip(free, theta[n_map:], strict=True):
            M[i, j] += value
            M[i, T[i].argmax()] -= value
        return M

    start = np.zeros(n_map + len(free))
    scores = numeric_scores(lambda t: np.log((mapped(proba, t) * with_T(t).T[y]).sum(axis=1)), start)
    information = scores.T @ scores
    for label in range(c):  # clean rows: every label with its probability
        of_label = numeric_scores(lambda t: np.log(mapped(proba_clean, t)[:, label]), start)  # noqa: B023
        information += (of_label * proba_clean[:, [label]]).T @ of_label
    of_matrix = _calibration._MATRIX_PRECISION * np.log(proba).var(axis=1).mean()
    information += np.diag([1.0] * (1 + c) + [of_matrix] * (n_map - 1 - c) + [4.0] * len(free))
    return free, np.linalg.inv(information)[n_map:, n_map:]


@pytest.mark.parametrize("full", [True, False], ids=["with a matrix", "scale and bias"])
def test_scales_are_those_of_the_joint_information_by_finite_differences(full, monkeypatch):
    monkeypatch.setattr(_calibration, "MOST_CLASSES_WITH_MATRIX", 3 if full else 2)
    T = np.array([[0.6, 0.25, 0.15], [0.15, 0.6, 0.25], [0.2, 0.2, 0.6]])
    proba, y, proba_clean, _ = rows(T=T)
    T = em_transition_matrix(proba, y, prior=None)
    found = transition_uncertainty(proba, y, T, proba_clean=proba_clean)
    free, covariance = twin_covariance(proba, y, T, proba_clean, full)
    np.testing.assert_allclose([found.scale[f] for f in free], np.sqrt(np.diag(covariance)), rtol=1e-5)


def test_entries_that_the_likelihood_holds_at_zero_do_not_let_others_vary():
    T = pair_noise(4, 0.3)
    proba, y, proba_clean, _ = rows(T=T, n=1500, sharpness=8.0)
    T = em_transition_matrix(proba, y, prior=None)
    found = transition_uncertainty(proba, y, T, proba_clean=proba_clean)
    free, covariance = twin_covariance(proba, y, T, proba_clean, True)
    information, scale = np.linalg.inv(covariance), np.array([found.scale[f] for f in free])
    held = np.array([found.location[f] for f in free]) < -3 * scale
    assert 2 < held.sum() < len(held) - 2
    for k in range(len(free)):
        others = ~held | (np.arange(len(free)) == k)
        alone = np.linalg.inv(information[np.ix_(others, others)]).diagonal()
        assert scale[k] == pytest.approx(np.sqrt(alone[others[:k].sum()]), rel=1e-2)
        assert scale[k] <= np.sqrt(covariance[k, k]) * (1 + 1e-6)


def test_chunks_of_rows_add_up(monkeypatch):
    proba, y, proba_clean, _ = rows()
    whole = transition_uncertainty(proba, y, T3, proba_clean=proba_clean)
    monkeypatch.setattr(module, "_CHUNK", 7)
    in_chunks = transition_uncertainty(proba, y, T3, proba_clean=proba_clean)
    for one, other in zip(whole[:4], in_chunks[:4], strict=True):  # the fifth is another estimate: none
        np.testing.assert_allclose(one, other, rtol=1e-9)


# ---------------------------------------------------------------------------- known limits
@pytest.mark.parametrize("n", [50, 400])
def test_a_flip_never_seen_gets_the_rule_of_three(n):
    proba, y = np.repeat(np.eye(2), n, axis=0), np.repeat([0, 1], n)
    low, high = transition_uncertainty(proba, y, np.eye(2)).interval(0.9)
    assert low[0, 1] == 0
    assert high[0, 1] == pytest.approx(-np.log(0.05) / n, rel=0.1)


def test_what_clean_rows_and_pairs_tell():
    proba, y, proba_clean, _ = rows()
    known = transition_uncertainty(proba, y, T3).scale
    many = transition_uncertainty(proba, y, T3, proba_clean=np.tile(proba_clean, (100, 1))).scale
    few = transition_uncertainty(proba, y, T3, proba_clean=proba_clean[:5]).scale
    paired = transition_uncertainty(proba, y, T3, proba_clean=proba_clean[:5], counts=1000 * T3).scale
    free = T3 < 0.5
    assert (known[free] <= many[free] + 1e-12).all()
    assert (many[free] < few[free]).all()
    assert (paired[free] < few[free]).all()


def test_entries_that_a_prior_has_raised_are_within_their_bounds():
    """The likelihood falls there too, as it does at an entry at 0 whose location is below it."""
    y = np.repeat([0, 1, 2], 100)
    noisy = np.concatenate([np.roll([0, 1, 2], -i).repeat([70, 24, 6]) for i in range(3)])
    T = symmetric_noise(3, 0.3)
    bars = transition_uncertainty(np.eye(3)[y], noisy, T)
    np.testing.assert_array_equal(bars.location, T)
    assert (bars.interval()[1] > T + 0.01).all()


def test_a_class_without_rows_and_many_classes():
    proba, y, proba_clean, _ = rows()
    proba = np.hstack([proba, np.zeros((len(proba), 1))])
    T = np.block([[T3, np.zeros((3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]])
    low, high = transition_uncertainty(proba, y, T).interval(0.9)
    assert (low[3, :3] == 0).all()
    assert (high[3, :3] > 0.4).all()
    c = 25
    proba, y, proba_clean, _ = rows(T=pair_noise(c, 0.3), n=2000)
    found = transition_uncertainty(proba, y, pair_noise(c, 0.3), proba_clean=proba_clean)
    assert np.isfinite(found.std).all()


def test_coverage_where_the_posterior_is_known():
    """Only the labels vary; a benchmark measures the coverage with a learned classifier."""
    covered = []
    for seed in range(60):
        proba, y, *_ = rows(seed, n=600)
        low, high = transition_uncertainty(proba, y, em_transition_matrix(proba, y, prior=None)).interval(0.9)
        covered.append((low <= T3) & (high >= T3))
    covered = np.mean(covered, axis=0)
    assert 0.85 < covered[T3 > 0].mean() < 0.95
    assert covered[T3 == 0].mean() >= 0.9


# ---------------------------------------------------------------------------- for any input
@settings(max_examples=40)
@given(noisy_rows(rows=partial(row_stochastic, least=0.01)), st.integers(0, 5))
def test_intervals_hold_the_estimate_and_grow_with_the_level(drawn, n_clean):
    proba, y, T = drawn
    found = transition_uncertainty(proba, y, T, proba_clean=proba[:n_clean] if n_clean else None)
    assert (found.std > 0).all()
    assert (found.std[T.max(axis=1, keepdims=True) > T] < 0.51).all()
    bounds = [found.interval(level) for level in (0.5, 0.9, 0.99)]
    for low, high in bounds:
        assert (low >= 0).all()
        assert (low <= T + 1e-12).all()
        assert (high >= T - 1e-12).all()
        assert (high <= 1).all()
    for (low, high), (lower, higher) in itertools.pairwise(bounds):
        assert (lower <= low).all()
        assert (higher >= high - 1e-12).all()
