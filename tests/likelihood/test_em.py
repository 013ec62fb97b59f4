"""T by maximum likelihood: slow references, optimality conditions, properties of counts."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posteriors import draw, simulated
from strategies import labels, labels_of_every_class, rows_with_labels, transition_matrices

from noisytransition.likelihood import em_transition_matrix
from noisytransition.likelihood._em import Likelihood, first_maximum
from noisytransition.transition import count_transition_matrix, pair_noise, symmetric_noise
from noisytransition.transition._estimation import pair_counts

pytestmark = pytest.mark.filterwarnings("error")


def slow_em(proba, y, pseudo, n_steps=20_000):
    """One row at a time, one step after the other."""
    c = proba.shape[1]
    T = [[1 / c] * c for _ in range(c)]
    for _ in range(n_steps):
        counts = [list(map(float, row)) for row in pseudo]
        for p, j in zip(proba.tolist(), y.tolist(), strict=True):
            total = sum(p[i] * T[i][j] for i in range(c))
            for i in range(c):
                counts[i][j] += p[i] * T[i][j] / total
        before, T = T, [[v / sum(row) for v in row] for row in counts]
        if max(abs(a - b) for r, s in zip(T, before, strict=True) for a, b in zip(r, s, strict=True)) < 1e-9:
            break
    return np.array(T)


def after_many_steps(proba, y, **params):
    """Return the result after at most 1000 steps, converged or not."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="T did not converge")
        return em_transition_matrix(proba, y, prior=None, **params)


def log_likelihood(proba, y, T):
    return np.log((proba * T[:, y].T).sum(axis=1)).sum()


# ---------------------------------------------------------------------------- the maximum
@pytest.mark.parametrize("prior", [None, "symmetric"])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_plain_steps_by_loops(seed, prior):
    proba, y = draw(seed, n=40)
    found = em_transition_matrix(proba, y, prior=prior, tol=1e-10, max_iter=10_000, full_output=True)
    pseudo = np.zeros((3, 3)) if prior is None else found.strength * found.prior
    np.testing.assert_allclose(found.transition_matrix, slow_em(proba, y, pseudo), atol=2e-4)


@pytest.mark.parametrize("c", [2, 3, 5])
def test_no_entry_of_T_could_be_moved_for_a_higher_likelihood(c):
    """Karush-Kuhn-Tucker: in each row, derivatives of positive entries are alike, those of entries at 0 no larger."""
    for seed in range(10):
        proba, y = draw(seed, c=c)
        T = em_transition_matrix(proba, y, prior=None, tol=1e-9, max_iter=20_000)
        of_rows = (proba / (proba * T[:, y].T).sum(1)[:, None], y)
        gradient = np.stack([of_rows[0][y == j].sum(axis=0) for j in range(c)], axis=1)
        highest = gradient.max(axis=1, keepdims=True)
        assert (T * (highest - gradient) < 1e-2 * highest).all(), seed


@given(rows_with_labels(c=3, least=0.01), transition_matrices(3), transition_matrices(3))
@settings(max_examples=12)
def test_no_matrix_is_more_likely_wherever_it_starts(rows, start, other):
    """After k steps the log-likelihood is at most n KL(best, start) / k below the highest (mirror descent)."""
    (proba, y), k = rows, 1000
    T = after_many_steps(proba, y, init=start, tol=0, max_iter=k)
    furthest = len(y) * np.log(30) / k  # no entry of the start is below a tenth of 1/3
    assert log_likelihood(proba, y, T) > log_likelihood(proba, y, np.maximum(other, 1e-12)) - furthest - 1e-6


@given(rows_with_labels(c=3, least=0.01), transition_matrices(3, least=0.01), st.floats(0, 50))
def test_a_step_by_loops(rows, T, pseudo):
    (proba, y), known = rows, pseudo * T[[1, 2, 0]]
    value, step = Likelihood(proba, y, np.zeros((3, 3))).step(T, known)
    counts, total = known.copy(), (known * np.log(T)).sum()
    for p, j in zip(proba, y, strict=True):
        counts[:, j] += p * T[:, j] / (p @ T[:, j])
        total += np.log(p @ T[:, j])
    assert value == pytest.approx(total)
    np.testing.assert_allclose(step, counts / counts.sum(axis=1, keepdims=True), rtol=1e-9)


@given(rows_with_labels(least=0.01), st.floats(0, 50))
def test_no_step_lowers_the_likelihood(rows, pseudo):
    proba, y = rows
    c = proba.shape[1]
    likelihood, known, T, values = Likelihood(proba, y, np.zeros((c, c))), np.full((c, c), pseudo), np.eye(c) / 2, []
    T = T + 0.5 / c
    for _ in range(10):
        value, T = likelihood.step(T, known)
        values.append(value)
    assert (np.diff(values) > -1e-9 * np.abs(values).max()).all()


@given(rows_with_labels(least=0.01))
def test_the_log_likelihood_is_that_of_T(rows):
    """Equal except for the last step."""
    proba, y = rows
    found = after_many_steps(proba, y, tol=1e-9, full_output=True)
    assert found.log_likelihood == pytest.approx(log_likelihood(proba, y, found.transition_matrix), abs=1e-3)
    assert found.log_evidence == found.log_likelihood


def test_the_steps_are_at_most_those_given():
    proba, y = draw(0, c=10, n=500, concentration=5.0)
    for n_steps in (3, 99, 100):
        found = after_many_steps(proba, y, tol=0.0, max_iter=n_steps, full_output=True)
        assert found.n_iter == n_steps
        assert found.log_evidence == found.log_likelihood


def test_extrapolation_needs_few_steps(monkeypatch):
    """Plain steps, one after the other, need some hundreds here."""
    n_steps = []
    plain = Likelihood.step
    monkeypatch.setattr(Likelihood, "step", lambda self, *args: n_steps.append(1) or plain(self, *args))
    proba, y = draw(0, c=10, n=500, concentration=5.0)
    found = em_transition_matrix(proba, y, prior=None, full_output=True)
    assert found.converged
    assert len(n_steps) < 200
    assert log_likelihood(proba, y, slow_em(proba, y, np.zeros((10, 10)), 200)) < found.log_likelihood + 1e-3


@pytest.mark.parametrize("start", [np.eye(3), [[0, 1, 0], [0, 0, 1], [1, 0, 0]]])
def test_a_start_with_zeros_is_left(start):
    T = pair_noise(3, 0.3)
    proba, _, noisy = simulated(0, T)
    found = em_transition_matrix(proba, noisy, init=start, prior=None)
    np.testing.assert_allclose(found, em_transition_matrix(proba, noisy, prior=None), atol=2e-3)


# ---------------------------------------------------------------------------- laws
@given(st.data(), st.integers(2, 5), st.integers(0, 30))
def test_certain_posteriors_are_counted(data, c, more):
    true, noisy = data.draw(labels_of_every_class(c + more, c)), data.draw(labels(c + more, c))
    T = em_transition_matrix(np.eye(c)[true], noisy, prior=None)
    np.testing.assert_allclose(T, count_transition_matrix(true, noisy, c), atol=1e-6)


def test_known_pairs_count_like_rows_of_certain_class():
    proba, y = draw(0)
    true, noisy = np.repeat([0, 1, 2], 10), draw(1, n=30)[1]
    with_rows = em_transition_matrix(np.concatenate([proba, np.eye(3)[true]]), np.append(y, noisy), prior=None)
    with_counts = em_transition_matrix(proba, y, counts=pair_counts(true, noisy, 3), prior=None)
    np.testing.assert_allclose(with_counts, with_rows, atol=1e-4)


def test_counts_say_how_many_rows_are_behind_T():
    proba, y = draw(0)
    found = em_transition_matrix(proba, y, counts=np.eye(3) * 4, full_output=True)
    assert found.counts.sum() == pytest.approx(60 + 12)
    np.testing.assert_allclose(found.counts.sum(axis=0), np.bincount(y) + 4)
    weights = found.counts + found.strength * found.prior
    np.testing.assert_allclose(found.transition_matrix, weights / weights.sum(axis=1, keepdims=True), atol=1e-4)


def test_the_first_maximum_tells_the_evidence_of_the_result():
    proba, _, noisy = simulated(0, symmetric_noise(4, 0.3))
    none, uniform = (proba[:0], noisy[:0]), np.full((4, 4), 1 / 4)
    first = first_maximum(proba, noisy, *none, uniform, "symmetric", np.zeros((4, 4)))
    found, whole = first.finish(), em_transition_matrix(proba, noisy, full_output=True)
    assert first.found.log_evidence == found.log_evidence == whole.log_evidence
    np.testing.assert_array_equal(found.transition_matrix, whole.transition_matrix)
    assert found.strength > 0
    assert np.abs(found.transition_matrix - first.found.transition_matrix).max() > 1e-4  # it is shrunk later


def test_a_class_that_no_row_may_have_keeps_its_start():
    proba, y = draw(0)
    proba = np.column_stack([proba, np.zeros(60)])
    for clean in ({}, {"proba_clean": proba[:9], "y_clean": y[:9]}):
        T = em_transition_matrix(proba, y, init=np.eye(4) * 0.6 + 0.1, prior=None, **clean)
        np.testing.assert_allclose(T[3], [0.1, 0.1, 0.1, 0.7], atol=1e-6)


# ---------------------------------------------------------------------------- calibration, and other classifiers
@given(rows_with_labels(c=3, max_samples=60), rows_with_labels(c=3, max_samples=20))
def test_any_rows_come_to_an_end(rows, clean):
    found = em_transition_matrix(*rows, proba_clean=clean[0], y_clean=clean[1], full_output=True)
    assert found.converged
    assert np.isfinite([found.log_likelihood, found.log_evidence]).all()
    np.testing.assert_allclose(found.transition_matrix.sum(axis=1), 1)


# ---------------------------------------------------------------------------- errors
def test_too_few_steps_are_warned_of():
    with pytest.warns(UserWarning, match="converge in 1 steps"):
        em_transition_matrix(*draw(0), prior=None, max_iter=1)
