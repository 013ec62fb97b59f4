import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from noisytransition import LabelNoiseModel, TransitionClassifierCV, flip_labels, pair_noise


def test_a_model_of_out_of_fold_probabilities_estimates_the_shares_of_a_batch():
    random = np.random.default_rng(0)
    y = random.integers(3, size=4000)
    X = random.normal(size=(4000, 3)) + 1.8 * np.eye(3)[y]
    noisy = flip_labels(y[:2000], pair_noise(3, 0.3), random_state=0)
    verified = np.where(np.arange(2000) < 200, y[:2000], -1)
    clf = TransitionClassifierCV(LogisticRegression(), random_state=0).fit(X[:2000], noisy, y_verified=verified)
    batch = np.flatnonzero((y == 2) | (random.random(4000) < 0.3))
    proba = clf.predict_proba(X[batch[batch >= 2000]])
    shares = LabelNoiseModel().fit(clf.oof_proba_, noisy, y_verified=verified).class_shares(0.99, proba=proba)
    truth = np.bincount(y[batch[batch >= 2000]]) / len(proba)
    assert ((shares["lower"] < truth) & (truth < shares["upper"])).all()
    with pytest.raises(TypeError, match="proba"):  # its model was fitted to probabilities of other clones
        clf.class_shares(proba=proba)
