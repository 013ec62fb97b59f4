"""Samples that nobody labelled, and labels without features."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    GLCClassifier,
    LabelNoiseModel,
    TransitionClassifierCV,
    count_transition_matrix,
)

T = np.array([[0.85, 0.15], [0.25, 0.75]])


@functools.cache
def samples(n=900):
    """A third has no label, of which most are of class 1."""
    rng = np.random.default_rng(0)
    without = np.arange(n) % 3 == 0
    y = (rng.random(n) < np.where(without, 0.8, 0.3)).astype(int)
    X = (rng.normal(size=(n, 3)) + 2 * y[:, None] * (np.arange(3) < 2)).astype(np.float32)
    noisy = np.where(rng.random(n) < T[y, 0], 0, 1)
    verified = np.where(rng.random(n) < 0.2, y, -1)
    table = pd.DataFrame(
        {"label": np.where(without, np.nan, noisy), "verified": np.where(verified < 0, np.nan, verified)}
    )
    return X, y, table


def probabilities():
    X, _, table = samples()
    has_label = table.label.notna().to_numpy()
    proba = np.empty((len(X), 2))
    proba[has_label] = cross_val_predict(
        LogisticRegression(), X[has_label], table.label[has_label], method="predict_proba"
    )
    proba[~has_label] = LogisticRegression().fit(X[has_label], table.label[has_label]).predict_proba(X[~has_label])
    return proba


@pytest.mark.parametrize("kind", ["model", "CV"])
def test_samples_without_a_label_count_in_shares_and_are_predicted(kind):
    X, y, table = samples()
    fit = LabelNoiseModel().fit if kind == "model" else TransitionClassifierCV(LogisticRegression(), random_state=0).fit
    with pytest.warns(UserWarning, match="samples have no label"):
        fitted = fit(probabilities() if kind == "model" else X, table)
    model = fitted
    if kind == "CV":
        model = fitted.noise_model_
        without = (table.label.isna() & table.verified.isna()).to_numpy()
        assert fitted.oof_proba_.shape == (900, 2)
        assert (fitted.oof_proba_[without].argmax(axis=1) == y[without]).mean() > 0.8
    share = model.class_shares().loc[1]
    assert share.lower < y.mean() < share.upper
    assert abs(model.noisy_class_counts_.sum() - table.verified.isna().sum()) < 1
    labelled = model.class_shares(by=table.label.notna())
    for has_label, part in ((True, y[table.label.notna()]), (False, y[table.label.isna()])):
        row = labelled.loc[(has_label, 1)]
        assert row.lower < part.mean() < row.upper
    right = (table.label == y)[table.label.notna()].mean()
    _, lower, upper = model.accuracy_interval(of="labels")
    assert lower < right < upper


def test_samples_without_a_label_change_no_other_estimate():
    _, _, table = samples()
    proba = probabilities()
    known = (table.label.notna() | table.verified.notna()).to_numpy()
    with pytest.warns(UserWarning, match="samples have no label"):
        found = LabelNoiseModel().fit(proba, table)
    expected = LabelNoiseModel().fit(proba[known], table[known])
    np.testing.assert_array_equal(found.transition_matrix_, expected.transition_matrix_)
    np.testing.assert_array_equal(found.transition_std_, expected.transition_std_)
    np.testing.assert_array_equal(found.label_posterior()[known], expected.label_posterior())
    np.testing.assert_array_equal(found.label_quality()[known], expected.label_quality())
    assert np.isnan(found.label_quality()[~known]).all()
    assert known[found.find_label_issues().position].all()
    assert set(found.relabel(threshold=1.1e-9 + 0.9)) <= {0, 1}


def test_samples_without_a_label_teach_a_classifier_nothing():
    X, _, table = samples()
    known = (table.label.notna() | table.verified.notna()).to_numpy()
    moved = X.copy()
    moved[~known] = 1e3
    clf = TransitionClassifierCV(LogisticRegression(), random_state=0)
    found = []
    for features in (X, moved):
        with pytest.warns(UserWarning, match="samples have no label"):
            found.append(clf.fit(features, table).estimator_.coef_)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("cls", [EMTransitionClassifier, GLCClassifier, CrossEntropyClassifier])
def test_networks_leave_them_out(cls):
    X, _, table = samples()
    known = (table.label.notna() | table.verified.notna()).to_numpy()
    given = (X, table), (X[known], table[known])
    found = []
    for features, labels in given:
        y = labels if cls is not CrossEntropyClassifier else labels.label.fillna(labels.verified)
        clf = cls("linear", max_epochs=1, random_state=0)
        found.append(clf.fit(features, y).predict_proba(X))
    np.testing.assert_array_equal(*found)


def test_em_predicts_them_out_of_fold_and_counts_them():
    X, y, table = samples()
    known = (table.label.notna() | table.verified.notna()).to_numpy()
    clf = EMTransitionClassifier("linear", max_epochs=8, random_state=0).fit(X, table)
    proba = clf.oof_proba_
    assert proba.shape == (len(X), 2)
    assert (proba.argmax(axis=1) == y)[~known].mean() > 0.8
    model = clf.noise_model_
    assert len(model.label_posterior()) == len(X)
    share = model.class_shares().loc[1]
    assert share.lower < y.mean() < share.upper
    one = EMTransitionClassifier("linear", max_epochs=8, random_state=0).fit(X[known], table[known])
    np.testing.assert_array_equal(model.transition_matrix_, one.transition_matrix_)
    labelled = one.noise_model_.class_shares().loc[1]
    assert labelled.share != share.share
    rest = model.suggest_samples(len(X) - int(table.verified.notna().sum()))
    assert set(rest.position) == set(np.flatnonzero(table.verified.isna()))


# ---------------------------------------------------------------------------- no features
@pytest.mark.parametrize("names", [None, ["bad", "good"]])
def test_labels_without_features(names):
    rng = np.random.default_rng(1)
    y = rng.choice(2, p=[0.7, 0.3], size=2000)
    noisy = np.where(rng.random(2000) < T[y, 0], 0, 1)
    verified = np.where(rng.random(2000) < 0.15, y, -1)
    known = verified >= 0
    if names is not None:
        noisy, verified = np.array(names)[noisy], np.where(known, np.array(names)[verified], None)
    model = LabelNoiseModel().fit(None, noisy, y_verified=verified)
    assert model.classes_.tolist() == (names or [0, 1])
    low, high = model.transition_interval(0.99)
    assert ((low < T) & (high > T)).all()
    share = model.class_shares(0.99).iloc[1]
    assert share.lower < 0.3 < share.upper
    counted = count_transition_matrix(y[known], np.unique(noisy, return_inverse=True)[1][known])
    assert abs(model.transition_matrix_ - counted).max() < 0.15
    separate = LabelNoiseModel().fit(None, noisy[~known], y_clean=verified[known], y_clean_noisy=noisy[known])
    np.testing.assert_allclose(separate.transition_matrix_, model.transition_matrix_, atol=0.01)
