"""Samples that nobody labelled, labels without features, and labels that nobody verified."""

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
    flip_labels,
    transition_error,
)
from noisytransition.transition import pair_noise

T = np.array([[0.85, 0.15], [0.25, 0.75]])
LOGISTIC = TransitionClassifierCV(LogisticRegression(), random_state=0)


def samples():
    """A third has no label, of which most are of class 1: features, true labels, table, which samples have a label."""
    n, rng = 600, np.random.default_rng(0)
    without = np.arange(n) % 3 == 0
    y = (rng.random(n) < np.where(without, 0.8, 0.3)).astype(int)
    X = (rng.normal(size=(n, 3)) + 2 * y[:, None] * (np.arange(3) < 2)).astype(np.float32)
    noisy = pd.Series(np.where(rng.random(n) < T[y, 0], 0, 1)).mask(without)
    table = pd.DataFrame({"label": noisy, "verified": pd.Series(y).where(rng.random(n) < 0.2)})
    return X, y, table, table.notna().any(axis=1).to_numpy()


X, TRUE, TABLE, KNOWN = samples()


def test_samples_without_a_label_count_in_shares_and_change_no_other_estimate():
    has = TABLE.label.notna()
    plain = LogisticRegression().fit(X[has], TABLE.label[has])
    proba = plain.predict_proba(X)
    proba[has] = cross_val_predict(plain, X[has], TABLE.label[has], method="predict_proba")
    with pytest.warns(UserWarning, match="samples have no label"):
        found = LabelNoiseModel().fit(proba, TABLE)
    with pytest.warns(UserWarning, match="samples have no label"):
        clf = LOGISTIC.fit(X, TABLE)
    for model in (found, clf.noise_model_):
        shares = {None: model.class_shares().loc[1]} | dict(model.class_shares(by=has).xs(1, level=1).iterrows())
        for part, share in shares.items():
            assert share.lower < TRUE[slice(None) if part is None else has == part].mean() < share.upper
        assert abs(model.noisy_class_counts_.sum() - TABLE.verified.isna().sum()) < 1
        _, lower, upper = model.accuracy_interval(of="labels")
        assert lower < (TABLE.label == TRUE)[has].mean() < upper
    assert clf.oof_proba_.shape == (600, 2)
    assert (clf.oof_proba_.argmax(axis=1) == TRUE)[~KNOWN].mean() > 0.8
    expected = LabelNoiseModel().fit(proba[KNOWN], TABLE[KNOWN])
    for name in ("transition_matrix_", "transition_std_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("label_posterior", "label_quality"):
        np.testing.assert_array_equal(getattr(found, name)()[KNOWN], getattr(expected, name)())
    assert np.isnan(found.label_quality()[~KNOWN]).all()
    assert KNOWN[found.find_label_issues().position].all()
    assert set(found.relabel(threshold=0.9)) <= {0, 1}


@pytest.mark.filterwarnings("ignore:.* samples have no label")
@pytest.mark.parametrize("cls", [EMTransitionClassifier, GLCClassifier, CrossEntropyClassifier])
def test_they_teach_a_classifier_nothing(cls):
    moved = np.where(KNOWN[:, None], X, 1e3)
    np.testing.assert_array_equal(*(LOGISTIC.fit(features, TABLE).estimator_.coef_ for features in (X, moved)))
    found = []
    for features, labels in ((X, TABLE), (X[KNOWN], TABLE[KNOWN])):
        y = labels if cls is not CrossEntropyClassifier else labels.label.fillna(labels.verified)
        found.append(cls("linear", max_epochs=1, random_state=0).fit(features, y).predict_proba(X))
    np.testing.assert_array_equal(*found)


def test_em_predicts_them_out_of_fold_and_counts_them():
    clf, one = (
        EMTransitionClassifier("linear", max_epochs=8, lr=0.02, cv=2, random_state=0).fit(X[of], TABLE[of])
        for of in (slice(None), KNOWN)
    )
    assert clf.oof_proba_.shape == (len(X), 2)
    assert (clf.oof_proba_.argmax(axis=1) == TRUE)[~KNOWN].mean() > 0.8
    model = clf.noise_model_
    assert len(model.label_posterior()) == len(X)
    share = model.class_shares().loc[1]
    assert share.lower < TRUE.mean() < share.upper
    assert share.share != one.noise_model_.class_shares().loc[1].share
    np.testing.assert_array_equal(model.transition_matrix_, one.transition_matrix_)
    rest = model.suggest_samples(int(TABLE.verified.isna().sum()))
    assert set(rest.position) == set(np.flatnonzero(TABLE.verified.isna()))


@pytest.mark.parametrize("names", [None, ["bad", "good"]])
def test_labels_without_features(names):
    rng = np.random.default_rng(1)
    y = rng.choice(2, p=[0.7, 0.3], size=1500)
    codes = noisy = np.where(rng.random(1500) < T[y, 0], 0, 1)
    verified = np.where(rng.random(1500) < 0.15, y, -1)
    known = verified >= 0
    if names is not None:
        noisy, verified = np.array(names)[noisy], np.where(known, np.array(names)[verified], None)
    model = LabelNoiseModel().fit(None, noisy, y_verified=verified)
    assert model.classes_.tolist() == (names or [0, 1])
    low, high = model.transition_interval(0.99)
    assert ((low < T) & (high > T)).all()
    share = model.class_shares(0.99).iloc[1]
    assert share.lower < 0.3 < share.upper
    assert abs(model.transition_matrix_ - count_transition_matrix(y[known], codes[known])).max() < 0.15
    separate = LabelNoiseModel().fit(None, noisy[~known], y_clean=verified[known], y_clean_noisy=noisy[known])
    np.testing.assert_allclose(separate.transition_matrix_, model.transition_matrix_, atol=0.01)


# ---------------------------------------------------------------------------- without verified samples
PAIR = pair_noise(3, 0.3)
EM = EMTransitionClassifier("linear", max_epochs=10, lr=0.02, cv=2, random_state=0)
both = pytest.mark.parametrize("clf", [EM, LOGISTIC], ids=["EM", "CV"])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    X = (rng.normal(size=(600, 4)) + 4 * np.eye(4)[y]).astype(np.float32)
    return X, y, flip_labels(y, PAIR, random_state=0)


def fitted(clf, *data):
    with pytest.warns(UserWarning, match="no sample is verified"):
        return clf.fit(*data)


@both
def test_T_and_wrong_labels_are_found_and_shares_are_refused(clf, data):
    X, y, y_noisy = data
    fitted(clf, X, y_noisy)
    assert "not_verified" in clf.diagnostics_
    assert transition_error(PAIR, clf.transition_matrix_) < 0.25  # of the identity: 0.6
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1, rtol=1e-6)
    assert (clf.predict(X) == y).mean() > (y_noisy == y).mean() + 0.1
    issues = clf.find_label_issues(X, y_noisy).position
    assert (y_noisy != y)[issues].mean() > 0.8
    assert clf.oof_proba_.shape == (600, 3)
    with pytest.raises(ValueError, match="verified"):
        clf.noise_model_.class_shares()


@both
def test_several_sources_are_taken_as_independent(clf, data):
    X, y, y_noisy = data
    fitted(clf, X, pd.DataFrame({"Ann": y_noisy, "Bob": flip_labels(y, PAIR, random_state=1), "rule": y}))
    assert "independent" in clf.diagnostics_["sources_not_verified"]
    summary = clf.noise_model_.source_summary()
    assert (summary.weight == 1).all()
    assert summary.right.idxmax() == "rule"
    assert (clf.predict(X) == y).mean() > 0.9
