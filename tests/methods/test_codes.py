"""Verified labels, given labels and probabilities with different codes are warned of."""

import functools

import numpy as np
import pytest
from posteriors import verified_at
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from noisytransition import EMTransitionClassifier, LabelNoiseModel, TransitionClassifierCV, flip_labels
from noisytransition.transition import pair_noise, symmetric_noise


@functools.cache
def clouds(c=3, n=400):
    rng = np.random.default_rng(0)
    y = rng.integers(c, size=n)
    X = (rng.normal(size=(n, c)) + 2.5 * np.eye(c)[y]).astype(np.float32)
    noisy = flip_labels(y, symmetric_noise(c, 0.3), random_state=0)
    return X, y, noisy, np.arange(n) % 6 == 0, cross_val_predict(LogisticRegression(), X, noisy, method="predict_proba")


EM = EMTransitionClassifier("linear", max_epochs=3, cv=2, random_state=0)
CV = TransitionClassifierCV(LogisticRegression())


@pytest.mark.parametrize(("clf", "order"), [(EM, [1, 2, 0]), (CV, [1, 0, 2])])
def test_other_codes_of_verified_labels(clf, order):
    X, y, noisy, is_verified, _ = clouds()
    verified = np.where(is_verified, np.array(order)[y], -1)
    with pytest.warns(UserWarning, match="coded alike"):
        clf.fit(X, noisy, y_verified=verified)
    moved = [f"{j} as {i}" for i, j in sorted(enumerate(order), key=lambda pair: pair[1]) if i != j]
    assert clf.diagnostics_["codes"].endswith(", ".join(moved))


def test_other_columns_of_probabilities():
    _, y, noisy, is_verified, proba = clouds()
    with pytest.warns(UserWarning, match="0 as 1, 1 as 0"):
        LabelNoiseModel().fit(proba[:, [1, 0, 2]], noisy, y_verified=np.where(is_verified, y, -1))


@pytest.mark.parametrize("T", [symmetric_noise(3, 0.6), pair_noise(3, 0.4), np.eye(3)], ids=["0.6", "pair", "none"])
def test_noisy_labels_with_the_same_codes_give_no_alarm(T):
    X, y, _, is_verified, _ = clouds()
    noisy = flip_labels(y, T, random_state=1)
    proba = cross_val_predict(LogisticRegression(), X, noisy, method="predict_proba")
    verified = np.where(is_verified & (np.arange(len(y)) > 5), y, -1)
    model = LabelNoiseModel().fit(proba, np.where(noisy == y, y, noisy), y_verified=verified)
    assert "codes" not in model.diagnostics_


def test_verified_samples_chosen_as_suspicious_give_no_alarm():
    _, y, noisy, _, proba = clouds()
    verified = verified_at(y, np.flatnonzero(noisy != y)[:60])
    model = LabelNoiseModel().fit(proba, noisy, y_verified=verified)
    assert "codes" not in model.diagnostics_
