"""Several sources: T of each, their weights, the posterior of all labels; beside a slow twin in plain loops."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln
from training import refused

from noisytransition import LabelNoiseModel, flip_labels
from noisytransition.likelihood._sources import fit_sources, log_likelihood, shrunk_shares
from noisytransition.transition import pair_noise, symmetric_noise

C = 3
NAMES = np.array(["ann", "bob", "cyd", "dan"])
MATRICES = np.array([symmetric_noise(C, 0.1), symmetric_noise(C, 0.4), pair_noise(C, 0.3), pair_noise(C, 0.6)])


def people(seed=0, n=900, *, copied=0.0, asked=3, n_verified=150):
    """Probabilities that tell the class in part; labels of four people, three of whom label each sample.

    Of a share `copied` of the samples all of them give the same random label.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(C, size=n)
    score = rng.normal(size=(n, C)) + 1.5 * np.eye(C)[y]
    proba = np.exp(1.5 * score - 1.5**2 / 2)  # of two normals of unit variance, 1.5 apart
    proba /= proba.sum(axis=1, keepdims=True)
    codes = np.column_stack([flip_labels(y, T, random_state=10 * seed + k) for k, T in enumerate(MATRICES)])
    codes = np.where((rng.random(n) < copied)[:, None], rng.integers(C, size=(n, 1)), codes)
    codes[np.argsort(rng.random(codes.shape), axis=1) >= asked] = -1
    return y, proba, codes, np.where(np.arange(n) < n_verified, y, -1)


def table(codes, true, labels=("x", "y", "z")):
    of_all = np.array([*labels, None], dtype=object)
    return pd.DataFrame(of_all[codes], columns=NAMES).assign(verified=of_all[true])


# ---------------------------------------------------------------------------- the twin
def slow_posterior(proba, codes, true, matrices, weights):
    """P(true | x, labels), sample by sample and label by label."""
    found = np.empty_like(proba)
    for n, row in enumerate(proba):
        joint = [
            p * np.prod([matrices[s, i, j] ** weights[s] for s, j in enumerate(codes[n]) if j >= 0])
            for i, p in enumerate(row)
        ]
        found[n] = np.array(joint) / sum(joint) if true[n] < 0 else np.eye(len(row))[true[n]]
    return found


def slow_counts(posterior, codes, d):
    counts = np.zeros((codes.shape[1], posterior.shape[1], d))
    for n, s in zip(*np.nonzero(codes >= 0), strict=True):
        counts[s, :, codes[n, s]] += posterior[n]
    return counts


def test_matrices_are_a_fixed_point_of_expectation_maximisation():
    _, proba, codes, true = people()
    found = fit_sources(proba, codes, true, NAMES, C)
    np.testing.assert_array_equal(found.weights, 1)
    counts = slow_counts(slow_posterior(proba, codes, true, found.matrices, found.weights), codes, C)
    common = counts.sum(axis=0) / counts.sum(axis=(0, 2))[:, None]
    pseudo = (found.matrices * counts.sum(axis=2)[:, :, None] - counts) / (common - found.matrices + 1e-12)
    strength = np.median(pseudo)  # T = (counts + strength * common) / their sum
    shrunk = counts + strength * common
    np.testing.assert_allclose(found.matrices, shrunk / shrunk.sum(axis=2, keepdims=True), atol=2e-3)


def test_the_log_likelihood_is_a_sum_over_labels():
    codes = people()[2]
    weights = np.array([0.3, 1.0, 0.0, 2.0])
    found = np.exp(log_likelihood(codes, MATRICES, weights))
    expected = slow_posterior(np.full((len(codes), C), 1 / C), codes, np.full(len(codes), -1), MATRICES + 0.0, weights)
    np.testing.assert_allclose(found / found.sum(axis=1, keepdims=True), expected, atol=1e-12)


def test_shares_are_shrunk_by_the_strength_of_the_highest_evidence():
    """Two labels have a Beta prior."""
    common = np.array([[0.7, 0.3], [0.2, 0.8]])
    counts = np.random.default_rng(0).multinomial(50, [[[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]])
    prior = np.geomspace(0.5, 1000, 300)[:, None, None, None] * common
    total = counts + prior
    evidence = (betaln(total[..., 0], total[..., 1]) - betaln(prior[..., 0], prior[..., 1])).sum(axis=(1, 2))
    best = total[evidence.argmax()]
    shares, log_evidence = shrunk_shares(counts, common)
    assert log_evidence.sum() == pytest.approx(evidence.max(), abs=0.05)
    np.testing.assert_allclose(shares, best / best.sum(axis=2, keepdims=True), atol=0.02)


# ---------------------------------------------------------------------------- what is found
def test_each_source_has_its_T_and_its_share_of_right_labels():
    y, proba, codes, true = people(n=3000)
    found = fit_sources(proba, codes, true, NAMES, C)
    np.testing.assert_allclose(found.matrices, MATRICES, atol=0.08)
    right = [(codes[:, s] == y)[codes[:, s] >= 0].mean() for s in range(4)]
    np.testing.assert_allclose(found.right, right, atol=0.04)
    assert (found.log_evidence > 10).all()
    assert found.dependence.pvalue > 0.01
    assert abs(found.dependence.correlation) < 0.1


def test_sources_that_err_together_are_found_and_count_less():
    y, proba, codes, true = people(n=2000, copied=0.4, asked=4)
    found = fit_sources(proba, codes, true, NAMES, C)
    assert found.dependence.pvalue < 1e-6
    assert not len(found.dependence.pair)
    assert found.weights.mean() < 0.7
    right = [(codes[:, s] == y).mean() for s in range(4)]
    np.testing.assert_allclose(found.right, right, atol=0.12)
    posterior = slow_posterior(proba, codes, np.full(len(y), -1), found.matrices, found.weights)
    as_independent = slow_posterior(proba, codes, np.full(len(y), -1), found.matrices, np.ones(4))
    loss, worse = (-np.log(p[np.arange(len(y)), y] + 1e-12)[150:].mean() for p in (posterior, as_independent))
    assert loss < worse - 0.1


def test_a_pair_that_errs_together_is_named_if_a_third_source_errs_elsewhere():
    rng = np.random.default_rng(0)
    y = rng.integers(C, size=1000)
    is_hard = rng.random(1000) < 0.2
    wrong = [
        is_hard & (rng.random(1000) < 0.8),
        is_hard & (rng.random(1000) < 0.8),
        ~is_hard & (rng.random(1000) < 0.3),
    ]
    codes = np.column_stack([np.where(of, (y + 1) % C, y) for of in wrong])
    true = np.where(rng.random(1000) < 0.2, y, -1)
    dependence = fit_sources(np.full((1000, C), 1 / C), codes, true, NAMES[:3], C).dependence
    assert dependence.pair.tolist() == ["ann", "bob"]
    assert dependence.pvalue < 1e-6
    errors = (codes != y[:, None])[true >= 0]
    assert dependence.correlation == pytest.approx(np.corrcoef(errors[:, 0], errors[:, 1])[0, 1], abs=0.15)


@settings(max_examples=8)
@given(st.integers(0, 2**16), st.integers(0, 40), st.integers(2, 4))
def test_any_labels_give_finite_results(seed, n_verified, c):
    rng = np.random.default_rng(seed)
    proba, codes = rng.dirichlet(np.ones(c), size=60), rng.integers(-1, c, size=(60, 3))
    codes[:, 2] = rng.integers(-1, 1)  # a source that always says the same, or nothing
    true = np.where(np.arange(60) < n_verified, rng.integers(c, size=60), -1)
    found = fit_sources(proba, codes, true, np.arange(3), c)
    np.testing.assert_allclose(found.matrices.sum(axis=2), 1)
    for of in (found.matrices, found.weights, found.log_evidence, found.right, *found.dependence[:2]):
        assert np.isfinite(of).all()
    assert (found.weights >= 0).all()


# ---------------------------------------------------------------------------- the model
def test_sources_are_summed_up_and_verified_samples_are_known():
    """tests/methods/test_several_sources.py tests the posterior by all sources."""
    y, proba, codes, true = people(n=1200)
    labels = table(codes, true)
    model = LabelNoiseModel().fit(proba, labels)
    assert (model.label_posterior(proba, labels)[:150].argmax(axis=1) == y[:150]).all()
    summary = model.source_summary()
    assert summary.n_labels.to_dict() == dict(zip(NAMES, (codes >= 0).sum(axis=0), strict=True))
    assert summary.worst_flip["dan"] in ("x -> y", "y -> z", "z -> x")
    assert ((summary.lower <= summary.right) & (summary.right <= summary.upper)).all()
    assert "sources_differ" in model.diagnostics_
    assert "dependent_sources" not in model.diagnostics_


def hard_samples(seed, few):
    """Labels of three sources with the same wrong labels of hard samples; if `few`, one has more verified labels."""
    y, proba, _, true = people(seed, n=900)
    rng = np.random.default_rng(seed)
    wrong = (y + rng.integers(1, C, size=900)) % C
    codes = np.where(rng.random(900)[:, None] < [0.2, 0.35, 0.5], wrong[:, None], y[:, None])
    if few:
        codes = np.column_stack([np.where((np.arange(900) % 4)[:, None], -1, codes), y])
    right = [(of[of >= 0] == y[of >= 0]).mean() for of in codes.T]
    labels = pd.DataFrame(np.where(codes < 0, np.nan, codes), columns=NAMES[: codes.shape[1]])
    return LabelNoiseModel().fit(proba, labels.assign(verified=np.where(true >= 0, true, np.nan))), right


@pytest.mark.parametrize("few", [False, True])
def test_intervals_of_correct_labels_hold_where_sources_err_together(few):
    covered = []
    for seed in range(8):
        model, right = hard_samples(seed, few)
        summary = model.source_summary(0.9)
        covered += ((summary.lower <= right) & (right <= summary.upper))[:3].tolist()
    assert np.mean(covered) >= 0.85


def test_a_source_without_verified_labels_may_have_any_share_of_correct_ones():
    _, proba, codes, true = people(n=1200)
    codes[true >= 0, 3] = -1
    model = LabelNoiseModel().fit(proba, table(codes, true))
    summary = model.source_summary()
    assert (summary.lower["dan"], summary.upper["dan"]) == (0, 1)
    assert (summary.upper - summary.lower)[:3].max() < 0.4
    np.testing.assert_array_equal(summary.right, model.sources_.right)
    nobody = LabelNoiseModel(proba_of="true").fit(proba, table(codes, np.full_like(true, -1))).source_summary()
    assert nobody[["lower", "upper"]].isna().all(axis=None)


def test_shares_of_correct_labels_are_those_of_the_weighted_population():
    y, proba, codes, true = people(n=900)
    codes = np.where((y == 0)[:, None], (y + 1)[:, None] % C, y[:, None]).repeat(2, axis=1)  # class 0 is never labelled
    weight = np.where(y == 0, 5.0, 1.0)
    labels = pd.DataFrame(codes, columns=NAMES[:2]).assign(verified=np.where(true >= 0, true, np.nan))
    model = LabelNoiseModel().fit(proba, labels, classes=range(C), sample_weight=weight)
    assert model.source_summary().right["ann"] == pytest.approx(np.average(codes[:, 0] == y, weights=weight), abs=0.1)


def test_copies_in_groups_count_once():
    _, proba, codes, true = people(9, n=600, n_verified=100)  # as independent samples, copies have a p-value of 1e-5
    codes[true >= 0, 0] = np.where(codes[true >= 0, 0] < 0, 0, codes[true >= 0, 0])
    alone = LabelNoiseModel().fit(proba, table(codes, true)).source_summary()
    copies = table(codes.repeat(5, axis=0), true.repeat(5))
    model = LabelNoiseModel().fit(proba.repeat(5, axis=0), copies, groups=np.arange(600).repeat(5))
    assert model.sources_.dependence.pvalue > 1e-3
    grouped = model.source_summary()
    assert (grouped.upper - grouped.lower > 0.6 * (alone.upper - alone.lower)).all()


def test_what_cannot_be_judged_is_refused():
    _, proba, codes, true = people()
    labels = table(codes, true)
    model = LabelNoiseModel().fit(proba, labels)
    with refused("eve"):
        model.label_posterior(proba, labels.rename(columns={"dan": "eve"}))
    with refused("data frame with a column for each"):
        model.label_posterior(proba, labels["ann"].ffill().bfill())
    one = LabelNoiseModel().fit(proba, labels["ann"].ffill().bfill(), y_verified=labels["verified"])
    with refused("one column"):
        one.label_posterior(proba, labels)
    with refused("one source"):
        one.source_summary()
