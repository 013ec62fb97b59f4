"""Labels that say little: classifiers and noise models return finite numbers."""

import json

import numpy as np
import pandas as pd
import pytest
from estimators import small
from sklearn.linear_model import LogisticRegression

from noisytransition import EMTransitionClassifier, LabelNoiseModel, TransitionClassifierCV, flip_labels
from noisytransition.report import noise_report
from noisytransition.transition import pair_noise

N = 120
rows = np.arange(N)
few = rows < 24


def problem(c=3):
    """Clouds of c classes: features, true labels and noisy labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(c, size=N)
    return rng.normal(size=(N, c)) + 3 * np.eye(c)[y], y, flip_labels(y, pair_noise(c, 0.3), random_state=0)


def labelled(verified, *sources, y):
    return pd.DataFrame(dict(enumerate(map(pd.Series, sources))) | {"verified": pd.Series(y).where(verified)})


def one_class(X, y, noisy):
    return X, labelled(few & (y == 1), noisy, y=y)


def silent(X, y, noisy):
    """Two sources label nothing but odd and even rows, and both are silent on one row."""
    sources = (pd.Series(noisy).where((rows % 2 == k) & (rows != 3)) for k in (0, 1))
    return X, labelled(few, *sources, y=y)


def repeats(X, y, noisy):
    """The features say which label was given."""
    return np.hstack([X, 3 * np.eye(3)[noisy]]), labelled(few, noisy, y=y)


def follows(X, y, noisy):
    """The label is a function of the features."""
    return X, labelled(few, (X + np.eye(3)[0]).argmax(axis=1), y=y)


def first(n):
    return lambda X, y, noisy: (X, labelled(rows < n, noisy, y=y))


ONE = first(1)  # enough for a noise model


@pytest.mark.filterwarnings("ignore::UserWarning")  # of reasons not to trust T, or not to trust an optimiser
@pytest.mark.parametrize(
    ("kind", "labels", "c"),
    [
        ("EM", ONE, 3),
        ("CV", ONE, 3),
        ("model", ONE, 3),
        ("EM", one_class, 3),
        ("model", one_class, 3),
        ("CV", first(4), 6),  # more classes than verified samples
        ("model", first(4), 6),
        ("EM", silent, 3),
        ("CV", silent, 3),
        ("EM", repeats, 3),
        ("CV", repeats, 3),
        ("CV", follows, 3),
        ("model", follows, 3),
    ],
)
def test_numbers_are_finite(kind, labels, c):
    X, table = labels(*problem(c))
    clf = {
        "EM": small(EMTransitionClassifier, module="linear"),
        "CV": TransitionClassifierCV(LogisticRegression(), cv=2, random_state=0),
        "model": LabelNoiseModel(),
    }[kind]
    given = np.full((N, c), 0.1 / c) + 0.9 * np.eye(c)[X[:, :c].argmax(axis=1)] if kind == "model" else X
    clf.fit(given, table)
    assert_finite(clf, getattr(clf, "noise_model_", clf))


def assert_finite(clf, model):
    low, high = model.transition_interval()
    T = model.transition_matrix_
    assert ((low >= 0) & (low <= T) & (high >= T) & (high <= 1)).all()
    assert ((model.transition_std_ >= 0) & (model.transition_std_ <= 0.5)).all()
    np.testing.assert_allclose(T.sum(axis=1), 1)
    for posterior in (clf.label_posterior(), model.label_posterior()):
        np.testing.assert_allclose(posterior.sum(axis=1), 1)
    assert clf.find_label_issues().label_quality.between(0, 0.5).all()
    report = noise_report(model) if clf is model else clf.noise_report()
    json.dumps(report.facts, allow_nan=False)
    if len(model.out_of_fold_.clean) > 1:
        for estimate in (model.accuracy_interval(), model.class_shares()[["share", "lower", "upper"]]):
            assert ((np.array(estimate) >= 0) & (np.array(estimate) <= 1)).all()
    else:
        for estimate in (model.accuracy_interval, model.class_shares):
            with pytest.raises(ValueError, match="at least two of them verified"):
                estimate()
    assert model.suggest_samples(5, random_state=0).notna().all(axis=None)
