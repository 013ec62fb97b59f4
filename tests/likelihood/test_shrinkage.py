"""Shrinkage targets of T: benefit, misfit, and evidence by integration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from posteriors import simulated
from scipy.special import betaln, gammaln, polygamma, xlogy
from strategies import transition_matrices

from noisytransition.likelihood import _em, _shrinkage, em_transition_matrix
from noisytransition.likelihood._shrinkage import Evidence, fitted_prior, shrunk_to_symmetric
from noisytransition.transition import (
    flip_labels,
    gold_transition_matrix,
    pair_noise,
    superclass_noise,
    symmetric_noise,
    transition_error,
)

pytestmark = pytest.mark.filterwarnings("error")


def test_a_class_alone_in_its_superclass_says_nothing_of_flips_within_one():
    superclasses, rng = [0, 0, 1, 2, 3, 4], np.random.default_rng(0)
    T = superclass_noise(superclasses, 0.4)
    y = np.repeat(np.arange(6), 100)
    true = np.array([rng.choice(6, p=p) for p in 0.6 * np.eye(6)[y] + 0.4 / 6])
    proba, noisy = 0.6 * np.eye(6)[y] + 0.4 / 6, flip_labels(true, T, random_state=1)
    found = em_transition_matrix(proba, noisy, prior=superclasses, full_output=True)
    assert found.prior[[0, 1], [1, 0]] == pytest.approx([0.4, 0.4], abs=0.1)
    assert found.prior[2:, 2:].diagonal().min() > 0.9
    assert transition_error(T, found.transition_matrix) < transition_error(
        T, em_transition_matrix(proba, noisy, prior=None)
    )


def test_a_prior_that_rules_all_labels_out():
    y = np.repeat(np.arange(3), 10)
    np.testing.assert_allclose(em_transition_matrix(np.eye(3)[y], (y + 1) % 3, prior=np.eye(3)), pair_noise(3, 1.0))


@pytest.mark.parametrize("flipped", [(30, 20), (40, 10), (12, 30)])
def test_the_strength_by_integration(flipped):
    """Rows that are certain, 150 and 200 of two classes; T under its Beta prior and the noise rate on a grid."""
    counts = np.array([[150 - flipped[0], flipped[0]], [flipped[1], 200 - flipped[1]]])
    true, noisy = np.repeat([0, 0, 1, 1], counts.ravel()), np.repeat([0, 1, 0, 1], counts.ravel())
    found = em_transition_matrix(np.eye(2)[true], noisy, full_output=True)
    rates, strengths = np.linspace(0.001, 0.999, 999)[:, None], np.geomspace(1, 1e5, 101)
    right, wrong = strengths * (1 - rates), strengths * rates
    log_likelihood = sum(
        betaln(right + counts[i, i], wrong + counts[i, 1 - i]) - betaln(right, wrong) for i in range(2)
    )
    best = strengths[np.exp(log_likelihood - log_likelihood.max()).sum(axis=0).argmax()]
    assert 0.6 < found.strength / best < 1.6


def test_the_evidence_is_bounded_where_nearly_no_label_is_wrong():
    values = []
    for wrong in (1.0, 0.01, 1e-8, 0.0):
        counts = np.array([[100 - wrong, wrong], [wrong, 100 - wrong]])
        values.append(em_transition_matrix([[0.5, 0.5]], [0], counts=counts, full_output=True).log_evidence)
    assert max(values) < 0
    assert np.ptp(values[1:]) < 0.3


def test_entries_that_a_prior_rules_out_have_no_part_in_its_evidence():
    prior = np.array([[0.7, 0.3, 0], [0, 0.7, 0.3], [0.3, 0, 0.7]])
    allowed = 1000 * prior
    evidence = [Evidence(allowed + n * (prior == 0), prior, []).highest(np.array([50.0]))[0] for n in (0, 1, 50)]
    np.testing.assert_allclose(evidence, evidence[0])


@pytest.mark.parametrize("seed", [0, 2, 6])
def test_few_rows_of_weak_probabilities_do_not_hide_a_prior_that_fits(seed):
    """The most likely T is then so far from the prior that its counts alone contradict it."""
    T = symmetric_noise(4, 0.65)
    proba, _, noisy = simulated(seed, T, n=80, spread=0.7)
    found = em_transition_matrix(proba, noisy, full_output=True)
    plain = em_transition_matrix(proba, noisy, prior=None, full_output=True)
    assert fitted_prior("symmetric", plain.counts)[1] == 0
    assert found.strength > 1000
    assert transition_error(T, found.transition_matrix) < 0.3 * transition_error(T, plain.transition_matrix)


@pytest.mark.parametrize("seed", range(4))
def test_the_strength_is_that_of_a_search_among_all(seed):
    """Counts with T that varies around one noise rate, slightly or strongly, for small and large samples."""
    rng = np.random.default_rng(seed)
    c, own = int(rng.integers(2, 12)), 10.0 ** rng.uniform(0, 4)
    M = np.full((c, c), 0.3 / (c - 1))
    np.fill_diagonal(M, 0.7)
    T = np.array([rng.dirichlet(own * row) for row in M])
    counts = np.array([rng.multinomial(int(10 ** rng.uniform(1, 4)), row) for row in T]).astype(float)
    found, strength, evidence = fitted_prior("symmetric", counts)
    of_all = Evidence(counts, found, _shrinkage._groups("symmetric", counts))
    expected = max(of_all.highest(np.array([a])) for a in _shrinkage._PRIOR_STRENGTHS.tolist())
    assert evidence == expected[0]
    assert strength == (expected[1] if expected[1] >= _shrinkage.least_strength(found) else 0)


# ---------------------------------------------------------------------------- rows that are means of few
@given(st.integers(2, 6).flatmap(transition_matrices), st.integers(0, 5))
def test_means_are_shrunk_as_in_a_loop(T, seed):
    rng, c = np.random.default_rng(seed), len(T)
    y = np.concatenate([np.arange(c), rng.integers(c, size=5)])
    proba = 0.5 * T[y] + 0.5 * rng.dirichlet(np.ones(c), len(y))
    T = gold_transition_matrix(proba, y)
    np.testing.assert_allclose(shrunk_to_symmetric(T, proba, y), slowly_shrunk(T, proba, y), atol=1e-9)


def slowly_shrunk(T, proba, y):
    """The twin: sums over rows, and pseudo-counts instead of weights."""
    c = len(T)
    right = sum(T[k, k] for k in range(c)) / c
    M = np.array([[right if i == j else (1 - right) / (c - 1) for j in range(c)] for i in range(c)])
    single = sum(((p - M[k]) ** 2).sum() for p, k in zip(proba, y, strict=True)) / len(y)
    n = [sum(y == k) for k in range(c)]
    between = sum(((T[k] - M[k]) ** 2).sum() - single / n[k] for k in range(c)) / c
    if between <= 0:
        return M
    pseudo = single / between
    return np.array([(n[k] * T[k] + pseudo * M[k]) / (n[k] + pseudo) for k in range(c)])


def test_the_row_of_a_class_without_rows_stays():
    T = np.array([[0.2, 0.8], [0.5, 0.5]])
    np.testing.assert_array_equal(shrunk_to_symmetric(T, T[[0, 0]], np.array([0, 0]))[1], T[1])


# ---------------------------------------------------------------------------- many classes
def evidence_by_entries(counts, M, a, groups):
    """The formula, entry by entry."""
    rows = gammaln(a) - gammaln(a + counts.sum(axis=1))
    best = counts / counts.sum(axis=1, keepdims=True)
    entries = gammaln(a * M + counts) - gammaln(a * M) - xlogy(counts, best)
    of_entry = (a * M) ** 2 * (polygamma(1, a * M) - polygamma(1, a * M + counts))
    information = np.array([max(of_entry[group].sum(), 1.0) for group in groups])
    rates = np.array([M[group].sum() for group in groups])
    log_information = np.log(information).sum() + np.log((rates**2 / information).sum())
    return rows.sum() + entries.sum() - log_information / 2


@pytest.mark.parametrize("prior", ["symmetric", np.arange(120) // 7, np.minimum(np.arange(120), 60)])
def test_the_evidence_of_many_entries_is_that_of_each(prior):
    rng = np.random.default_rng(0)
    counts = rng.gamma(0.3, size=(120, 120)) ** 2 * (1 + 100 * np.eye(120))  # from 1e-20 to 1e4
    counts[rng.random((120, 120)) < 0.1] = 0
    groups = _shrinkage._groups(prior, counts)
    M = _shrinkage._rates(groups, counts)
    found = Evidence(counts, M, groups)
    for a in (0.1, 3.0, 77.0, 2e4, 1e6):
        evidence, _ = found.highest(np.array([a]))
        assert evidence == pytest.approx(evidence_by_entries(counts, M, a, groups), rel=1e-10)


def test_many_classes_without_shrinkage_have_the_most_likely_T():
    T = pair_noise(25, 0.4)
    proba, _, noisy = simulated(0, T, n=1500)
    found = em_transition_matrix(proba, noisy, full_output=True)
    plain = em_transition_matrix(proba, noisy, prior=None, full_output=True)
    assert found.strength == 0
    assert found.converged
    assert found.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-3)
    np.testing.assert_allclose(found.transition_matrix, plain.transition_matrix, atol=1e-3)


def test_many_classes_have_the_strength_of_the_most_likely_T(monkeypatch):
    proba, _, noisy = simulated(0, symmetric_noise(25, 0.4), n=1500)
    roughly = em_transition_matrix(proba, noisy, full_output=True)
    monkeypatch.setattr(_em, "TOLERANCE", -np.inf)
    fully = em_transition_matrix(proba, noisy, full_output=True)
    assert roughly.strength == fully.strength > 0
    np.testing.assert_allclose(roughly.transition_matrix, fully.transition_matrix, atol=1e-3)
