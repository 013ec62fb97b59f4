"""T by maximum likelihood: slow references, properties of counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from posteriors import draw, simulated
from strategies import rows_with_labels, transition_matrices

from noisytransition.likelihood import em_transition_matrix
from noisytransition.likelihood._em import Likelihood, first_maximum
from noisytransition.transition import pair_noise, symmetric_noise

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


# ---------------------------------------------------------------------------- the maximum
@pytest.mark.parametrize("prior", [None, "symmetric"])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_plain_steps_by_loops(seed, prior):
    proba, y = draw(seed, n=40)
    found = em_transition_matrix(proba, y, prior=prior, tol=1e-10, max_iter=10_000, full_output=True)
    pseudo = np.zeros((3, 3)) if prior is None else found.strength * found.prior
    np.testing.assert_allclose(found.transition_matrix, slow_em(proba, y, pseudo), atol=2e-4)


@given(rows_with_labels(c=3, least=0.01), transition_matrices(3, least=0.01), st.floats(0, 50))
def test_a_step_by_loops(rows, T, pseudo):
    (proba, y), known = rows, pseudo * T[[1, 2, 0]]
    value, step, expected = Likelihood(proba, y, np.zeros((3, 3))).step(T, known)
    counts, total = known.copy(), (known * np.log(T)).sum()
    for p, j in zip(proba, y, strict=True):
        counts[:, j] += p * T[:, j] / (p @ T[:, j])
        total += np.log(p @ T[:, j])
    assert value == pytest.approx(total)
    np.testing.assert_allclose(expected + known, counts, rtol=1e-9)
    np.testing.assert_allclose(step, counts / counts.sum(axis=1, keepdims=True), rtol=1e-9)


def test_the_steps_are_at_most_those_given():
    proba, y = draw(0, c=10, n=500, concentration=5.0)
    for n_steps in (1, 3, 99, 100):
        with pytest.warns(UserWarning, match=f"converge in {n_steps} steps"):
            found = em_transition_matrix(proba, y, prior=None, tol=0.0, max_iter=n_steps, full_output=True)
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
    slow = slow_em(proba, y, np.zeros((10, 10)), 200)
    assert np.log((proba * slow[:, y].T).sum(axis=1)).sum() < found.log_likelihood + 1e-3


@pytest.mark.parametrize("start", [np.eye(3), [[0, 1, 0], [0, 0, 1], [1, 0, 0]]])
def test_a_start_with_zeros_is_left(start):
    T = pair_noise(3, 0.3)
    proba, _, noisy = simulated(0, T)
    found = em_transition_matrix(proba, noisy, init=start, prior=None)
    np.testing.assert_allclose(found, em_transition_matrix(proba, noisy, prior=None), atol=2e-3)


# ---------------------------------------------------------------------------- laws
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
