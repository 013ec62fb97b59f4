"""Class shares of another batch, from probabilities of a fitted classifier."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from noisytransition import LabelNoiseModel, TransitionClassifierCV, flip_labels

T = [[0.7, 0.3, 0.0], [0.0, 0.7, 0.3], [0.3, 0.0, 0.7]]


def drawn(shares, random):
    y = random.choice(3, 2000, p=shares)
    return random.normal(size=(2000, 6)) + 1.8 * np.eye(3, 6)[y], y


def test_a_model_of_out_of_fold_probabilities_estimates_the_shares_of_a_batch():
    random = np.random.default_rng(0)
    X, y = drawn([0.5, 0.3, 0.2], random)
    noisy = flip_labels(y, T, random_state=0)
    verified = np.where(np.arange(2000) < 200, y, -1)
    clf = TransitionClassifierCV(LogisticRegression(), random_state=0).fit(X, noisy, y_verified=verified)
    X_batch, y_batch = drawn([0.2, 0.2, 0.6], random)
    proba = clf.predict_proba(X_batch)
    shares = LabelNoiseModel().fit(clf.oof_proba_, noisy, y_verified=verified).class_shares(0.99, proba=proba)
    truth = np.bincount(y_batch) / 2000
    assert ((shares["lower"] < truth) & (truth < shares["upper"])).all()
    assert (shares["upper"] - shares["lower"]).max() < 0.3
    with pytest.raises(TypeError, match="proba"):  # its model was fitted to probabilities of other clones
        clf.class_shares(proba=proba)
