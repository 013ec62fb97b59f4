"""Clean samples stratified by imbalanced classes: all estimates refer to the noisy samples."""

from functools import cache

import numpy as np
import pytest

from noisytransition import EMTransitionClassifier, transition_error
from noisytransition.transition import flip_labels

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
T2 = [[0.9, 0.1], [0.3, 0.7]]
FAST = {"optimizer": "sgd", "lr": 0.1, "optimizer__momentum": 0.9, "batch_size": 64, "max_epochs": 8, "cv": 2}
FAST |= {"random_state": 0}


@cache
def problem(*, at_random=False, n=1000):
    """Two clouds that overlap, a tenth of the samples in one of them; 60 clean samples of each class, or 120 of all."""
    rng = np.random.default_rng(0)
    y = (rng.random(4 * n) < 0.1).astype(int)
    X = np.float32(rng.normal(size=(len(y), 2)) + 2.2 * y[:, None])
    of_classes = [np.flatnonzero(y == k)[:60] for k in range(2)]
    clean = np.arange(120) if at_random else np.concatenate(of_classes)
    rest = np.setdiff1d(np.arange(len(y)), clean)
    train, test = rest[:n], rest[n:]
    noisy = flip_labels(y, T2, random_state=1)
    return (X[train], noisy[train], X[clean], y[clean], noisy[clean]), (X[test], y[test]), y[train]


@cache
def fit(sampling="stratified", *, at_random=False, pairs=False, **params):
    (X, noisy, X_clean, y_clean, noisy_meta), *_ = problem(at_random=at_random)
    clf = EMTransitionClassifier(**FAST | params, verified_sampling=sampling)
    return clf.fit(X, noisy, meta=(X_clean, y_clean), y_clean_noisy=noisy_meta if pairs else None)


@pytest.mark.parametrize("pairs", [False, True])
def test_T_and_shares_are_those_of_the_noisy_samples(pairs):
    *_, y = problem()
    clf, share = fit(pairs=pairs), y.mean()
    np.testing.assert_allclose(clf.noise_model_.log_prior_ratio_, np.log([0.5 / (1 - share), 0.5 / share]), atol=0.3)
    assert transition_error(T2, clf.transition_matrix_) < 0.15
    assert clf.noisy_class_counts_[1] / clf.noisy_class_counts_.sum() == pytest.approx(share, rel=0.25)
    assert "unknown_shares" not in clf.diagnostics_
    low, high = clf.transition_interval(0.95)
    assert ((low <= T2) & (high >= T2)).all()


def test_without_it_they_are_not_and_the_fit_asks():
    *_, y = problem()
    plain = fit("random")
    assert not plain.noise_model_.log_prior_ratio_.any()
    assert transition_error(T2, plain.transition_matrix_) > transition_error(T2, fit().transition_matrix_) + 0.1
    assert plain.noisy_class_counts_[1] / plain.noisy_class_counts_.sum() > 1.3 * y.mean()
    assert "stratified" in plain.diagnostics_["unknown_shares"]
    assert "unknown_shares" not in fit("random", at_random=True).diagnostics_


def test_the_classifier_is_as_good_as_with_random_samples():
    _, (X, y), _ = problem()
    stratified, at_random = fit(), fit("random", at_random=True)
    assert stratified.score(X, y) > at_random.score(X, y) - 0.02
    assert stratified.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.05)


def test_without_folds_the_same_is_found():
    clf = fit(cv=None)
    np.testing.assert_allclose(clf.noise_model_.log_prior_ratio_, fit().noise_model_.log_prior_ratio_, atol=0.4)
    assert transition_error(T2, clf.transition_matrix_) < 0.2
