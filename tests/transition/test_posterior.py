import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import xlogy
from strategies import (
    binary_fractions,
    floats,
    noisy_rows,
    permutations,
    probabilities,
    rows_with_labels,
    rows_without_tiny,
)

from noisytransition.transition import denoise_proba, flip_labels, label_posterior, pair_noise


@given(noisy_rows(4), permutations(4))
def test_permuting_the_classes_permutes_the_posterior(rows, p):
    proba, y, T = rows
    moved = label_posterior(proba[:, p], np.argsort(p)[y], T[np.ix_(p, p)])
    np.testing.assert_allclose(moved, label_posterior(proba, y, T)[:, p], rtol=1e-9)


@given(noisy_rows())
def test_averaged_over_the_noisy_labels_it_is_the_prediction(rows):
    proba, _, T = rows
    noisy = proba @ T
    average = sum(noisy[:, [j]] * label_posterior(proba, np.full(len(proba), j), T) for j in range(len(T)))
    np.testing.assert_allclose(average, proba, atol=1e-12)


@given(rows_with_labels(4), floats(0, 1))
def test_rows_sum_to_one_though_single_precision_does_not(rows, rate):
    proba, y = rows
    before = (proba := proba.astype(np.float32) * np.float32(1.0005)).copy()
    posterior = label_posterior(proba, y, pair_noise(4, rate))
    assert posterior.dtype == np.float64
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(proba, before)


def test_it_is_the_share_of_each_true_class_among_rows_with_that_noisy_label():
    T, prior, n = pair_noise(3, 0.4), np.array([0.2, 0.3, 0.5]), 60_000
    y = np.random.default_rng(0).choice(3, size=n, p=prior)
    y_noisy = flip_labels(y, T, 1)
    posterior = label_posterior([prior] * 3, [0, 1, 2], T)
    for j in range(3):
        share = np.bincount(y[y_noisy == j], minlength=3) / np.sum(y_noisy == j)
        np.testing.assert_allclose(posterior[j], share, atol=0.015)


def test_only_the_rows_that_rule_their_label_out_fall_back():
    proba = [[0.25, 0.75, 0.0], [0.25, 0.75, 0.0]]
    np.testing.assert_allclose(label_posterior(proba, [2, 0], np.eye(3)), [[0.25, 0.75, 0], [1, 0, 0]])


def test_no_rows_give_no_rows():
    assert label_posterior(np.empty((0, 3)), [], np.eye(3)).shape == (0, 3)


@pytest.mark.parametrize(
    ("proba", "y", "T", "message"),
    [
        ([[3.0, -1.0]], [0], np.eye(2), "apply softmax first"),
        ([[0.5, 0.5]], [0], np.eye(3), "T has 3 rows and columns, but there are 2 classes"),
        ([[0.5, 0.5]], [0, 1], np.eye(2), "y_noisy has 2 entries for 1 rows; give one label per row"),
        ([[0.5, 0.5]], ["a"], np.eye(2), "y_noisy has 1 different labels, and there are 2 classes; pass classes="),
        ([[0.5, 0.5]], [-1], np.eye(2), r"y_noisy holds -1..-1; valid class indices are 0..1: encode"),
    ],
)
def test_what_does_not_fit(proba, y, T, message):
    with pytest.raises(ValueError, match=message):
        label_posterior(proba, y, T)


# ---------------------------------------------------------------------------- from the noisy label's probabilities
@given(probabilities(max_rows=8, classes=st.integers(2, 6)), floats(0, 0.4))
@settings(max_examples=30)
def test_denoising_undoes_the_noise(proba, rate):
    """The nearer the rate is to 1/2, the more iterations it takes: 20,000 at 0.4."""
    T = pair_noise(proba.shape[1], rate)
    n_iter = round(800 / (1 - 2 * rate) ** 2)
    np.testing.assert_allclose(denoise_proba(proba @ T, T, n_iter=n_iter), proba, atol=2e-3)


@given(noisy_rows(rows=binary_fractions))
@settings(max_examples=20)
def test_denoised_probabilities_are_the_most_likely_in_the_end(rows):
    """Karush-Kuhn-Tucker: derivatives are 1 where a probability is positive, and no higher elsewhere."""
    noisy, _, T = rows
    T = 0.9 * T + 0.1 * np.eye(len(T))
    proba = denoise_proba(noisy, T, n_iter=10_000)
    gradient = np.divide(noisy, proba @ T, out=np.zeros_like(noisy), where=noisy > 0) @ T.T
    assert (gradient < 1.02).all()
    assert (proba * np.abs(gradient - 1) < 0.01).all()


@given(noisy_rows(rows=rows_without_tiny))
def test_every_iteration_makes_the_noisy_probabilities_likelier(rows):
    """Of the labels that T can lead to."""
    noisy, _, T = rows
    seen = T.any(axis=0)
    likelihoods = [xlogy(noisy, denoise_proba(noisy, T, n_iter=n) @ T)[:, seen].sum(axis=1) for n in (1, 2, 3, 5, 20)]
    assert (np.diff(likelihoods, axis=0) > -1e-12).all()


@given(noisy_rows(rows=rows_without_tiny))
def test_iterations_by_loops_over_rows_and_classes(rows):
    noisy, _, T = rows
    c = len(T)
    for row, found in zip(noisy, denoise_proba(noisy, T, n_iter=3), strict=True):
        proba = np.maximum(row, 1e-3 / c) / np.maximum(row, 1e-3 / c).sum()
        for _ in range(3):
            expected = [sum(proba[i] * T[i, j] for i in range(c)) for j in range(c)]
            ratio = [row[j] / expected[j] if expected[j] else 0 for j in range(c)]
            proba = [proba[i] * sum(T[i, j] * ratio[j] for j in range(c)) for i in range(c)]
        np.testing.assert_allclose(found, np.array(proba) / sum(proba) if any(proba) else row, rtol=1e-9)


@given(noisy_rows(4, rows=rows_without_tiny), permutations(4))
def test_permuting_the_classes_permutes_denoised_probabilities(rows, p):
    noisy, _, T = rows
    np.testing.assert_allclose(denoise_proba(noisy[:, p], T[np.ix_(p, p)]), denoise_proba(noisy, T)[:, p], rtol=1e-9)


@given(noisy_rows(rows=rows_without_tiny))
def test_rows_are_denoised_one_by_one_and_not_at_all_without_noise(rows):
    noisy, _, T = rows
    whole = denoise_proba(noisy, T)
    np.testing.assert_allclose(np.concatenate([denoise_proba(row[None], T) for row in noisy]), whole, atol=1e-12)
    np.testing.assert_allclose(whole.sum(axis=1), 1)
    np.testing.assert_allclose(denoise_proba(noisy, np.eye(len(T))), noisy, rtol=1e-12)


def test_a_class_without_noisy_labels_can_have_a_probability():
    assert denoise_proba([[0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])[0, 0] == 1


def test_rows_that_T_rules_out_stay_as_they_are():
    np.testing.assert_allclose(denoise_proba([[0.0, 1.0]], [[1, 0], [1, 0]]), [[0, 1]])
    assert denoise_proba(np.empty((0, 3)), np.eye(3)).shape == (0, 3)


@pytest.mark.parametrize(
    ("noisy", "T", "n_iter", "message"),
    [
        ([[3.0, -1.0]], np.eye(2), 10, r"noisy_proba\[0, 1\] = -1"),
        ([[0.5, 0.5]], np.eye(3), 10, "T has 3 rows"),
        ([[0.5, 0.5]], np.eye(2), 0, "n_iter=0"),
    ],
)
def test_what_cannot_be_denoised(noisy, T, n_iter, message):
    with pytest.raises(ValueError, match=message):
        denoise_proba(noisy, T, n_iter=n_iter)
