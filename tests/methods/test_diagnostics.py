"""Reasons not to trust T, on problems with and without such reasons."""

import re
import warnings
from functools import cache

import numpy as np
import pytest
from posteriors import verified_at
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from noisytransition import (
    EMTransitionClassifier,
    LabelNoiseModel,
    TransitionClassifierCV,
    count_transition_matrix,
    em_transition_matrix,
)
from noisytransition.transition import flip_labels, pair_noise, symmetric_noise, transition_error

SGD = {"optimizer": "sgd", "lr": 0.1, "optimizer__momentum": 0.9}
FAST = SGD | {"max_epochs": 8, "batch_size": 64, "random_state": 0, "cv": 2}
# of the samples whose last column is 1; the others keep their labels
OF_HALF = [[0.1, 0.9, 0.0], [0.0, 1.0, 0.0], [0.0, 0.9, 0.1]]


@cache
def table(n=900, n_clean=90, *, by_column=False, seed=1):
    """Three classes that overlap, and a column of 0 and 1: samples, true and noisy labels, the clean ones first."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n + n_clean)
    X = np.column_stack([rng.normal(size=(len(y), 2)), rng.integers(2, size=len(y))])
    X[:, :2] += 2.2 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    flipped = flip_labels(y, OF_HALF if by_column else pair_noise(3, 0.3), random_state=seed)
    return X, y, np.where((X[:, 2] == 1) | (not by_column), flipped, y), n_clean


def fit(rows, *, pairs=False, **params):
    X, y, noisy, n = rows
    clf = EMTransitionClassifier(**FAST | params)
    return clf.fit(X[n:], noisy[n:], meta=(X[:n], y[:n]), y_clean_noisy=noisy[:n] if pairs else None)


def guessed_labels(n=2000):
    """Return T, and samples of `table` with feature-dependent noise."""
    X, y, _, n_clean = table(n, 150)
    looks = -((X[:, None, :2] - 2.2 * np.array([[0, 0], [0, 1], [1, 0]])) ** 2).sum(axis=2) / 2
    flips = pair_noise(3, 0.4)[y] * softmax(looks, axis=1) ** 0.4
    drawn = np.random.default_rng(0).random((len(y), 1)) * flips.sum(axis=1, keepdims=True)
    noisy = (flips.cumsum(axis=1) < drawn).sum(axis=1)
    return count_transition_matrix(y, noisy, 3), (X, y, noisy, n_clean)


def test_labels_that_depend_on_the_look_of_the_sample_are_found():
    truth, rows = guessed_labels()
    clf = fit(rows)
    assert "look like another class" in clf.diagnostics_["not_one_T"]
    assert clf.noise_model_.feature_dependence_ > 0.1
    of = clf.noise_model_.out_of_fold_
    _, proba, of_clean = of.candidates[0]
    one_T = em_transition_matrix(proba, of.noisy, proba_clean=of_clean, y_clean=of.clean)
    error = transition_error(truth, clf.transition_matrix_)
    assert error < 0.6 * transition_error(truth, one_T)
    low, high = clf.transition_interval()
    assert ((low <= clf.transition_matrix_) & (high >= clf.transition_matrix_)).all()
    assert ((low <= truth) & (high >= truth)).mean() >= 0.85
    np.testing.assert_allclose(clf.noisy_class_counts_.sum(), len(rows[1]) - rows[3], rtol=1e-3)
    assert fit(guessed_labels(300)[1], pairs=True).noise_model_.feature_dependence_ == 0


def test_one_T_gives_no_warning():
    for pairs in (True, False):
        with warnings.catch_warnings(action="error"):
            clf = fit(table(), pairs=pairs)
        assert clf.diagnostics_ == {}
        assert transition_error(pair_noise(3, 0.3), clf.transition_matrix_) < 0.15


def test_pairs_that_contradict_T_are_gone_by():
    _, y, noisy, n = rows = table(1500, 200, by_column=True, seed=2)
    truth, counted = count_transition_matrix(y, noisy, 3), count_transition_matrix(y[:n], noisy[:n], 3)
    clf = fit(rows, pairs=True)
    assert "not_one_T" in clf.diagnostics_
    error = transition_error(truth, clf.transition_matrix_)
    assert error < transition_error(truth, counted)
    low, high = clf.transition_interval(0.95)
    assert ((low <= truth) & (truth <= high)).mean() > 0.8
    np.testing.assert_allclose(clf.noisy_class_counts_.sum(), len(y) - n, rtol=1e-3)
    np.testing.assert_array_equal(clf.transition_history_[-1], clf.transition_matrix_)


def test_verified_labels_that_are_wrong_are_found():
    X, y, noisy, n = table()
    wrong = np.arange(n) % 8 == 0
    verified = np.where(wrong, (y[:n] + 2) % 3, y[:n])
    clf = fit((X, np.append(verified, y[n:]), noisy, n), pairs=True)
    reason = clf.diagnostics_["verified_labels"]
    listed = [int(number) for number in re.findall(r"\d+", reason.partition("check")[2])]
    assert len(listed) > 3
    assert wrong[listed].mean() > 0.8
    assert "not_one_T" not in clf.diagnostics_
    assert transition_error(pair_noise(3, 0.3), clf.transition_matrix_) < 0.1


@pytest.mark.parametrize("make", ["EM", "any classifier"])
def test_a_classifier_that_is_worse_than_its_labels_is_warned_of(make):
    X, y, noisy, n = table()
    noise = np.random.default_rng(0).normal(size=X.shape)  # tells nothing
    clf = EMTransitionClassifier(**FAST) if make == "EM" else TransitionClassifierCV(GaussianNB(), random_state=0)
    with pytest.warns(UserWarning, match="worse than the labels"):
        clf.fit(noise[n:], noisy[n:], meta=(noise[:n], y[:n]), y_clean_noisy=noisy[:n])
    assert "worse_than_labels" in clf.noise_report().facts["diagnostics"]


def test_reasons_of_fits_whose_error_bars_hold_as_often_are_not_warned_of():
    with warnings.catch_warnings(action="error", category=UserWarning):
        clf = fit(table(30, 6, seed=2))
    assert set(clf.diagnostics_) <= {"not_one_T", "not_separated", "under_trained"}
    low, high = clf.transition_interval(0.9)  # labels that leave T open
    wide = np.flatnonzero(np.diag(high - low) > 0.5)
    assert str(wide.tolist()) in clf.diagnostics_["not_separated"]


def test_a_network_that_is_trained_too_little_is_found():
    clf = fit(table(), lr=1e-4)
    assert "under-trained" in clf.diagnostics_["under_trained"]
    new = fit(table(), lr=1e-4, transition_init=clf.transition_init_)  # there is no warm-up to go on from
    assert clf.histories_["em"][0, "train_loss"] < new.histories_["em"][0, "train_loss"] - 0.005
    assert "under_trained" not in fit(table(300, 30), lr=1e-4, max_epochs=1).diagnostics_  # nothing to compare with


# ---------------------------------------------------------------------------- labels with different codes
def fitted(y, noisy, proba, rows, **given):
    return LabelNoiseModel().fit(proba, noisy, y_verified=verified_at(y, rows), **given)


def clouds(T):
    """Clouds: samples, true and noisy labels, and out-of-fold probabilities."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    X = (rng.normal(size=(400, 3)) + 2.5 * np.eye(3)[y]).astype(np.float32)
    noisy = flip_labels(y, T, random_state=0)
    return X, y, noisy, cross_val_predict(LogisticRegression(), X, noisy, method="predict_proba")


SYMMETRIC, EVERY_SIXTH = symmetric_noise(3, 0.3), np.arange(0, 400, 6)
EM = EMTransitionClassifier("linear", max_epochs=3, cv=2, random_state=0)


@pytest.mark.parametrize(("clf", "order"), [(EM, [1, 2, 0]), (TransitionClassifierCV(LogisticRegression()), [1, 0, 2])])
def test_other_codes_of_verified_labels(clf, order):
    X, y, noisy, _ = clouds(SYMMETRIC)
    with pytest.warns(UserWarning, match="coded alike"):
        clf.fit(X, noisy, y_verified=verified_at(np.array(order)[y], EVERY_SIXTH))
    moved = [f"{j} as {i}" for i, j in sorted(enumerate(order), key=lambda pair: pair[1]) if i != j]
    assert clf.diagnostics_["codes"].endswith(", ".join(moved))


def test_other_columns_of_probabilities():
    _, y, noisy, proba = clouds(SYMMETRIC)
    with pytest.warns(UserWarning, match="0 as 1, 1 as 0"):
        fitted(y, noisy, proba[:, [1, 0, 2]], EVERY_SIXTH)


@pytest.mark.parametrize(
    ("T", "chosen"),
    [(symmetric_noise(3, 0.6), False), (pair_noise(3, 0.4), False), (np.eye(3), False), (SYMMETRIC, True)],
    ids=["0.6", "pair", "none", "chosen as suspicious"],
)
def test_labels_with_the_same_codes_give_no_alarm(T, chosen):
    _, y, noisy, proba = clouds(T)
    rows = np.flatnonzero(noisy != y)[:60] if chosen else EVERY_SIXTH
    assert "codes" not in fitted(y, noisy, proba, rows).diagnostics_


# ---------------------------------------------------------------------------- verified samples from elsewhere
@cache
def months(seed, n=2000):
    """In the first quarter of the samples, class 1 is more frequent."""
    rng = np.random.default_rng(seed)
    is_early = np.arange(n) < n // 4
    y = (rng.random(n) < np.where(is_early, 0.7, 0.2)).astype(int)
    X = rng.normal(size=(n, 4)) + 2 * y[:, None] * (np.arange(4) < 2)
    noisy = np.where(rng.random(n) < 0.2, 1 - y, y)
    return y, noisy, is_early, cross_val_predict(LogisticRegression(), X, noisy, method="predict_proba", cv=3)


def test_samples_of_the_first_months_differ_from_the_others():
    y, noisy, is_early, proba = months(0)
    rows = np.random.default_rng(0).choice(np.flatnonzero(is_early), 300, replace=False)
    with pytest.warns(UserWarning, match="verified samples differ from the others"):
        fitted(y, noisy, proba, rows)


@pytest.mark.parametrize("how", ["random", "by label", "by probability", "groups"])
def test_known_draws_give_no_alarm(how):
    rng = np.random.default_rng(1)
    for seed in range(3):
        y, noisy, _, proba = months(seed)
        rows = rng.choice(len(y), 200, replace=False)
        given = {}
        if how == "by label":
            rows = np.concatenate([rng.choice(np.flatnonzero(noisy == j), 100, replace=False) for j in (0, 1)])
        if how == "by probability":
            drawn = np.where(proba[:, 1] > 0.5, 3.0, 0.5)
            rows = np.flatnonzero(rng.random(len(y)) < 0.07 * drawn)
            given = {"verified_probability": drawn}
        if how == "groups":
            groups = np.argsort(np.argsort(proba[:, 1] + 0.3 * rng.normal(size=len(y)))) // 10  # of similar samples
            rows = np.flatnonzero(np.isin(groups, rng.choice(groups.max() + 1, 30, replace=False)))
            given = {"groups": groups}
        assert "from_elsewhere" not in fitted(y, noisy, proba, rows, **given).diagnostics_
