"""Labels that nobody verified: T rests on the classifier alone, and the fit says so."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from noisytransition import EMTransitionClassifier, TransitionClassifierCV, flip_labels, transition_error
from noisytransition.transition import pair_noise

T = pair_noise(3, 0.3)
CLASSIFIERS = [
    EMTransitionClassifier("linear", max_epochs=10, lr=0.02, cv=2, random_state=0),
    TransitionClassifierCV(LogisticRegression(), cv=2, random_state=0),
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    X = (rng.normal(size=(600, 4)) + 4 * np.eye(4)[y]).astype(np.float32)
    return X, y, flip_labels(y, T, random_state=0)


def fitted(clf, *data):
    with pytest.warns(UserWarning, match="no sample is verified"):
        return clf.fit(*data)


@pytest.mark.parametrize("clf", CLASSIFIERS, ids=["EM", "CV"])
def test_T_and_wrong_labels_are_found_and_shares_are_refused(clf, data):
    X, y, y_noisy = data
    fitted(clf, X, y_noisy)
    assert "not_verified" in clf.diagnostics_
    assert transition_error(T, clf.transition_matrix_) < 0.25  # of the identity: 0.6
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1, rtol=1e-6)
    assert (clf.predict(X) == y).mean() > (y_noisy == y).mean() + 0.1
    issues = clf.find_label_issues(X, y_noisy).position
    assert (y_noisy != y)[issues].mean() > 0.8
    assert clf.oof_proba_.shape == (600, 3)
    with pytest.raises(ValueError, match="verified"):
        clf.noise_model_.class_shares()


@pytest.mark.parametrize("clf", CLASSIFIERS, ids=["EM", "CV"])
def test_several_sources_are_taken_as_independent(clf, data):
    X, y, y_noisy = data
    fitted(clf, X, pd.DataFrame({"Ann": y_noisy, "Bob": flip_labels(y, T, random_state=1), "rule": y}))
    assert "independent" in clf.diagnostics_["sources_not_verified"]
    summary = clf.noise_model_.source_summary()
    assert (summary.weight == 1).all()
    assert summary.right.idxmax() == "rule"
    assert (clf.predict(X) == y).mean() > 0.9
