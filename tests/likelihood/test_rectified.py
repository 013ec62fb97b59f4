"""T corrected by the residuals of verified pairs: a slow twin, laws, and coverage with labels of a rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from posteriors import verified_at
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from noisytransition import LabelNoiseModel
from noisytransition.likelihood._rectified import rectified
from noisytransition.likelihood._uncertainty import TransitionUncertainty
from noisytransition.transition import count_transition_matrix

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def problem(seed):
    rng = np.random.default_rng(seed)
    of_noisy, of_pairs, T = (rng.dirichlet(np.ones(3), n) for n in (300, 40, 3))
    noisy, noisy_of_pairs, true = (rng.integers(3, size=n) for n in (300, 40, 40))
    std = np.full((3, 3), 0.05)
    return TransitionUncertainty(T, T, std, std), of_noisy, noisy, of_pairs, true, noisy_of_pairs


def twin(model, of_noisy, noisy, of_pairs, true, noisy_of_pairs, weights):
    """Loops over given labels, true classes and samples."""
    c, m = len(model.transition_matrix), len(true)
    counts, variance, of_model = (np.zeros((c, c)) for _ in range(3))
    for j in range(c):
        for i in range(c):
            q = [p[i] for p, g in zip(of_noisy, noisy, strict=True) if g == j]
            of_samples = zip(of_pairs, true, noisy_of_pairs, weights, strict=True)
            pairs = [(p[i], t == i, w) for p, t, g, w in of_samples if g == j]
            q += [p for p, _, _ in pairs]
            mean, total = sum(q) / len(q), sum(w for _, _, w in pairs)
            share = mean + sum(w / total * (y - p) for p, y, w in pairs)
            error = sum((w / total * (y - p)) ** 2 for p, y, w in pairs)
            implied = sum((w / total) ** 2 * p * (1 - p) for p, _, w in pairs)
            error += max(implied - error, 0) * 20 / (len(pairs) + 20)
            counts[i, j] = max(len(q) * share, 0)
            variance[i, j] = len(q) ** 2 * (error + np.var(q) / len(q))
            spread = [p * (1 - p) for p, _, _ in pairs]
            of_model[i, j] = len(q) ** 2 * np.mean(spread) ** 2 / (10 + sum(spread))
    T, std = np.zeros((c, c)), np.zeros((c, c))
    for i in range(c):
        n, own = counts[i].sum(), model.transition_matrix[i]
        row = counts[i] / n
        v_r, v_m = np.zeros(c), np.zeros(c)
        for j in range(c):
            for of, values, share in ((v_r, variance[i], row[j]), (v_m, of_model[i], own[j])):
                of[j] = ((1 - share) ** 2 * values[j] + share**2 * (values.sum() - values[j])) / n**2
        v_r = (v_r + row * (1 - row) / n) * m / (m - 2)
        v_m, distance = v_m + model.std[i] ** 2, row - own
        w = (distance**2).sum() / ((distance**2).sum() + v_r.sum())
        T[i] = (1 - w) * own + w * row
        std[i] = np.sqrt((1 - w) * (v_m + distance**2) + w * v_r)
    return T, std


@given(st.integers(0, 1000), st.booleans())
def test_it_agrees_with_the_slow_twin(seed, weighted):
    rows = problem(seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2, 40) if weighted else np.ones(40)
    sizes = np.bincount(rows[2], minlength=3) + np.bincount(rows[5], minlength=3)
    model, *labels = rows
    design = np.ones(len(labels[0]) + 40)
    found = rectified(model.transition_matrix, *labels, weights, sizes, design).mean_with(model)
    T, std = twin(*rows, weights)
    np.testing.assert_allclose(found.transition_matrix, T, atol=1e-8)
    np.testing.assert_allclose(found.std, std, atol=1e-8)
    np.testing.assert_allclose(found.transition_matrix.sum(axis=1), 1)
    scaled = rectified(model.transition_matrix, *labels, 7 * weights, sizes, design).mean_with(model)  # up to a factor
    np.testing.assert_allclose(scaled.std, found.std)
    low, high = found.interval(0.9)
    assert ((low <= found.transition_matrix) & (found.transition_matrix <= high)).all()


def fitted(X, y, noisy, rows):
    """Noise model of a logistic regression, and the share of the entries of the true T inside their 90 % intervals."""
    proba = cross_val_predict(LogisticRegression(max_iter=300), X, noisy, cv=3, method="predict_proba")
    model, T = LabelNoiseModel().fit(proba, noisy, y_verified=verified_at(y, rows)), count_transition_matrix(y, noisy)
    low, high = model.transition_interval(0.9)
    return model, ((low <= T + 1e-9) & (high >= T - 1e-9)).mean()


@pytest.mark.parametrize("by_label", [False, True])
def test_error_bars_hold_with_labels_of_a_rule(by_label):
    covered = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        means, y = 1.1 * np.random.default_rng(7).normal(size=(3, 6)), rng.integers(3, size=2000)
        X = means[y] + rng.normal(size=(2000, 6))
        noisy = np.where(X[:, 0] > 0.8, 0, np.where(X[:, 1] > 0.5, 1, y))
        odds = np.where(noisy == 2, 4.0, 1.0) if by_label else np.ones(2000)
        covered.append(fitted(X, y, noisy, rng.choice(2000, 150, replace=False, p=odds / odds.sum()))[1])
    assert np.mean(covered) > 0.85


def test_error_bars_hold_if_few_pairs_do_not_show_that_hard_samples_flip_more():
    """The noise depends on the features, but the evidence of 60 pairs is too weak for a posterior fitted to them."""
    covered, one_T = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        means, y = 1.1 * rng.normal(size=(3, 6)), rng.integers(3, size=300)
        X = means[y] + rng.normal(size=(300, 6))
        proba = softmax(X @ means.T - (means**2).sum(axis=1) / 2, axis=1)
        other = np.where(np.eye(3)[y] == 1, 0, proba).argmax(axis=1)
        noisy = np.where(rng.random(300) < 0.9 * (1 - proba.max(axis=1)), other, y)
        model, share = fitted(X, y, noisy, np.arange(60))
        covered.append(share)
        one_T.append("not_one_T" not in model.diagnostics_)
    assert np.mean(one_T) > 0.5
    assert np.mean(covered) > 0.75  # without T by design: 0.62
