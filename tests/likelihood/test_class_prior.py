"""Clean samples stratified by class: their offset is estimated, and T and class shares with it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from posteriors import labels_of
from scipy.special import softmax
from scipy.stats import chisquare
from strategies import row_stochastic

from noisytransition.likelihood._class_prior import fit_log_prior_ratio, shares_differ, shift_class_prior
from noisytransition.likelihood._em import first_maximum
from noisytransition.transition import flip_labels, pair_noise, transition_error

SHARES = np.array([0.75, 0.2, 0.05])
T3 = pair_noise(3, 0.3)
NONE, UNIFORM = np.zeros((3, 3)), np.full((3, 3), 1 / 3)


def problem(n_clean=(60, 60, 60), seed=0, n=4000):
    """Posteriors that are right for the noisy rows; clean rows drawn class by class, or at random (a number).

    Probabilities and labels of both, and the true labels of the noisy rows.
    """
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=5 * n, p=SHARES)
    proba = softmax(2 * (np.eye(3)[y] + rng.normal(size=(5 * n, 3)) / 2**0.5) * 2 + np.log(SHARES), axis=1)
    y, order = labels_of(proba, rng), rng.permutation(5 * n)
    if np.ndim(n_clean):
        clean = np.concatenate([order[y[order] == k][:m] for k, m in enumerate(n_clean)])
    else:
        clean = order[:n_clean]
    rest = np.setdiff1d(order, clean)[:n]
    noisy = flip_labels(y, T3, random_state=seed + 1000)
    return (proba[rest], noisy[rest], proba[clean], y[clean]), y[rest]


@pytest.mark.parametrize("n_clean", [(60, 60, 60), (90, 60, 30), (20, 20, 60)])
def test_the_offset_is_found_and_T_with_it(n_clean):
    rows, y = problem(n_clean)
    shares = np.bincount(y) / len(y)
    truth = np.log(np.array(n_clean) / sum(n_clean) / shares)
    offset = fit_log_prior_ratio(*rows, NONE, UNIFORM)
    np.testing.assert_allclose(offset, truth, atol=0.25)
    with_offset, without = (
        first_maximum(*rows, UNIFORM, "symmetric", NONE, log_prior_ratio=of).finish() for of in (offset, 0.0)
    )
    errors = [transition_error(T3, found.transition_matrix) for found in (with_offset, without)]
    assert errors[0] < min(0.1, errors[1] + 0.01)
    found = with_offset.counts.sum(axis=1) / with_offset.counts.sum()
    np.testing.assert_allclose(found, shares, atol=0.02)


@pytest.mark.parametrize("n_clean", [[50, 50], [9, 1], [30, 30]])
@pytest.mark.parametrize("of_noisy", [[900, 100], [550, 450], [750, 250]])
def test_shares_are_told_apart_as_by_a_chi_squared_test(n_clean, of_noisy):
    n_clean, expected = np.array(n_clean), sum(n_clean) * np.array(of_noisy) / 1000
    assert shares_differ(n_clean, np.array(of_noisy)) == (chisquare(n_clean, expected).pvalue < 1e-3)


@given(row_stochastic(5, 3, least=0.001), st.lists(st.floats(-4, 4), min_size=3, max_size=3))
def test_tilted_by_loops(proba, offset):
    found = shift_class_prior(proba, np.array(offset))
    for row, expected in zip(found, proba, strict=True):
        weighed = [p * np.exp(o) for p, o in zip(expected, offset, strict=True)]
        np.testing.assert_allclose(row, np.array(weighed) / sum(weighed))
    np.testing.assert_allclose(shift_class_prior(found, -np.array(offset)), proba, atol=1e-9)
    assert shift_class_prior(proba, np.zeros(3)) is proba
