"""Shares and accuracies of a weighted population, and of its subgroups."""

import functools

import numpy as np
import pandas as pd
import pytest
from posteriors import verified_at
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from noisytransition import EMTransitionClassifier, LabelNoiseModel, TransitionClassifierCV
from noisytransition.labels._draw import read_groups
from noisytransition.likelihood._rectified import rectified
from noisytransition.noise_model import _shares
from noisytransition.noise_model._shares import prediction_powered

WEIGHT_IN = {"city": 1.0, "country": 9.0}
SHARES = {"city": 0.6, "country": 0.1}
POPULATION = 0.1 * SHARES["city"] + 0.9 * SHARES["country"]


def survey(n=2000):
    """Samples of two equally large strata, of which one is nine tenths of the population."""
    rng = np.random.default_rng(0)
    stratum = rng.choice(["city", "country"], n)
    y = (rng.random(n) < pd.Series(stratum).map(SHARES)).to_numpy().astype(int)
    X = rng.normal(size=(n, 4)) + 1.5 * y[:, None] * (np.arange(4) < 2) + (stratum == "city")[:, None]
    noisy = np.where(rng.random(n) < 0.2, 1 - y, y)
    verified = verified_at(y, rng.choice(n, 200, replace=False))
    return X.astype(np.float32), noisy, verified, stratum, pd.Series(stratum).map(WEIGHT_IN).to_numpy()


X, NOISY, VERIFIED, STRATUM, WEIGHTS = survey()


@functools.cache
def model(weighted):
    proba = cross_val_predict(LogisticRegression(), X, NOISY, method="predict_proba")
    return LabelNoiseModel().fit(proba, NOISY, y_verified=VERIFIED, sample_weight=WEIGHTS if weighted else None)


# ---------------------------------------------------------------------------- weights
def test_shares_and_accuracies_are_of_the_weighted_population():
    share = model(True).class_shares().loc[1]
    assert share.lower < POPULATION < share.upper
    assert model(False).class_shares().loc[1].lower > POPULATION
    _, lower, upper = model(True).accuracy_interval(of="labels")
    assert lower < 0.8 < upper


@pytest.mark.parametrize(
    "clf",
    [
        EMTransitionClassifier("linear", cv=2, max_epochs=3, random_state=0),
        TransitionClassifierCV(LogisticRegression(), random_state=0),
    ],
)
def test_weights_of_fit_reach_the_shares(clf):
    share = clf.fit(X, NOISY, y_verified=VERIFIED, sample_weight=WEIGHTS).noise_model_.class_shares().loc[1]
    assert share.lower < POPULATION < share.upper
    held_out = clf.noise_model_.out_of_fold_
    of_noisy, of_clean = held_out.weights
    for rows, of in ((held_out.rows, of_noisy), (held_out.rows_of_clean, of_clean)):
        np.testing.assert_allclose(of / of[0], WEIGHTS[rows] / WEIGHTS[rows[0]])


def test_equal_weights_change_no_estimate():
    proba = model(False).out_of_fold_.in_order(*model(False).out_of_fold_.candidates[0][1:])
    found = LabelNoiseModel().fit(proba, NOISY, y_verified=VERIFIED, sample_weight=np.full(len(NOISY), 4.0))
    np.testing.assert_allclose(found.transition_matrix_, model(False).transition_matrix_)
    np.testing.assert_allclose(found.class_shares(), model(False).class_shares(), atol=0.01)
    of_city = 1.0 * (STRATUM == "city")  # verified samples of weight 0 say nothing about the population
    only = LabelNoiseModel().fit(proba, NOISY, y_verified=VERIFIED, sample_weight=of_city)
    share = only.class_shares().loc[1]
    assert share.lower < SHARES["city"] < share.upper


def test_an_estimate_with_weights_is_that_of_repeated_samples():
    rng = np.random.default_rng(0)
    times = rng.integers(1, 4, size=30), rng.integers(1, 4, size=12)
    f, of_verified, y = rng.random((30, 2)), rng.random((12, 2)), rng.integers(2, size=(12, 2)).astype(float)
    weighted = prediction_powered(0 * f, 0 * of_verified, y, design=times)
    np.testing.assert_allclose(weighted.share, np.average(y, axis=0, weights=times[1]))
    label, noisy = rng.integers(2, size=30), rng.integers(2, size=12)
    given = np.array([0] * 6 + [1] * 6)
    f, of_verified = (of / of.sum(axis=1, keepdims=True) for of in (f, of_verified))
    T = np.array([[0.7, 0.3], [0.2, 0.8]])
    sizes = np.bincount(np.append(label, given), np.concatenate(times))
    found = rectified(T, f, label, of_verified, noisy, given, 1.0 * times[1], sizes, np.concatenate(times))
    rows, pairs = (np.repeat(np.arange(len(of)), of) for of in times)
    of_pairs = of_verified[pairs], noisy[pairs], given[pairs], np.ones(len(pairs))
    repeated = rectified(T, f[rows], label[rows], *of_pairs, sizes, np.ones(len(rows) + len(pairs)))
    np.testing.assert_allclose(found.transition_matrix, repeated.transition_matrix)


# ---------------------------------------------------------------------------- subgroups
@pytest.mark.parametrize("weighted", [False, True])
def test_subgroups_have_their_own_shares_and_accuracies(weighted):
    shares = model(weighted).class_shares(by=STRATUM)
    accuracy = model(weighted).accuracy_interval(of="labels", by=pd.Series(STRATUM))
    assert list(shares.index) == [(name, label) for name in SHARES for label in (0, 1)]
    for name, share in SHARES.items():
        row = shares.loc[(name, 1)]
        assert row.lower < share < row.upper
        assert accuracy.lower[name] < 0.8 < accuracy.upper[name]
        assert accuracy.n_verified[name] == (VERIFIED[name == STRATUM] >= 0).sum()
        assert row.n_verified == (VERIFIED[name == STRATUM] == 1).sum()


def test_one_subgroup_is_the_population_and_few_verified_samples_give_wide_intervals():
    """Samples without a subgroup are in none."""
    whole = model(False).class_shares(by=np.zeros(len(NOISY)))
    np.testing.assert_allclose(whole, model(False).class_shares())
    shares = model(False).class_shares(by=VERIFIED >= 0)
    assert shares.loc[False][["lower", "upper", "n_verified"]].to_numpy().tolist() == [[0, 1, 0]] * 2
    np.testing.assert_allclose(shares.loc[False].share.sum(), 1)
    accuracy = model(False).accuracy_interval(by=VERIFIED >= 0)
    assert accuracy.loc[False, ["lower", "upper"]].tolist() == [0, 1]
    few = np.zeros(len(NOISY), dtype=int)
    few[np.flatnonzero(VERIFIED >= 0)[:3]] = 1
    shares = model(False).class_shares(by=few)
    widths = shares.upper - shares.lower
    assert (widths.loc[1] > 3 * widths.loc[0]).all()
    by = pd.Series(STRATUM).where(STRATUM == "city")
    assert model(False).class_shares(by=by).index.get_level_values(0).unique().tolist() == ["city"]


@pytest.mark.parametrize("call", [LabelNoiseModel.class_shares, LabelNoiseModel.accuracy_interval])
def test_subgroups_of_another_length_are_an_error(call):
    with pytest.raises(ValueError, match="by has 3 values"):
        call(model(False), by=[0, 1, 1])
    with pytest.raises(ValueError, match="Omit proba"):
        model(False).class_shares(by=np.zeros(2000), proba=[[0.5, 0.5]])


def test_periods_are_names_of_subgroups_and_groups():
    month = pd.Series(pd.period_range("2025-01", periods=4, freq="M")[np.arange(2000) % 4])
    shares = model(False).class_shares(by=month)
    pd.testing.assert_frame_equal(shares, model(False).class_shares(by=month.astype(str)))
    np.testing.assert_array_equal(read_groups(month, 2000), np.arange(2000) % 4)


def test_shares_are_nearly_those_of_fits_to_all_noisy_samples(monkeypatch):
    """Fits without a fold use some of the noisy samples: here two for each verified one."""
    whole = LabelNoiseModel.class_shares(model(False))
    monkeypatch.setattr(_shares, "_NOISY_PER_VERIFIED", 2)
    some = LabelNoiseModel.class_shares(model.__wrapped__(False))
    assert 0 < (some - whole).share.abs().max() < 0.1 * (whole.upper - whole.lower).min()
    width, width_of_some = ((shares.upper - shares.lower).mean() for shares in (whole, some))
    assert width_of_some < 1.1 * width
