"""T of feature-dependent labels: compared with loops, for noise of this form and of other forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posteriors import draw, labels_of, simulated
from reference.noise_model import calibrated, unpack
from scipy.special import softmax

from noisytransition import LabelNoiseModel
from noisytransition.likelihood import _feature_dependent as module
from noisytransition.likelihood._calibration import CalibratedLikelihood
from noisytransition.likelihood._class_prior import log_scores
from noisytransition.likelihood._em import first_maximum, with_prior
from noisytransition.likelihood._feature_dependent import _both_maxima, dependent_loss, fit_feature_dependent_noise
from noisytransition.transition import count_transition_matrix, pair_noise, symmetric_noise, transition_error
from noisytransition.transition._estimation import normalise_rows

R3 = np.array([[0.7, 0.25, 0.05], [0.1, 0.7, 0.2], [0.15, 0.15, 0.7]])


def drawn(seed, power, n=6000, n_clean=300, R=R3, spread=3.0):
    """Exact posteriors, true labels and noisy ones; the first are of clean rows."""
    rng = np.random.default_rng(seed)
    proba = softmax(spread * rng.normal(size=(n, len(R))), axis=1)
    y = labels_of(proba, rng)
    flips = R[y] * proba**power
    noisy = labels_of(flips / flips.sum(axis=1, keepdims=True), rng)
    return proba, y, noisy, n_clean


def maximum(rows, prior="symmetric", weights=1.0):
    """First maximum under one T."""
    proba, y, noisy, n = rows
    c = proba.shape[1]
    return first_maximum(
        proba[n:], noisy[n:], proba[:n], y[:n], np.full((c, c), 1 / c), prior, np.zeros((c, c)), weights * np.ones(n)
    )


def both(rows):
    """Estimate one T, and T with feature-dependent noise."""
    proba, y, _, n = rows
    return maximum(rows).finish(), fit_feature_dependent_noise(maximum(rows), proba[:n], y[:n])


def counted(rows):
    _, y, noisy, n = rows
    return count_transition_matrix(y[n:], noisy[n:])


@pytest.fixture
def always(monkeypatch):
    """Take the estimate whatever its evidence and the clean rows."""
    monkeypatch.setattr(module, "EVIDENCE", -np.inf)
    monkeypatch.setattr(module, "log_scores", lambda *rows: np.zeros(1))


# ---------------------------------------------------------------------------- the likelihood
def likelihood(seed, c=3, n=40, n_clean=15, weight=1.0):
    proba, noisy = draw(seed, c, n)
    proba_clean, y_clean = draw(seed + 1, c, n_clean)
    given_rows = proba, noisy, proba_clean, y_clean
    return CalibratedLikelihood(*given_rows, np.zeros((c, c)), weight), given_rows


def parameters(seed, c, power):
    rng = np.random.default_rng(seed)
    return np.append(0.3 * rng.normal(size=1 + c + 2 * c * c), power)


@pytest.mark.parametrize("c", [2, 3, 5])
@given(seed=st.integers(0, 1000), power=st.floats(0, 2), weight=st.floats(0.1, 30))
@settings(max_examples=10)
def test_objective_by_loops(c, seed, power, weight):
    one_T, (proba, noisy, proba_clean, y_clean) = likelihood(seed, c, weight=weight)
    x = parameters(seed, c, power)
    scale, b, B, R = unpack(x[:-1], c)
    total = -(x[0] ** 2 + (x[1 : 1 + c] ** 2).sum() + one_T.precision * np.square(B).sum() + power**2) / 2
    for p, j in zip(proba, noisy, strict=True):
        f = np.array(calibrated(p, scale, b, B))
        of_label = [R[i][j] * f[j] ** power / sum(R[i][k] * f[k] ** power for k in range(c)) for i in range(c)]
        total += np.log(f @ of_label)
    for p, i in zip(proba_clean, y_clean, strict=True):
        total += weight * np.log(calibrated(p, scale, b, B)[i])
    value, _ = dependent_loss(one_T, x)
    np.testing.assert_allclose(value, -total / (len(noisy) + len(y_clean)), rtol=1e-10)


@pytest.mark.parametrize("c", [2, 4])
@pytest.mark.parametrize("power", [0.0, 0.3, 1.7])
def test_the_gradient_is_that_of_the_objective(c, power):
    one_T, x = likelihood(3, c, weight=2.0)[0], parameters(5, c, power)
    _, gradient = dependent_loss(one_T, x)
    for k in range(len(x)):
        step = np.zeros_like(x)
        step[k] = 1e-5
        change = (dependent_loss(one_T, x + step)[0] - dependent_loss(one_T, x - step)[0]) / 2e-5
        np.testing.assert_allclose(gradient[k], change, rtol=1e-6, atol=1e-9)


# ---------------------------------------------------------------------------- where labels depend on the row
UNIFORM = np.full((3, 3), 1 / 3)  # the labels depend on the features alone, and one T would be near the identity


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("power", "R", "share"), [(0.2, R3, 0.6), (0.4, R3, 0.6), (0.5, UNIFORM, 0.3), (3, UNIFORM, 0.3)]
)
def test_it_finds_the_power_and_the_mean_T(seed, power, R, share):
    one_T, found = both(rows := drawn(seed, power, R=R))
    T = counted(rows)
    assert found.log_evidence > 5
    assert found.power == pytest.approx(power, rel=0.4)
    assert transition_error(T, normalise_rows(found.counts)) < share * transition_error(T, one_T.transition_matrix)
    assert found.counts.sum() == pytest.approx(len(rows[0]) - rows[-1])


@pytest.mark.parametrize("seed", range(2))
def test_labels_that_are_drawn_from_the_posteriors_are_told_from_none_by_pairs_only(seed):
    """They are as likely as true labels for any sample, so they do not show the noise."""
    assert both(drawn(seed, 1.0, R=UNIFORM))[1] is None


def test_without_pairs_T_is_the_mean_of_both_explanations_and_the_error_bars_contain_them():
    rows = proba, y, noisy, n = drawn(0, 3.0, R=UNIFORM)
    one_T, found = both(rows)
    model = LabelNoiseModel().fit(proba[n:], noisy[n:], proba_clean=proba[:n], y_clean=y[:n])
    dependent = normalise_rows(found.counts)
    mean = (one_T.transition_matrix + dependent) / 2
    np.testing.assert_allclose(model.transition_matrix_, mean, atol=0.02)
    low, high = model.transition_interval()
    for T in (one_T.transition_matrix, dependent, counted(rows)):
        assert ((low <= T + 0.01) & (high >= T - 0.01)).all()


@pytest.mark.usefixtures("always")
def test_the_evidence_counts_each_label_once(monkeypatch):
    """Weights of the clean samples are in both likelihoods; the gain that they add is subtracted."""
    proba, y, noisy, n = drawn(0, 0.3, n=1500, n_clean=60)
    monkeypatch.setattr(module, "log_scores", log_scores)
    weights = np.linspace(1, 20, n)
    one_T = maximum((proba, y, noisy, n), weights=weights)
    found = fit_feature_dependent_noise(one_T, proba[:n], y[:n])
    one, x = _both_maxima(maximum((proba, y, noisy, n), weights=weights).likelihood, one_T.init)
    rows = np.arange(n)
    gain = np.log(found.calibration(proba[:n])[rows, y[:n]] / one.calibration(proba[:n])[rows, y[:n]])
    total = -dependent_loss(one_T.likelihood, x)[0] * len(y) - one.log_likelihood - np.log(len(y)) / 2
    strong = max(0, one_T.found.log_evidence - with_prior(one, "symmetric").log_evidence)
    assert found.log_evidence == pytest.approx(total - ((weights - 1) * gain).sum() - strong, abs=1e-3)


# ---------------------------------------------------------------------------- where one T is true
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("T", [pair_noise(3, 0.3), symmetric_noise(4, 0.4), np.eye(3), R3])
def test_one_T_stays(T, seed):
    proba, y, noisy = simulated(seed, T)
    assert both((proba, y, noisy, 300))[1] is None


def test_a_strong_prior_is_part_of_the_evidence_of_one_T():
    """Symmetric noise, and labels that were called dependent by an estimate without the prior."""
    rows = drawn(0, 0.3)
    one_T, found = both(rows)
    proba, y, _, n = rows
    log_evidence = one_T.log_evidence + found.log_evidence + 50
    better, without = maximum(rows), maximum(rows, prior=None)
    better = better._replace(found=better.found._replace(log_evidence=log_evidence))
    assert fit_feature_dependent_noise(better, proba[:n], y[:n]) is None
    without = without._replace(found=without.found._replace(log_evidence=log_evidence))
    of_map = fit_feature_dependent_noise(without, proba[:n], y[:n]).log_evidence
    assert of_map == pytest.approx(found.log_evidence)


@pytest.mark.usefixtures("always")
def test_a_class_that_no_row_may_have_keeps_one_T():
    proba, y, noisy, n = drawn(0, 0.5, n=600)
    absent = np.pad(proba, ((0, 0), (0, 1)))
    assert both((absent, y, noisy, n))[1] is None
