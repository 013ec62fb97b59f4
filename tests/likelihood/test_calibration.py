"""The map of logits: its objective against loops, its gradient against differences, and what it can correct."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from posteriors import labels_of
from reference.noise_model import loss as slow_loss
from scipy import optimize, special
from strategies import floats, labels, row_stochastic, transition_matrices

from noisytransition.likelihood import _calibration, _em, em_transition_matrix
from noisytransition.likelihood._calibration import (
    CalibratedLikelihood,
    _RowsByLabel,
    _RowsOfFewClasses,
    tempered_log_loss,
)
from noisytransition.noise_model import LabelNoiseModel
from noisytransition.transition import flip_labels, pair_noise, symmetric_noise, transition_error


def draw(seed, c=3, n=40, n_clean=15):
    rng = np.random.default_rng(seed)
    proba, clean = rng.dirichlet(np.full(c, 0.5), size=n), rng.dirichlet(np.full(c, 0.5), size=n_clean)
    return proba, rng.integers(c, size=n), clean, rng.integers(c, size=n_clean)


def found(rows):
    """The map of a first maximisation."""
    c = rows[0].shape[1]
    likelihood = CalibratedLikelihood(*rows, np.zeros((c, c)))
    return likelihood.maximise(np.full((c, c), 1 / c), np.zeros((c, c))).calibration


@st.composite
def problems(draw, c=3):
    """Rows of both kinds, T, counts and the parameters of a map."""
    rows = [draw(row_stochastic(n, c, least=0.01)) for n in (6, 4)]
    y = [draw(labels(n, c)) for n in (6, 4)]
    parameters = [draw(floats(-1, 1)), *(draw(arrays(np.float64, n, elements=floats(-1, 1))) for n in (c, (c, c), c))]
    return (rows[0], y[0], rows[1], y[1]), draw(transition_matrices(c, least=0.01)), parameters


@given(problems(), floats(0, 5), arrays(np.float64, 4, elements=floats(0.1, 20)))
def test_the_objective_is_that_of_the_slow_twin(problem, known, weights):
    rows, T, (log_scale, bias, added, offset) = problem
    likelihood = CalibratedLikelihood(*rows, np.zeros((3, 3)), weights, offset)
    x, pairs = likelihood.pack(log_scale, bias, added, np.log(T)), np.full((3, 3), known)
    value, _ = likelihood.objective(x, pairs)
    assert value * likelihood.n_rows == pytest.approx(slow_loss(x, *rows, pairs, weights, offset))
    later = CalibratedLikelihood(*rows, np.zeros((3, 3)), log_prior_ratio=offset)
    later.clean_weight = weights
    assert later.objective(x, pairs)[0] == pytest.approx(value, rel=1e-12)


def test_a_step_of_the_line_search_may_go_far(recwarn):
    likelihood = CalibratedLikelihood(*draw(0), np.zeros((3, 3)))
    value, gradient = likelihood.objective(likelihood.pack(1e6, np.zeros(3), np.eye(3), np.eye(3)), np.eye(3))
    assert np.isfinite([value, *gradient]).all()
    assert not recwarn.list


@pytest.mark.parametrize("c", [3, 22])
def test_the_gradient_is_that_of_the_objective(c):
    rows, rng = draw(0, c), np.random.default_rng(1)
    likelihood, known = CalibratedLikelihood(*rows, np.zeros((c, c))), rng.random((c, c))
    likelihood.log_prior_ratio = rng.normal(size=c)
    x = likelihood.pack(0.3, rng.normal(size=c), 0.1 * rng.normal(size=(c, c)), rng.normal(size=(c, c)))
    assert len(x) == 1 + c + c * c * (2 if c == 3 else 1)  # no matrix for many classes
    differences = optimize.approx_fprime(x, lambda at: likelihood.objective(at, known)[0], 1e-6)
    np.testing.assert_allclose(likelihood.objective(x, known)[1], differences, atol=1e-5)


@pytest.mark.parametrize("c", [8, 30])
def test_many_numbers_in_single_precision_give_the_same_to_a_few_digits(c, monkeypatch):
    rng = np.random.default_rng(0)
    T = pair_noise(c, 0.4)
    y = rng.integers(c, size=3000)
    proba = special.softmax(1.5 * rng.normal(size=(3000, c)) + 5 * np.eye(c)[y], axis=1)
    rows = proba[500:], flip_labels(y[500:], T, random_state=0), proba[:500], y[:500]
    matrix = 0.1 * rng.normal(size=(c, c)) * (c <= 20)
    point = 0.3, rng.normal(size=c), matrix, rng.normal(size=(c, c))
    found = []
    for most in (2**20, 0):
        monkeypatch.setattr(_calibration, "_MOST_IN_DOUBLE", most)
        likelihood = CalibratedLikelihood(*rows, np.zeros((c, c)))
        result = em_transition_matrix(*rows[:2], proba_clean=rows[2], y_clean=rows[3])
        u = likelihood.rows.blocks[0][0] if c <= 20 else likelihood.rows.u
        found.append((u.dtype, *likelihood.objective(likelihood.pack(*point), T), result))
    (exact, value, gradient, T_exact), (single, *others) = found
    assert (exact, single) == (np.float64, np.float32)
    for one, other, rtol in zip((value, gradient), others, (1e-6, 1e-5), strict=False):
        assert np.linalg.norm(other - one) < rtol * np.linalg.norm(one)
    assert np.abs(others[-1] - T_exact).max() < 0.005  # both end where the likelihood rises by 1e-7


@pytest.mark.parametrize(
    ("T", "stratified"), [(pair_noise(24, 0.3), True), (symmetric_noise(24, 0.4), False)], ids=["pair", "symmetric"]
)
def test_the_shorter_search_of_many_classes_finds_the_same_T(T, stratified, monkeypatch):
    rng, c = np.random.default_rng(0), len(T)
    y = np.concatenate([rng.integers(c, size=1000), np.repeat(np.arange(c), 5)])
    z = rng.normal(size=(len(y), c)) + 3 * np.eye(c)[y]
    proba, noisy = special.softmax(5 * z + rng.normal(size=c), axis=1), flip_labels(y, T, random_state=0)
    rows = {"proba_clean": proba[1000:], "y_clean": y[1000:], "classes": np.arange(c)}
    models = []
    for slow in (100, 20):
        for module in (_calibration, _em):
            monkeypatch.setattr(module, "SLOW_CLASSES", slow)
        sampling = "stratified" if stratified else "random"
        models.append(LabelNoiseModel(verified_sampling=sampling).fit(proba[:1000], noisy[:1000], **rows))
    errors, losses = [], []
    for model in models:
        errors.append(transition_error(model.transition_matrix_, T))
        calibrated = model.calibrate(proba)
        u = np.log(np.maximum(proba, 1e-12))
        of_all = special.softmax(u @ model.calibration_.matrix.T + model.calibration_.bias, axis=1)
        np.testing.assert_allclose(calibrated, of_all, atol=1e-9)
        losses.append(-np.log(calibrated[np.arange(1000), y[:1000]]).mean())
    assert errors[1] < errors[0] + 0.03
    assert losses[1] < losses[0] + 0.03


def test_a_class_that_no_row_may_have_changes_nothing():
    (proba, y, clean, y_clean), kept = draw(0, 4, n_clean=30), np.array([0, 1, 3, 4])
    wider = (np.insert(proba, 2, 0, axis=1), kept[y], np.insert(clean, 2, 0, axis=1), kept[y_clean])
    own, more = (
        CalibratedLikelihood(*rows, np.zeros((c, c))) for rows, c in (((proba, y, clean, y_clean), 4), (wider, 5))
    )
    assert more.precision == pytest.approx(own.precision, rel=1e-12)
    for _ in range(2):  # the first call is short
        T, of_more = (
            likelihood.maximise(np.full((c, c), 1 / c), np.zeros((c, c))) for likelihood, c in ((own, 4), (more, 5))
        )
    np.testing.assert_allclose(of_more.calibration(wider[0])[:, kept], T.calibration(proba), atol=1e-3)
    np.testing.assert_allclose(of_more.transition_matrix[np.ix_(kept, kept)], T.transition_matrix, atol=5e-3)


@pytest.mark.parametrize("n_neighbours", [1, 10])
def test_probabilities_of_0_by_chance_do_not_spoil_the_map(n_neighbours):
    """Probabilities from few neighbours: a label that none of them has is possible."""
    rng, c = np.random.default_rng(0), 4
    true = special.softmax(2 * rng.normal(size=(3000, c)), axis=1)
    shares = np.stack([rng.multinomial(n_neighbours, p) / n_neighbours for p in true])
    y = labels_of(true, rng)
    noisy = flip_labels(y, pair_noise(c, 0.3), random_state=0)
    clean, seen, new = slice(100), slice(100, 2000), slice(2000, None)
    calibrated = found((shares[seen], noisy[seen], shares[clean], y[clean]))
    assert calibrated.floor == 0.05
    loss = -np.log(calibrated(shares[new])[np.arange(1000), y[new]]).mean()
    smooth = (n_neighbours * shares[new] + 1) / (n_neighbours + c)
    assert loss < -np.log(smooth[np.arange(1000), y[new]]).mean() + 0.02


@pytest.mark.parametrize(
    ("matrix", "bias"),
    [
        (np.eye(3) * 0.4, np.zeros(3)),
        (np.eye(3) * 2.0, np.zeros(3)),
        (np.eye(3), np.array([1.0, 0.0, -1.0])),
        (np.array([[1.0, 0.4, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.6]]), np.zeros(3)),
    ],
    ids=["over-confident", "under-confident", "shares", "confusion"],
)
def test_what_a_map_has_done_is_undone(matrix, bias):
    rng = np.random.default_rng(0)
    u = 2 * rng.normal(size=(8000, 3))
    u -= u.mean(axis=1, keepdims=True)  # what probabilities tell of logits
    proba, true = special.softmax(u, axis=1), special.softmax(u @ matrix.T + bias, axis=1)
    y = labels_of(true, rng)
    noisy = flip_labels(y, pair_noise(3, 0.4), random_state=0)
    calibrated = found((proba[3000:], noisy[3000:], proba[:3000], y[:3000]))(proba)
    after, before = (np.abs(of - true)[3000:].mean() for of in (calibrated, proba))
    assert after < 0.4 * before, (after, before)


def test_a_class_that_no_row_may_have_stays_impossible_and_one_with_clean_rows_does_not():
    proba, y, clean, y_clean = draw(0)
    proba, clean = (np.column_stack([p, np.zeros(len(p))]) for p in (proba, clean))
    assert (found((proba, y, clean, y_clean))(proba)[:, 3] == 0).all()
    y_clean[0] = 3
    assert (found((proba, y, clean, y_clean))(proba)[:, 3] > 0).all()


@pytest.mark.parametrize("n", [1, 60])
def test_rows_without_error_do_not_end_in_certainty(n):
    sure = np.eye(3)[np.arange(60) % 3] * 0.7 + 0.1
    map_ = found((sure[:n], np.arange(n) % 3, sure, np.arange(60) % 3))
    assert 0.7 < map_(sure).max() < 1 - 1e-6


# ---------------------------------------------------------------------------- sums over noisy rows
def sums_at_once(u, y, scale, bias, matrix, T):
    """The same sums, of all rows at once."""
    p = special.softmax(scale * u + u @ matrix.T + bias, axis=1)
    joint = p * T.T[y]
    posterior = joint / joint.sum(axis=1, keepdims=True)
    residual = posterior - p
    counts = posterior.T @ np.eye(len(T))[y]
    return np.log(joint.sum(axis=1)).sum(), counts, residual.sum(axis=0), residual.T @ u


@pytest.mark.parametrize("scale", [1.3, 150.0], ids=["small logits", "large logits"])
@pytest.mark.parametrize("rows_of", [_RowsOfFewClasses, _RowsByLabel])
@pytest.mark.parametrize("size", [1, 17 * 5])
def test_blocks_of_rows_give_the_sums_of_all_rows_at_once(rows_of, size, scale, monkeypatch):
    rng, c = np.random.default_rng(0), 5
    u, y, T = rng.normal(size=(300, c)), np.sort(rng.integers(c, size=300)), rng.dirichlet(np.ones(c), c)
    has_matrix = rows_of is _RowsOfFewClasses
    bias, matrix = np.linspace(-1, 1, c), 0.1 * np.eye(c)[::-1] * has_matrix
    monkeypatch.setattr(_calibration, "_BLOCK_SIZE", size)
    sums = rows_of(u, y, c).sums(matrix + scale * np.eye(c), bias, T)
    *others, of_matrix = sums_at_once(u, y, scale, bias, matrix, T)
    for value, twin in zip(sums, [*others, of_matrix if has_matrix else np.diag(of_matrix)], strict=True):
        np.testing.assert_allclose(value, twin, rtol=1e-10, atol=1e-10)


# ---------------------------------------------------------------------------- a temperature alone
@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(1, 30), floats(0.05, 5))
def test_the_temperature_is_the_best_of_a_fine_grid(seed, c, n, concentration):
    rng = np.random.default_rng(seed)
    proba, y = rng.dirichlet(np.full(c, concentration), size=n), rng.integers(c, size=n)
    u = np.log(np.maximum(proba, 1e-7))

    def loss(log_scale):
        return -special.log_softmax(np.exp(log_scale) * u, axis=1)[np.arange(n), y].sum()

    found = tempered_log_loss(proba, y)
    assert found.shape == (n,)
    assert found.sum() <= min(map(loss, np.linspace(-3, 2, 501))) + 1e-4 * n
    assert found.sum() <= loss(0.0) + 1e-6 * n  # the plain log-loss


def test_a_probability_of_0_costs_a_finite_loss():
    loss = tempered_log_loss(np.eye(2)[[0, 1, 1]], np.array([0, 1, 0]))
    assert np.isfinite(loss).all()
    assert loss[2] > loss[0]


def test_a_weight_counts_a_row_so_often():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(3), size=40), rng.integers(3, size=40)
    weights = rng.integers(4, size=40)
    weighted, repeated = tempered_log_loss(proba, y, weights), np.arange(40).repeat(weights)
    single = tempered_log_loss(proba[repeated], y[repeated])
    np.testing.assert_allclose(weighted.sum(), single.sum(), rtol=1e-6)
