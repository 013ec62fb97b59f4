"""Groups of samples that are not independent, in all estimators that cross-fit, and in folds of verified samples."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict

from noisytransition import (
    EMTransitionClassifier,
    GLCClassifier,
    LabelNoiseModel,
    TransitionClassifierCV,
    VerifiedKFold,
    flip_labels,
)
from noisytransition.data._warnings import warn_of_groups
from noisytransition.fitting._cross_fitting import fold_of_rows, fold_of_samples
from noisytransition.labels._read import Labels

T = np.array([[0.8, 0.2], [0.3, 0.7]])


def patients():
    """Near-copies of patients with one noisy label each, the patient, and true labels of some patients."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    centres = rng.normal(size=(120, 8)) + 1.6 * y[:, None] * (np.arange(8) < 2)
    patient = np.repeat(np.arange(120), 10)
    X = (centres[patient] + 0.1 * rng.normal(size=(1200, 8))).astype(np.float32)
    noisy = flip_labels(y, T, random_state=rng)[patient]
    verified = np.where(np.isin(patient, rng.choice(120, 30, replace=False)), y[patient], -1)
    return X, y[patient], noisy, patient, verified


X, TRUE, NOISY, PATIENT, VERIFIED = patients()


def table(verified):
    return pd.DataFrame({"label": NOISY, "verified": np.where(verified >= 0, verified, np.nan), "group": PATIENT})


@functools.cache
def probabilities():
    clf = LogisticRegression(C=0.1)
    return cross_val_predict(clf, X, NOISY, cv=GroupKFold(3), groups=PATIENT, method="predict_proba")


def small_em(cv=2):
    return EMTransitionClassifier("linear", max_epochs=3, random_state=0, cv=cv)


# ---------------------------------------------------------------------------- folds
def labels_of(noisy, clean, groups):
    """Labels of noisy samples and of separate clean samples."""
    given, true = (np.concatenate(pair) for pair in ((noisy, [-1] * len(clean)), ([-1] * len(noisy), clean)))
    return Labels(np.arange(3), given, true, len(noisy), None, None, true < 0, groups)


@given(st.integers(0, 1000), st.sampled_from([2, 3]))
def test_a_group_is_in_one_fold_and_groups_of_one_sample_change_nothing(seed, cv):
    rng = np.random.default_rng(seed)
    noisy, clean = rng.integers(3, size=40), rng.integers(3, size=15)
    of = rng.integers(12, size=55)
    folds = np.concatenate(fold_of_samples(labels_of(noisy, clean, of), cv, seed))
    assert all(len(set(folds[of == group])) == 1 for group in of)
    assert set(folds) <= set(range(cv))
    numbers = rng.permutation(55)
    found = fold_of_samples(labels_of(noisy, clean, numbers), cv, seed)
    for one, other in zip(found, fold_of_samples(labels_of(noisy, clean, None), cv, seed), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found[0], fold_of_rows(noisy, cv, np.random.default_rng(seed)))


class Watched(ClassifierMixin, BaseEstimator):
    """Logistic regression that notes which groups, in the first column, it has seen of samples that it predicts."""

    seen = ()

    def fit(self, X, y):
        self.groups_ = set(X[:, 0])
        self.clf_ = LogisticRegression().fit(X[:, 1:], y)
        self.classes_ = self.clf_.classes_
        return self

    def predict_proba(self, X):
        Watched.seen += (self.groups_ & set(X[:, 0]),)
        return self.clf_.predict_proba(X[:, 1:])


@pytest.mark.filterwarnings("ignore:.*pass groups=")
@pytest.mark.parametrize("groups", [None, PATIENT])
def test_a_clone_has_seen_no_sample_of_a_group_that_it_predicts(groups):
    Watched.seen = ()
    clf = TransitionClassifierCV(Watched(), random_state=0)
    clf.fit(np.column_stack([PATIENT, X]), NOISY, y_verified=VERIFIED, groups=groups)
    assert any(Watched.seen[:3]) == (groups is None)  # the clones of all noisy labels are the first ones


# ---------------------------------------------------------------------------- the same numbers
@pytest.mark.parametrize("make", [LabelNoiseModel, small_em])
def test_groups_of_one_sample_change_nothing(make):
    of = slice(None, None, 5)
    features = (probabilities() if make is LabelNoiseModel else X)[of]
    found = []
    for groups in (None, np.arange(len(features))[::-1]):
        np.random.seed(0)  # noqa: NPY002
        fitted = make().fit(features, NOISY[of], y_verified=VERIFIED[of], groups=groups)
        model = getattr(fitted, "noise_model_", fitted)
        found.append((model.transition_matrix_, model.transition_std_, model.class_shares(), model.accuracy_interval()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_copies_of_samples_add_no_certainty():
    """With copies of each sample as a group, error bars of T and intervals are those of the samples."""
    of = slice(None, None, 10)  # a sample of each patient
    one = LabelNoiseModel(prior=None).fit(probabilities()[of], NOISY[of], y_verified=VERIFIED[of])
    copies = np.repeat(np.arange(len(NOISY))[of], 6)
    six = LabelNoiseModel(prior=None).fit(
        probabilities()[copies], NOISY[copies], y_verified=VERIFIED[copies], groups=copies
    )
    np.testing.assert_allclose(six.transition_matrix_, one.transition_matrix_, atol=0.02)
    np.testing.assert_allclose(six.transition_std_, one.transition_std_, rtol=0.1)
    for interval in ("class_shares", "accuracy_interval"):
        of_six, of_one = (np.array(getattr(model, interval)()).T[:3] for model in (six, one))  # without counts
        np.testing.assert_allclose(of_six, of_one, atol=0.02)
    without = LabelNoiseModel(prior=None).fit(probabilities()[copies], NOISY[copies], y_verified=VERIFIED[copies])
    for fewer, more in zip(*(np.diff(model.accuracy_interval()[1:]) for model in (without, six)), strict=True):
        assert fewer < 0.6 * more


@pytest.mark.filterwarnings("ignore:T may be wrong")  # nothing is verified
def test_copies_of_samples_add_no_certainty_without_verified_samples():
    of = slice(None, None, 10)
    copies = np.repeat(np.arange(len(NOISY))[of], 6)
    model = LabelNoiseModel(prior=None, proba_of="true")
    one = model.fit(probabilities()[of], NOISY[of]).transition_std_
    six = model.fit(probabilities()[copies], NOISY[copies], groups=copies).transition_std_
    np.testing.assert_allclose(six, one, rtol=0.02)


@pytest.mark.parametrize("clf", [small_em(), TransitionClassifierCV(LogisticRegression())])
def test_intervals_contain_the_truth_of_patients(clf):
    right = (NOISY == TRUE).mean()
    model = clf.fit(X, table(VERIFIED)).noise_model_
    _, lower, upper = model.accuracy_interval(of="labels")
    assert lower < right < upper
    assert upper - lower > 0.1  # 30 patients, not 300 samples
    low, high = model.transition_interval(0.99)
    assert ((low < T) & (high > T)).all()
    share = model.class_shares().loc[1]
    assert share.lower < TRUE.mean() < share.upper


# ---------------------------------------------------------------------------- folds of verified samples
def test_no_sample_of_a_group_is_in_both_sets_of_a_fold():
    verified = np.where(np.arange(len(X)) % 2, VERIFIED, -1)  # half of the samples of a patient
    folds = VerifiedKFold(3).split(X, table(verified))
    by_argument = VerifiedKFold(3).split(X, NOISY, PATIENT, y_verified=verified)
    tested = []
    for (train, test), (same_train, same_test) in zip(folds, by_argument, strict=True):
        assert not set(PATIENT[train]) & set(PATIENT[test])
        assert set(PATIENT[train]) | set(PATIENT[test]) == set(PATIENT)
        np.testing.assert_array_equal(train, same_train)
        np.testing.assert_array_equal(test, same_test)
        tested += test.tolist()
    assert sorted(tested) == np.flatnonzero(verified >= 0).tolist()


# ---------------------------------------------------------------------------- errors, and methods without folds
def test_fewer_groups_than_folds_are_an_error():
    for groups in (np.zeros(len(X)), np.arange(len(X)) % 2):
        for clf in (small_em(cv=3), TransitionClassifierCV(LogisticRegression())):
            with pytest.raises(ValueError, match="groups"):
                clf.fit(X, NOISY, y_verified=VERIFIED, groups=groups)
        with pytest.raises(ValueError, match="groups"):
            list(VerifiedKFold(3).split(X, NOISY, groups, y_verified=VERIFIED))
    clf = GLCClassifier("linear", max_epochs=1, random_state=0)  # has no folds
    one = clf.fit(X, NOISY, y_verified=VERIFIED).predict_proba(X)
    np.testing.assert_array_equal(clf.fit(X, NOISY, y_verified=VERIFIED, groups=groups).predict_proba(X), one)


# ---------------------------------------------------------------------------- groups that were not passed
ALIKE = "pass groups="


def test_similar_samples_beside_each_other_and_copies_are_warned_of_unless_they_are_chance():
    for form in (np.asarray, pd.DataFrame, lambda X: X.reshape(-1, 2, 4)):
        with pytest.warns(UserWarning, match=ALIKE):
            warn_of_groups(form(X), NOISY)
    rng = np.random.default_rng(0)
    rows = rng.permutation(np.repeat(np.arange(200), 5))
    with pytest.warns(UserWarning, match="80% of the samples are copies"):
        warn_of_groups(rng.normal(size=(200, 3))[rows], rows % 2)
    with warnings.catch_warnings(action="error"):
        warn_of_groups(rng.integers(2, size=(1000, 3)), rows % 2)  # three yes-or-no questions


@pytest.mark.parametrize("clf", [small_em(), TransitionClassifierCV(LogisticRegression(), random_state=0)])
def test_groups_are_not_warned_of_if_they_are_passed(clf):
    with pytest.warns(UserWarning, match=ALIKE):
        clf.fit(X, NOISY, y_verified=VERIFIED)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ALIKE)
        clf.fit(X, NOISY, y_verified=VERIFIED, groups=PATIENT)


@pytest.mark.parametrize("load", [load_digits, load_iris, load_breast_cancer, load_wine])
def test_independent_samples_give_no_alarm(load):
    X, y = load(return_X_y=True)
    # digits are not sorted: those of a writer would be beside each other
    for order in [np.arange(len(y))] if load is load_digits else [np.arange(len(y)), y.argsort(kind="stable")]:
        with warnings.catch_warnings(action="error"):
            texts = np.array(["a text", "another"])[y % 2]
            for features in (X[order], X[order, :1], texts, X[:2], sparse.csr_array(X)):
                warn_of_groups(features, y[order][: features.shape[0]])


@pytest.mark.parametrize("size", [4, 10])
def test_near_copies_in_any_order_are_warned_of(size):
    rng = np.random.default_rng(0)
    patient = rng.permutation(np.repeat(np.arange(600 // size), size))
    X = rng.normal(size=(600, 8))[patient] + 0.1 * rng.normal(size=(600, 8))
    y = rng.integers(2, size=600)
    verified = np.where(np.arange(600) % 5 == 0, y, -1)
    with pytest.warns(UserWarning, match="nearly copies of others.*groups="):
        TransitionClassifierCV(LogisticRegression()).fit(X, y, y_verified=verified)
    with warnings.catch_warnings(action="error"):
        warn_of_groups(rng.normal(size=(600, 8)), y)
        warn_of_groups(np.round(X), y)  # values that repeat
        warn_of_groups(np.where(y == 1, 30, 0)[:, None] + rng.normal(size=(600, 8)), y)  # distant classes
