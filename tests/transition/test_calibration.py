"""The map of logits: its likelihood against loops, its slopes against differences, and what it can set right."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from noisytransition.transition import em_transition_matrix, flip_labels, pair_noise, transition_error
from noisytransition.transition._calibration import _PRECISION, _Problem, calibrate

seeds = st.integers(0, 10_000)


def draw(seed, c=3, n=40, n_clean=15):
    rng = np.random.default_rng(seed)
    proba, clean = rng.dirichlet(np.full(c, 0.5), size=n), rng.dirichlet(np.full(c, 0.5), size=n_clean)
    return proba, rng.integers(c, size=n), clean, rng.integers(c, size=n_clean), rng.dirichlet(np.ones(c), size=c)


def through_a_map(seed, matrix, bias, n=4000, n_clean=300):
    """True probabilities, the classifier's that a map sets right, and labels of both kinds."""
    rng, c = np.random.default_rng(seed), len(bias)
    u = 2 * rng.normal(size=(n, c))
    u -= u.mean(axis=1, keepdims=True)  # what probabilities tell of logits
    true, given_ = special.softmax(u @ matrix.T + bias, axis=1), special.softmax(u, axis=1)
    y = (true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    noisy = flip_labels(y, pair_noise(c, 0.4), random_state=seed)
    rest = slice(n_clean, None)
    return true[rest], (given_[rest], noisy[rest], given_[:n_clean], y[:n_clean])


def to_the_top(height, start, *, options, minimize=optimize.minimize, **how):
    """Climb as `calibrate` does, until no slope is left."""
    return minimize(
        height, start, options=options | {"maxiter": 20_000, "maxfun": 40_000, "ftol": 0, "gtol": 1e-10}, **how
    )


def found(rows, known=0.0):
    c = rows[0].shape[1]
    return calibrate(*rows, np.full((c, c), 1 / c), np.full((c, c), known))


@given(seeds)
@settings(max_examples=20)
def test_height_by_loops(seed):
    proba, y, clean, y_clean, T = draw(seed)
    rng = np.random.default_rng(seed)
    log_scale, bias, added, known = rng.normal(), rng.normal(size=3), rng.normal(size=(3, 3)), rng.random((3, 3))
    problem = _Problem(proba, y, clean, y_clean, known)
    A = added + np.exp(log_scale) * np.eye(3)

    def mapped(p):
        u = np.log(p) - np.log(p).mean()
        z = [sum(A[i, k] * u[k] for k in range(3)) + bias[i] for i in range(3)]
        return np.exp(z) / np.exp(z).sum()

    total = sum(np.log(mapped(p) @ T[:, j]) for p, j in zip(proba, y, strict=True))
    total += sum(np.log(mapped(p)[j]) for p, j in zip(clean, y_clean, strict=True)) + (known * np.log(T)).sum()
    spread = np.mean([np.log(p).var() for p in np.concatenate([proba, clean])])
    total -= (log_scale**2 + (bias**2).sum() + _PRECISION * spread * (added**2).sum()) / 2
    height, _ = problem.height(problem.pack(log_scale, bias, added, np.log(T)))
    assert height * (len(y) + len(y_clean)) == pytest.approx(-total)


@pytest.mark.parametrize("c", [3, 22])
def test_slopes_are_those_of_the_height(c):
    rows, rng = draw(0, c), np.random.default_rng(1)
    problem = _Problem(*rows[:4], rng.random((c, c)))
    x = problem.pack(0.3, rng.normal(size=c), 0.1 * rng.normal(size=(c, c)), rng.normal(size=(c, c)))
    assert len(x) == 1 + c + c * c * (2 if c == 3 else 1)  # no matrix for many classes
    differences = optimize.approx_fprime(x, lambda at: problem.height(at)[0], 1e-6)
    np.testing.assert_allclose(problem.height(x)[1], differences, atol=1e-5)


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
    true, rows = through_a_map(0, matrix, bias, n=8000, n_clean=3000)
    after, before = np.abs(found(rows)(rows[0]) - true).mean(), np.abs(rows[0] - true).mean()
    assert after < 0.4 * before, (after, before)


def test_many_classes_and_few_clean_rows():
    c = 25
    _, (proba, y, clean, y_clean) = through_a_map(0, 0.7 * np.eye(c), np.linspace(-1, 1, c), n_clean=100)
    T = pair_noise(c, 0.4)
    before, after = (
        transition_error(T, em_transition_matrix(p, y)) for p in (proba, found((proba, y, clean, y_clean))(proba))
    )
    assert after < 0.85 * before, (after, before)


def test_noisy_rows_teach_the_map_too():
    """With the same few clean rows, and a T that is not known."""
    true, rows = through_a_map(1, np.eye(3), np.array([1.0, 0.0, -1.0]), n_clean=9)
    few = (rows[0][:1], rows[1][:1], *rows[2:])
    errors = [np.abs(found(given_)(rows[0]) - true).mean() for given_ in (rows, few)]
    assert errors[0] < 0.7 * errors[1]


@given(seeds, st.permutations(range(4)))
@settings(max_examples=15, derandomize=True)  # of 300 draws one had two maxima
def test_permuting_classes_permutes_the_map(seed, order):
    """At its maximum, that is: where the likelihood is flat, the climb ends on the way."""
    proba, y, clean, y_clean, _ = draw(seed, 4, 120, 40)
    order = np.array(order)
    at = np.argsort(order)
    with patch.object(optimize, "minimize", to_the_top):
        plain, moved = found((proba, y, clean, y_clean)), found((proba[:, order], at[y], clean[:, order], at[y_clean]))
    np.testing.assert_allclose(moved(proba[:, order]), plain(proba)[:, order], atol=0.02)


def test_known_pairs_count():
    rows = through_a_map(2, np.eye(3), np.array([1.0, 0.0, -1.0]), n_clean=9)[1]
    free, told = found(rows), found(rows, known=500.0)
    assert np.abs(free.bias - told.bias).max() > 0.05


def test_a_class_that_no_row_may_have_stays_impossible_and_one_with_clean_rows_does_not():
    proba, y, clean, y_clean, _ = draw(0)
    without = [np.column_stack([p, np.zeros(len(p))]) for p in (proba, clean)]
    assert (found((without[0], y, without[1], y_clean))(without[0])[:, 3] == 0).all()
    y_clean[0] = 3
    assert (found((without[0], y, without[1], y_clean))(without[0])[:, 3] > 0).all()


@pytest.mark.parametrize("n", [1, 60])
def test_rows_without_error_do_not_end_in_certainty(n):
    sure = np.eye(3)[np.arange(60) % 3] * 0.7 + 0.1
    map_ = found((sure[:n], np.arange(n) % 3, sure, np.arange(60) % 3))
    assert 0.7 < map_(sure).max() < 1 - 1e-6


def test_probabilities_of_other_rows_and_errors():
    proba, y, clean, y_clean, _ = draw(0)
    result = em_transition_matrix(proba, y, proba_meta=clean, y_meta=y_clean, full_output=True)
    np.testing.assert_allclose(result.calibration(clean).sum(axis=1), 1)
    with pytest.raises(ValueError, match="3 classes"):
        result.calibration([[0.5, 0.5]])
