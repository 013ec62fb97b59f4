"""`needs_verification`: batches like the samples of fit give no reason; other labels and other classes do."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from training import refused

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    GLCClassifier,
    LabelNoiseModel,
    TransitionClassifierCV,
)

C = 3


def batch(rng, n=1000, *, right=0.8, priors=None):
    """Samples of three classes, and labels."""
    y = rng.choice(C, n, p=priors)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    X[np.arange(n), y] += 2.2
    wrong = (y + rng.integers(1, C, size=n)) % C
    return X, y, np.where(rng.random(n) < right, y, wrong)


def needs(form, rng):
    """Fit, and return the method for X and labels of a batch."""
    X, y, noisy = batch(rng, 2000)
    verified = np.where(rng.random(len(y)) < 0.1, y, -1)
    if form == "probabilities":
        classifier = LogisticRegression().fit(X, noisy)
        proba = cross_val_predict(classifier, X, noisy, method="predict_proba")
        model = LabelNoiseModel().fit(proba, noisy, y_verified=verified)
        return lambda X, noisy, **given: model.needs_verification(classifier.predict_proba(X), noisy, **given)
    classifier = TransitionClassifierCV(LogisticRegression())
    if form == "em":
        classifier = EMTransitionClassifier("linear", max_epochs=10, random_state=0)
    return classifier.fit(X, noisy, y_verified=verified).needs_verification


@pytest.mark.parametrize(("form", "n_fits"), [("probabilities", 2), ("cv", 1), ("em", 1)])
def test_reasons_are_rare_without_a_change_and_certain_with_one(form, n_fits):
    alarms = 0
    for seed in range(n_fits):
        rng = np.random.default_rng(seed)
        reasons = needs(form, rng)
        X, _, noisy = batch(rng)
        alarms += bool(reasons(X, noisy))
        assert not reasons(X, None)
        worse = [batch(rng, right=0.7) for _ in range(3)]
        assert any("labels" in reasons(X, noisy) for X, _, noisy in worse)
        X, _, noisy = batch(rng, priors=[0.5, 0.25, 0.25])
        assert set(reasons(X, noisy)) == {"classes"}
        assert set(reasons(X, None)) == {"classes"}
    assert alarms <= 1


def test_groups_count_once_and_small_differences_in_large_batches_are_no_reason():
    rng = np.random.default_rng(0)
    reasons = needs("probabilities", rng)
    X, _, noisy = batch(rng, 40, right=0.65)
    copies = np.repeat(np.arange(40), 25)
    assert "labels" in reasons(X[copies], noisy[copies])
    assert not reasons(X[copies], noisy[copies], groups=copies)
    X, _, noisy = batch(rng, 50_000, right=0.79)
    assert not reasons(X, noisy)


def test_a_batch_with_other_predicted_classes_but_alike_labels_is_no_reason_for_labels():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y, noisy = batch(rng, 40_000, priors=[0.6, 0.38, 0.02])
        proba = LogisticRegression().fit(X, noisy).predict_proba(X)
        verified = np.where(np.arange(1000) < 100, y[:1000], -1)
        model = LabelNoiseModel().fit(proba[:1000], noisy[:1000], y_verified=verified)
        predicted = model.calibrate(proba).argmax(axis=1)
        rare = np.flatnonzero(predicted == 2)
        rows = np.append(rare[rare >= 1000], np.flatnonzero(predicted < 2)[-100:])
        assert set(model.needs_verification(proba[rows], noisy[rows])) == {"classes"}


def test_a_classifier_without_probabilities_out_of_fold_is_refused():
    X, _, noisy = batch(np.random.default_rng(0), 200)
    assert not hasattr(CrossEntropyClassifier("linear", max_epochs=1).fit(X, noisy), "needs_verification")
    clf = GLCClassifier("linear", max_epochs=2).fit(X, noisy, meta=(X[:20], noisy[:20]))
    with refused("oof_proba_"):
        clf.needs_verification(X, noisy)
