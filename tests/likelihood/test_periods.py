"""T along time: smoothed shares beside a slow twin with dense matrices; verified samples of some periods only."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from posteriors import verified_at
from scipy import optimize, special

from noisytransition import EMTransitionClassifier, LabelNoiseModel, load
from noisytransition.likelihood._class_prior import mean_difference
from noisytransition.likelihood._periods import _STEPS, shares_along_time

N_PERIODS = 12


def slow_walk(n, total, levels, step):
    """Maximum of the posterior of one random walk of some logits, and Laplace's approximation of its log-evidence.

    `n` and `total` have the shape (n_logits, n_periods).
    """
    precision = np.zeros((N_PERIODS, N_PERIODS))
    precision[0, 0] = 1 / (step**2 * N_PERIODS)
    for t in range(1, N_PERIODS):
        precision[t - 1 : t + 1, t - 1 : t + 1] += np.array([[1, -1], [-1, 1]]) / step**2

    def loss(apart):
        share = special.expit(np.array(levels)[:, None] + apart)
        return -(n * np.log(share) + (total - n) * np.log(1 - share)).sum() + apart @ precision @ apart / 2

    apart = optimize.minimize(loss, np.zeros(N_PERIODS), tol=1e-12).x
    share = special.expit(np.array(levels)[:, None] + apart)
    hessian = precision + np.diag((total * share * (1 - share)).sum(axis=0))
    return share, -loss(apart) + (np.linalg.slogdet(precision)[1] - np.linalg.slogdet(hessian)[1]) / 2


@pytest.mark.parametrize("together", [False, True])
def test_shares_are_those_of_the_slow_twin(together):
    rng = np.random.default_rng(0)
    means = rng.dirichlet([3, 2, 1], size=(N_PERIODS, 2))
    if together:
        means = special.softmax(np.linspace(0, 1, N_PERIODS)[:, None, None] * [2, 1, -1] + np.ones((2, 1)), axis=2)
    counts = rng.poisson(60 * means).astype(float)
    common = counts.sum(axis=0) / counts.sum(axis=(0, 2))[:, None]
    logits = [(i, k) for i in range(2) for k in range(2)]
    n = np.array([counts[:, i, k] for i, k in logits])
    total = np.array([counts[:, i, k:].sum(axis=1) for i, k in logits])
    levels = [special.logit(common[i, k] / common[i, k:].sum()) for i, k in logits]
    found = {}
    for step in _STEPS:
        for parts in [[[0, 1, 2, 3]], [[0], [1], [2], [3]]]:
            walks = [slow_walk(n[of], total[of], [levels[k] for k in of], step) for of in parts]
            found[step, len(parts)] = sum(of for _, of in walks), np.concatenate([share for share, _ in walks])
    best = max(found, key=lambda of: found[of][0])
    assert (best[1] == 1) == together
    log_evidence, share = found[best]
    first, second = share.reshape(2, 2, N_PERIODS).transpose(1, 2, 0)
    expected = np.stack([first, (1 - first) * second, (1 - first) * (1 - second)], axis=2)
    shares, of_periods = shares_along_time(counts, common)
    np.testing.assert_allclose(shares, expected, atol=1e-4)
    np.testing.assert_allclose(of_periods.sum(), log_evidence, atol=1e-3)


@given(st.integers(0, 2**16), st.integers(2, 6), st.integers(1, 3), st.integers(1, 4))
def test_any_counts_give_shares(seed, n_periods, c, k):
    rng = np.random.default_rng(seed)
    counts = rng.gamma(0.3, 50, size=(n_periods, c, k)) * rng.integers(2, size=(n_periods, c, 1))
    common = rng.dirichlet(np.ones(k), size=c)
    shares, log_evidence = shares_along_time(counts, np.maximum(common, 1e-6))
    np.testing.assert_allclose(shares.sum(axis=2), 1)
    assert (shares >= 0).all()
    assert np.isfinite(log_evidence).all()


# ---------------------------------------------------------------------------- the model
def worse_labels(seed, n=3600):
    """Labels of twelve months, right with a probability that falls from 0.9."""
    rng = np.random.default_rng(seed)
    month = np.arange(n) * N_PERIODS // n
    y = rng.integers(2, size=n)
    x = rng.normal(size=n) + 2 * y - 1
    proba = special.expit(2 * x)
    right = 0.9 - 0.3 * month / (N_PERIODS - 1)
    noisy = np.where(rng.random(n) < right, y, 1 - y)
    dates = pd.Series(pd.period_range("2025-01", periods=N_PERIODS, freq="M")[month])
    return y, noisy, np.column_stack([1 - proba, proba]), month, dates


def fitted(y, noisy, proba, sources, rows):
    return LabelNoiseModel().fit(proba, noisy, y_verified=verified_at(y, rows), sources=sources)


def test_periods_are_in_the_order_of_time():
    y, noisy, proba, month, dates = worse_labels(0, n=600)
    rows = np.arange(0, 600, 8)
    names = [f"{m:%b}" for m in dates.dt.to_timestamp().drop_duplicates()]
    categories = pd.Categorical(np.array(names)[month], categories=[*names, "none"], ordered=True)
    expected = fitted(y, noisy, proba, dates, rows).sources_.matrices
    for sources in (dates.dt.to_timestamp().to_numpy(), pd.Series(categories)):
        model = fitted(y, noisy, proba, sources, rows)
        np.testing.assert_allclose(model.sources_.matrices, expected)
    assert model.source_summary().index.tolist() == names
    without_order = fitted(y, noisy, proba, dates.astype(str), rows).sources_.matrices
    assert not np.allclose(without_order, expected, atol=1e-3)
    numbers, categories = (fitted(y, noisy, proba, of, rows) for of in (month, pd.Series(pd.Categorical(month))))
    np.testing.assert_array_equal(numbers.sources_.matrices, categories.sources_.matrices)  # have no order


# ---------------------------------------------------------------------------- where verified samples are from
def test_verified_samples_of_some_months_are_named():
    y, noisy, proba, month, dates = worse_labels(0)
    rows = np.random.default_rng(0).choice(np.flatnonzero(month < 3), 150, replace=False)
    with pytest.warns(UserWarning, match=r"No label of \['2025-04'"):
        fitted(y, noisy, proba, dates, rows)


@pytest.mark.parametrize("of_groups", [False, True])
def test_verified_samples_drawn_at_random_are_from_all_sources(of_groups):
    """The next test repeats the test of means."""
    rng = np.random.default_rng(0)
    y, noisy, proba, _, dates = worse_labels(0, n=1800)
    groups = np.arange(len(y)) // 10 if of_groups else np.arange(len(y))
    rows = np.flatnonzero(np.isin(groups, rng.choice(np.unique(groups), 200 // (1 + 9 * of_groups), replace=False)))
    model = LabelNoiseModel().fit(proba, noisy, y_verified=verified_at(y, rows), sources=dates, groups=groups)
    assert "from_other_sources" not in model.diagnostics_


def test_the_test_of_means_has_its_level():
    rng = np.random.default_rng(0)
    pvalues = []
    for _ in range(400):
        groups = rng.integers(30, size=120)
        values = rng.normal(size=(120, 3)) + rng.normal(size=(30, 3))[groups]
        weights = rng.choice([0.5, 2.0], size=120)
        pvalues.append(mean_difference(values, rng.normal(scale=2**0.5, size=(500, 3)), weights, groups)[1])
    assert np.mean(np.array(pvalues) < 0.05) < 0.1


def test_sources_that_label_all_samples_tell_nothing():
    y, noisy, proba, _, _ = worse_labels(0, n=600)
    table = pd.DataFrame({"a": noisy, "b": 1 - noisy, "c": y, "verified": np.where(np.arange(600) % 5 == 0, y, -1)})
    assert "from_other_sources" not in LabelNoiseModel().fit(proba, table).diagnostics_


@pytest.mark.parametrize("form", ["period", "date"])
def test_periods_are_saved_and_read_as_columns(form, tmp_path):
    y, noisy, _, month, dates = worse_labels(0, n=600)
    sources = dates if form == "period" else dates.dt.to_timestamp()
    X = np.column_stack([y, month]).astype(np.float32)
    clf = EMTransitionClassifier("linear", max_epochs=1, random_state=0)
    clf.fit(X, noisy, y_verified=np.where(np.arange(600) % 5 == 0, y, -1), sources=sources)
    first = clf.source_summary().index[0]
    assert first == ("2025-01" if form == "period" else "2025-01-01")
    clf.save(tmp_path / "clf")
    loaded = load(tmp_path / "clf")
    wide = pd.DataFrame({"by": sources, "label": noisy}).pivot(columns="by")["label"]
    np.testing.assert_array_equal(loaded.label_posterior(X, wide), clf.label_posterior(X, wide))
