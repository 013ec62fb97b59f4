"""Verified samples: a table of given and verified labels, or fit(X, y, y_verified=labels)."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from estimators import CLASSIFIERS, small
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline
from training import assert_same, refused

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    GLCClassifier,
    LabelNoiseModel,
    MetaTransitionClassifier,
    TransitionClassifierCV,
    VerifiedKFold,
    flip_labels,
    make_verified_scorer,
)
from noisytransition.transition import pair_noise

NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture
def verified(blobs):
    """Samples, given labels, the mask of verified samples, and labels of all samples (random where not verified)."""
    X, y, X_clean, y_clean, *_ = blobs
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X) + len(X_clean))
    mask = order >= len(X)
    noisy_of_clean = np.where(rng.random(len(y_clean)) < 0.4, (y_clean + 1) % 3, y_clean)
    y_noisy, y_true = np.concatenate([y, noisy_of_clean])[order], np.concatenate([y, y_clean])[order]
    return np.concatenate([X, X_clean])[order], y_noisy, mask, y_true


def known(verified):
    """Split the same samples into noisy and clean sets."""
    X, y, mask, true = verified
    return (X[~mask], y[~mask]), {"meta": (X[mask], true[mask]), "y_clean_noisy": y[mask]}


def table(y, mask, true):
    """Given and verified labels as a data frame, with any index."""
    return pd.DataFrame({"label": y, "verified": pd.Series(true).where(mask)}).iloc[::-1].iloc[::-1]


# ---------------------------------------------------------------------------- one result
@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_verified_rows_are_clean_rows_with_known_noisy_labels_to_the_bit(cls, verified):
    X, y, mask, true = verified
    args, clean = known(verified)
    by_pair = small(cls).fit(*args, **clean)
    assert_same(by_pair, small(cls).fit(X, table(y, mask, true)[["verified", "label"]]), X)
    assert_same(by_pair, small(cls).fit(X, y, y_verified=np.where(mask, true, -1)), X)


@pytest.mark.parametrize(("cls", "mark"), [(EMTransitionClassifier, None), (MetaTransitionClassifier, np.nan)])
def test_some_verified_rows_may_have_a_given_label(cls, mark, verified):
    X, y, mask, true = verified
    start = {"transition_init": "count"} if cls is MetaTransitionClassifier else {}
    has_none = mask & (np.cumsum(mask) % 2 == 0)
    given = np.where(has_none, mark, y)
    _, clean = known((X, given, mask, true))
    found = small(cls, **start).fit(X, given, y_verified=np.where(mask, true, -1))
    assert_same(found, small(cls, **start).fit(X[~mask], y[~mask], **clean), X)
    with_all = small(cls, **start).fit(X, y, y_verified=np.where(mask, true, -1))
    without = small(cls).fit(X[~mask], y[~mask], meta=(X[mask], true[mask]))
    for other in (with_all, without):
        assert not np.allclose(found.transition_matrix_, other.transition_matrix_)


def test_a_noisy_label_may_be_among_those_of_verified_rows_alone(verified):
    X, y, mask, true = verified
    y = np.where(mask & (np.cumsum(mask) < 5), 7, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = small(CrossEntropyClassifier).fit(X, y, y_verified=np.where(mask, true, -1))
    assert clf.classes_.tolist() == [0, 1, 2, 7]


@pytest.mark.parametrize("unlabelled", ["verified samples", "others"])
def test_minus_one_in_both_is_refused_with_the_reason(unlabelled, verified):
    X, y, mask, true = verified
    given, checked = np.where(mask == (unlabelled == "verified samples"), -1, y), np.where(mask, true, -1)
    for name, fit in (("y", small(GLCClassifier).fit), ("y_noisy", LabelNoiseModel().fit)):
        with pytest.raises(ValueError, match=f"-1 is a label in {name} "):
            fit(np.full((len(y), 3), 1 / 3), given, y_verified=checked)
    if unlabelled == "verified samples":  # with the mark that the error names
        given, checked = (np.where(labels == -1, np.nan, labels) for labels in (given, checked))
        assert small(GLCClassifier).fit(X, given, y_verified=checked).classes_.tolist() == [0, 1, 2]


# ---------------------------------------------------------------------------- scores
def test_a_score_is_of_verified_rows_alone(verified):
    X, y, mask, true = verified
    true = (true + (np.arange(len(true)) % 7 == 0)) % 3  # so that some predictions are wrong
    clf = small(GLCClassifier).fit(X, table(NAMES[y], mask, NAMES[true]))
    expected = clf.score(X[mask], NAMES[true[mask]])
    labels = np.where(mask, NAMES[true], None)
    assert clf.score(X, table(NAMES[y], mask, NAMES[true])) == expected
    for y_verified in (labels, labels.tolist(), pd.Series(labels, dtype="string")):
        assert clf.score(X, NAMES[y], y_verified=y_verified) == expected
        assert make_verified_scorer("accuracy")(clf, X, NAMES[y], y_verified=y_verified) == expected
    weight = np.arange(len(X)) % 3
    weighted = clf.score(X, NAMES[y], weight, y_verified=labels)
    assert weighted == clf.score(X[mask], NAMES[true[mask]], weight[mask])
    assert clf.score(X, NAMES[y]) != expected
    for nobody in (labels[~mask], np.full(3, -1)):
        with pytest.raises(ValueError, match="no sample is verified"):
            clf.score(X[: len(nobody)], NAMES[y][: len(nobody)], y_verified=nobody)
    with pytest.raises(ValueError, match=r"text labels .* number labels"):
        clf.score(X, NAMES[y], y_verified=true)


# ---------------------------------------------------------------------------- pipelines and searches
def by_hand(verified, score):
    """Scores of held-out verified rows."""
    X, y, mask, true = verified
    scores = []
    for train, test in VerifiedKFold(2).split(X, table(y, mask, true)):
        clf = small(GLCClassifier, lr=0.05).fit(X[train], table(y, mask, true).iloc[train])
        assert mask[test].all()
        scores.append(score(true[test], clf.predict(X[test])))
    return scores


@pytest.mark.parametrize(("piped", "with_routing"), [(False, False), (True, False), (True, True)])
def test_a_search_scores_held_out_rows_by_their_verified_labels(piped, with_routing, verified):
    """With routing, the verified labels are a keyword."""
    X, y, mask, true = verified
    clf = Pipeline([("clf", small(GLCClassifier))]) if piped else small(GLCClassifier)
    search = GridSearchCV(clf, {"clf__lr" if piped else "lr": [0.05]}, cv=VerifiedKFold(2), error_score="raise")
    given = (X, table(y, mask, true)), {}
    if with_routing:
        given = (X, y), {"y_verified": np.where(mask, true, -1)}
        search.set_params(scoring=make_verified_scorer("accuracy"))
    with sklearn.config_context(enable_metadata_routing=with_routing):
        search.fit(*given[0], **given[1])
    accuracy = by_hand(verified, accuracy_score)
    assert [search.cv_results_[f"split{k}_test_score"][0] for k in range(2)] == accuracy
    best = small(GLCClassifier, lr=0.05).fit(X, table(y, mask, true))
    assert_same(search.best_estimator_[-1] if piped else search.best_estimator_, best, X)
    assert search.score(X, table(y, mask, true)) == best.score(X[mask], true[mask])


def test_named_metrics_are_of_verified_rows(verified):
    X, y, mask, true = verified
    given = small(GLCClassifier, lr=0.05), X, table(y, mask, true)
    balanced = pickle.loads(pickle.dumps(make_verified_scorer("balanced_accuracy")))  # as processes do
    found = cross_val_score(*given, cv=VerifiedKFold(2), scoring=balanced)
    assert found.tolist() == by_hand(verified, balanced_accuracy_score)
    by_default, alike = (
        cross_val_score(*given, cv=VerifiedKFold(2), scoring=scoring) for scoring in (None, make_verified_scorer(None))
    )
    np.testing.assert_array_equal(alike, by_default)
    with pytest.raises(ValueError, match="accurracy"):
        make_verified_scorer("accurracy")


def test_other_tools_of_scikit_learn(verified):
    """As the table of docs/clean_data.rst says."""
    X, y, mask, true = verified
    clf, labels, checked = small(GLCClassifier), table(y, mask, true), np.where(mask, true, -1)
    with refused("oof_proba_"):
        cross_val_predict(clf, X, labels, cv=KFold(3), method="predict_proba")
    with pytest.raises(ValueError, match="routing"):
        CalibratedClassifierCV(clf, cv=VerifiedKFold(3)).fit(X, y, y_verified=checked)
    fitted = clone(clf).fit(X, labels)
    assert CalibratedClassifierCV(FrozenEstimator(fitted)).fit(X[mask], true[mask]).score(X, y) > 0.5
    shuffled = StratifiedKFold(3, shuffle=True, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        stack = StackingClassifier([("clf", clf)], clf, cv=shuffled).fit(X, y, y_verified=checked)
        voted = VotingClassifier([("clf", clf)]).fit(X, y, y_verified=checked)
    assert stack.predict(X).shape == y.shape
    np.testing.assert_array_equal(voted.predict(X), fitted.predict(X))


@pytest.mark.parametrize("cls", [GLCClassifier, EMTransitionClassifier])
def test_a_fold_without_verified_rows_is_refused_with_what_to_do(cls, blobs, true_labels):
    X, y = blobs[:2]
    checked = np.where(np.arange(300) < 60, true_labels, -1)
    labels = table(y, checked >= 0, true_labels)
    for tool in (
        lambda: cross_val_score(small(cls), X, labels, cv=KFold(5), error_score="raise"),
        lambda: cross_val_score(small(cls), X, y, cv=KFold(5), params={"y_verified": checked}, error_score="raise"),
        lambda: CalibratedClassifierCV(small(cls), cv=KFold(5)).fit(X, y, y_verified=checked),
    ):
        with refused("VerifiedKFold"):
            tool()
    clf = small(cls).fit(X, labels)
    with pytest.raises(ValueError, match="VerifiedKFold"):
        clf.score(X[60:], labels[60:])


def drawn_by_label(n=4000):
    """Verified samples mostly with the rare given label 1, and a feature that is inaccurate for it."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.2).astype(int)
    given = np.where(rng.random(n) < 0.1, 1 - y, y)
    X = (y * (rng.random(n) < 0.5))[:, None].astype(float)  # right in all of class 0 and in half of class 1
    verified = np.full(n, np.nan)
    for label, count in ((0, 100), (1, 300)):
        rows = rng.choice(np.flatnonzero(given == label), count, replace=False)
        verified[rows] = y[rows]
    return X, y, pd.DataFrame({"label": given, "verified": verified})


def test_verified_rows_that_were_drawn_by_label_stand_for_all_in_scores():
    """In a fold of verified rows, the labels of all are those of the fit."""
    X, y, labels = drawn_by_label()
    clf = TransitionClassifierCV(LogisticRegression(), random_state=0)
    rows, whole = labels.dropna().index, make_verified_scorer("balanced_accuracy")
    clf.fit(X, labels)
    assert clf.score(X[rows], labels.loc[rows]) == clf.score(X, labels)
    assert whole(clf, X[rows], labels.loc[rows]) == whole(clf, X, labels)
    plain = LogisticRegression().fit(X, X[:, 0])  # predicts the same, and has no noise model
    assert make_verified_scorer("accuracy")(plain, X, labels) == clf.score(X, labels)
    right = (clf.predict(X) == y).mean()
    assert abs(clf.score(X, labels) - right) < 0.05 < abs((clf.predict(X[rows]) == y[rows]).mean() - right)


# ---------------------------------------------------------------------------- drawn with known probabilities
@pytest.fixture(scope="module")
def suspicious():
    """Verified samples that were drawn up to eight times as often where the label looks wrong."""
    X, y = make_blobs(1500, centers=3, cluster_std=2.5, random_state=0)
    given = flip_labels(y, pair_noise(3, 0.3), random_state=0)
    proba = cross_val_predict(LogisticRegression(), X, given, method="predict_proba")
    relative = 0.25 + (proba[np.arange(1500), given] < 0.3) * 1.75
    relative /= relative.mean()
    rows = np.random.default_rng(0).choice(1500, 300, replace=False, p=relative / 1500)
    frame = pd.DataFrame({"label": given, "verified": np.full(1500, np.nan), "verified_probability": relative})
    frame.loc[rows, "verified"] = y[rows]
    return X, y, frame


@pytest.mark.parametrize(
    "clf", [TransitionClassifierCV(LogisticRegression(), random_state=0), small(EMTransitionClassifier)]
)
def test_known_probabilities_of_the_draw_are_a_column_of_the_table(clf, suspicious):
    X, y, frame = suspicious
    with pytest.warns(UserWarning, match="chosen"):
        clone(clf).fit(X, frame[["label", "verified"]])
    clf = clone(clf).fit(X, frame)
    assert "chosen" not in clf.diagnostics_
    checked = frame.verified.notna()
    model = clf.noise_model_.out_of_fold_
    drawn = pd.Series(model.drawn, index=model.rows_of_clean).sort_index()
    pd.testing.assert_series_equal(drawn, frame.verified_probability[checked], check_names=False)
    shares = clf.noise_model_.class_shares(0.99)
    truth = np.bincount(y) / len(y)
    assert ((shares.lower < truth) & (truth < shares.upper)).all()
    right, weights = (clf.predict(X) == y)[checked], 1 / frame.verified_probability[checked]
    assert clf.score(X, frame) == pytest.approx(np.average(right, weights=weights))
    assert clf.score(X[checked], frame[checked]) == pytest.approx(clf.score(X, frame))
