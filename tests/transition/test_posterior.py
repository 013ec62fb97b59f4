"""Posteriors of the true label, ranking of labels by them, and probabilities without the noise."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from strategies import floats, noisy_rows, rows_with_labels, rows_without_tiny

from noisytransition.noise_model import LabelNoiseModel
from noisytransition.transition import _checks, denoise_proba, label_posterior, pair_noise, symmetric_noise


@given(rows_with_labels(4), floats(0, 1))
@example((np.array([[0, 1 / 3, 1 / 3, 1 / 3]]), np.array([0])), 0.0)
def test_rows_sum_to_one_though_single_precision_does_not(rows, rate):
    proba, y = rows
    before = (proba := proba.astype(np.float32) * np.float32(1.0005)).copy()
    posterior = label_posterior(proba, y, pair_noise(4, rate))
    assert posterior.dtype == np.float64
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(proba, before)


# ---------------------------------------------------------------------------- from the noisy label's probabilities
@given(noisy_rows(4, rows=rows_without_tiny))
def test_iterations_by_loops_over_rows_and_classes(rows):
    noisy, _, T = rows
    c = len(T)
    np.testing.assert_allclose(denoise_proba(noisy, T).sum(axis=1), 1)
    for row, found in zip(noisy, denoise_proba(noisy, T, n_iter=3), strict=True):
        proba = np.maximum(row, 1e-3 / c) / np.maximum(row, 1e-3 / c).sum()
        for _ in range(3):
            expected = [sum(proba[i] * T[i, j] for i in range(c)) for j in range(c)]
            ratio = [row[j] / expected[j] if expected[j] else 0 for j in range(c)]
            proba = [proba[i] * sum(T[i, j] * ratio[j] for j in range(c)) for i in range(c)]
        np.testing.assert_allclose(found, np.array(proba) / sum(proba) if any(proba) else row, rtol=1e-9)


# ---------------------------------------------------------------------------- labels that are probably wrong
def posterior_by_bayes_rule(p, label, T):
    """Posterior of one sample; if the label is impossible under p and T, only p counts."""
    joint = [p[k] * T[k, label] for k in range(len(T))]
    return np.array(joint) / sum(joint) if any(joint) else p


@given(noisy_rows(), floats(0, 1))
def test_issues_and_new_labels_agree_with_bayes_rule_row_by_row(rows, threshold):
    proba, y, T = rows
    before, model = y.copy(), LabelNoiseModel.from_transition_matrix(T)
    posterior, quality = label_posterior(proba, y, T), model.label_quality(proba, y)
    expected = np.array([posterior_by_bayes_rule(*row, T) for row in zip(proba, y, strict=True)])
    np.testing.assert_allclose(posterior, expected)
    np.testing.assert_allclose(quality, expected[np.arange(len(y)), y])
    found = model.find_label_issues(proba, y, threshold=threshold, as_frame=False)
    assert found.dtype == np.intp
    doubtful = [n for n, q in enumerate(quality) if q < threshold]
    assert found.tolist() == sorted(doubtful, key=lambda n: quality[n])
    labels = model.relabel(proba, y, threshold=threshold)
    for n, row in enumerate(posterior):
        assert labels[n] == (row.argmax() if row.max() >= threshold else y[n])
    np.testing.assert_array_equal(y, before)


# ---------------------------------------------------------------------------- memory
@pytest.mark.parametrize(("order", "dtype"), [("C", np.float64), ("F", np.float32)])
def test_blocks_of_rows_give_the_bits_of_all_at_once(order, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    proba = np.asarray(rng.dirichlet(np.ones(4), 101), dtype=dtype, order=order)
    y, T = rng.integers(4, size=101), symmetric_noise(4, 0.3)
    model = LabelNoiseModel.from_transition_matrix(T)
    issues, relabel = partial(model.find_label_issues, as_frame=False), partial(model.relabel, threshold=0.6)
    functions = partial(label_posterior, T=T), model.label_quality, issues, relabel
    whole = [function(proba, y) for function in functions]
    monkeypatch.setattr(_checks, "_BLOCK", 40)
    for function, expected in zip(functions, whole, strict=True):
        np.testing.assert_array_equal(function(proba, y), expected)


def test_no_copy_of_the_posteriors_is_made():
    proba, y = np.full((40_000, 200), 0.005, dtype=np.float32), np.zeros(40_000, dtype=int)
    model = LabelNoiseModel.from_transition_matrix(symmetric_noise(200, 0.2))
    tracemalloc.start()
    model.relabel(proba, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * proba.nbytes
