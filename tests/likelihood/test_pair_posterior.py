"""T by a posterior fitted to verified pairs: compared with dense matrices, and if one T does not hold."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from noisytransition.likelihood import _pair_posterior as module
from noisytransition.likelihood import em_transition_matrix
from noisytransition.likelihood._pair_posterior import fit_pair_posterior, wrong_true_labels
from noisytransition.transition import count_transition_matrix, flip_labels, symmetric_noise, transition_error
from noisytransition.transition._estimation import pair_counts

T3 = np.array([[0.7, 0.3, 0.0], [0.05, 0.8, 0.15], [0.1, 0.1, 0.8]])


def problem(seed=0, n=400, n_pairs=60, c=3, guessed=0.5, sharpness=1.5, T=None):
    """Posteriors that are right; a share of the labels is guessed from them, or all are flipped by one T."""
    rng = np.random.default_rng(seed)
    proba = softmax(sharpness * rng.normal(size=(n + n_pairs, c)), axis=1)
    y = np.array([rng.choice(c, p=p) for p in proba])
    if T is None:
        guess = np.array([rng.choice(c, p=p) for p in proba])
        noisy = np.where(rng.random(len(y)) < guessed, guess, y)
    else:
        noisy = flip_labels(y, T, random_state=seed)
    return proba, y, noisy, n


def revised(rows, T, offset=0.0):
    proba, y, noisy, n = rows
    pairs = proba[n:], y[n:], noisy[n:]
    return fit_pair_posterior(proba[:n], noisy[:n], T, pairs, pair_counts(*pairs[1:], len(T)), offset)


@pytest.fixture
def always(monkeypatch):
    """Take the posterior of the pairs whatever its evidence."""
    monkeypatch.setattr(module, "EVIDENCE", -np.inf)


# ---------------------------------------------------------------------------- the twin
def twin(rows, T, offset):
    """Posterior, evidence and counts by loops over rows and dense matrices."""
    proba, y, noisy, n = rows
    c = len(T)
    log_T = np.log(np.maximum(T, 1e-3))

    def logits(x, i):
        own = np.exp(x[0]) * np.log(proba[i]) + np.exp(x[1]) * log_T[:, noisy[i]] + x[2:].reshape(c, c)[:, noisy[i]]
        return own if i < n else own + offset  # pairs may be drawn class by class

    def loss(x):
        prior = (x[0] ** 2 + x[1] ** 2 + 10 * (x[2:] ** 2).sum()) / 2
        return prior - sum(np.log(softmax(logits(x, i))[y[i]]) for i in range(n, len(y)))

    def slopes(x, i):  # of all logits, in all parameters
        found = np.zeros((c, len(x)))
        found[:, 0] = np.exp(x[0]) * np.log(proba[i])
        found[:, 1] = np.exp(x[1]) * log_T[:, noisy[i]]
        for k in range(c):
            found[k, 2 + k * c + noisy[i]] = 1
        return found

    zero = np.zeros(2 + c * c)
    x = minimize(loss, zero, method="BFGS", options={"gtol": 1e-7}).x
    prior = np.diag([1.0, 1.0] + [10.0] * (c * c))
    information = prior.copy()
    for i in range(n, len(y)):
        q, s = softmax(logits(x, i)), slopes(x, i)
        information += s.T @ (np.diag(q) - np.outer(q, q)) @ s
    evidence = loss(zero) - loss(x) - np.linalg.slogdet(information)[1] / 2 + np.linalg.slogdet(prior)[1] / 2

    def counts(x):
        total = pair_counts(y[n:], noisy[n:], c).astype(float)
        for i in range(n):
            total[:, noisy[i]] += softmax(logits(x, i))
        return total

    total = counts(x) + T
    return evidence, counts(x), np.exp(x[:2]), total / total.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("seed", "c", "drawn"), [(0, 2, 0), (1, 2, 1), (0, 3, 1), (1, 3, 0), (0, 4, 1)])
def test_it_is_that_of_the_dense_twin(seed, c, drawn, always):
    rows = problem(seed, n=60, n_pairs=25, c=c)
    T, offset = symmetric_noise(c, 0.3), drawn * np.linspace(-1, 1, c)
    evidence, counts, powers, found = twin(rows, T, offset)
    got = revised(rows, T, offset=offset)
    np.testing.assert_allclose(got.log_evidence, evidence, atol=1e-3)
    np.testing.assert_allclose(got.channel.powers, powers, rtol=5e-3)
    np.testing.assert_allclose(got.counts, counts, rtol=5e-3)
    np.testing.assert_allclose(got.transition_matrix, found, atol=2e-3)


# ---------------------------------------------------------------------------- where it is taken
def test_one_T_and_T_without_pairs_are_left_alone():
    proba, y, noisy, _ = problem()
    assert revised((proba, y, noisy, len(y)), T3) is None
    kept = [revised(problem(seed, 1000, 200, T=T3), T3) is None for seed in range(20)]
    assert sum(kept) >= 19


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_T_of_labels_that_err_where_the_classifier_does_is_mended(seed):
    proba, y, noisy, n = rows = problem(seed, 4000, 300)
    truth = count_transition_matrix(y[:n], noisy[:n], 3)
    plain = em_transition_matrix(proba[:n], noisy[:n], counts=pair_counts(y[n:], noisy[n:], 3))
    got = revised(rows, plain)
    assert got.channel.powers[1] < 1
    assert got.log_evidence > 1
    T = got.transition_matrix
    assert transition_error(truth, T) < min(0.1, 0.5 * transition_error(truth, plain))


# ---------------------------------------------------------------------------- laws
def test_a_class_without_rows_keeps_its_T(always):
    proba, y, noisy, n = problem(c=3)
    T = np.eye(4)
    T[:3, :3], T[3] = T3, [0.2, 0.3, 0.4, 0.1]
    got = revised((np.c_[proba, np.zeros(len(y))], y, noisy, n), T)
    np.testing.assert_allclose(got.transition_matrix[3], T[3], atol=2e-3)


def test_hundreds_of_classes_take_moments():
    rng, c = np.random.default_rng(0), 400
    y = rng.integers(c, size=1200)
    proba = 0.5 * np.eye(c)[y] + 0.5 / c
    assert revised((proba, y, y, 1000), symmetric_noise(c, 0.1)) is None


# ---------------------------------------------------------------------------- true labels that are wrong
def test_true_labels_that_are_wrong_by_chance_are_told_from_right_ones():
    proba, y, noisy, n = problem(n_pairs=300, sharpness=4.0, T=T3)
    assert wrong_true_labels(proba[n:], y[n:], noisy[n:], T3)[0] < 0
    is_wrong = np.arange(300) % 10 == 0
    evidence, probability = wrong_true_labels(proba[n:], np.where(is_wrong, (y[n:] + 1) % 3, y[n:]), noisy[n:], T3)
    assert evidence > 3
    assert is_wrong[probability > 0.5].mean() > 0.8
    assert probability.sum() == pytest.approx(is_wrong.sum(), rel=0.5)


def test_noise_that_depends_on_the_features_is_not_taken_for_wrong_true_labels():
    rows = proba, y, noisy, n = problem(n_pairs=300, sharpness=3.0, guessed=0.8)
    T = count_transition_matrix(y, noisy, 3)
    assert revised(rows, T).log_evidence > wrong_true_labels(proba[n:], y[n:], noisy[n:], T)[0]
