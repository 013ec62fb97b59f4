"""A classifier for noisy labels around any classifier of scikit-learn."""

import functools
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from estimators import SelfCleaned
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from training import refused

from noisytransition import TransitionClassifierCV, flip_labels, transition_error
from noisytransition.transition import pair_noise

T = pair_noise(3, 0.35)


def clouds(n=900):
    """Three clouds: samples and true labels, and others for tests."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=2 * n)
    X = rng.normal(size=(2 * n, 4)) + 2.2 * np.eye(4)[y]
    return X[:n], y[:n], X[n:], y[n:]


X, Y, X_TEST, Y_TEST = clouds()
NOISY, VERIFIED = flip_labels(Y, T, random_state=0), np.arange(900) % 10 == 0
KNOWN = pd.Series(Y).where(VERIFIED)


def fitted(estimator, X=X, y=NOISY, known=KNOWN, **params):
    return TransitionClassifierCV(estimator, random_state=0, **params).fit(X, y, y_verified=known)


@functools.cache
def of_clouds(estimator=GaussianNB):
    """A fit, which tests must not change."""
    return fitted(estimator())


# ---------------------------------------------------------------------------- any classifier
@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(10, random_state=0),
        KNeighborsClassifier(15),
        GaussianNB(),
    ],
    ids=["pipeline", "forest", "neighbours", "bayes"],
)
def test_it_is_better_than_the_estimator_and_finds_T(estimator):
    clf = fitted(estimator)
    ignoring = clone(estimator).fit(X, NOISY).score(X_TEST, Y_TEST)
    assert clf.score(X_TEST, Y_TEST) > max(ignoring + 0.01, 0.82)
    assert transition_error(T, clf.transition_matrix_) < 0.25
    proba = clf.predict_proba(X_TEST)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert -np.log(proba[np.arange(len(Y_TEST)), Y_TEST]).mean() < 0.6


def test_texts_reach_the_estimator():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    p = np.where(np.arange(60) % 3 == np.arange(3)[:, None], 4.0, 1.0)
    texts = np.array([" ".join(f"word{k}" for k in rng.choice(60, 12, p=p[i] / p[i].sum())) for i in y])
    X, y, X_test, y_test = texts[:300], y[:300], texts[300:], y[300:]
    y_noisy, verified = flip_labels(y, T, random_state=0), np.arange(300) % 6 == 0
    estimator, known = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10)), pd.Series(y).where(verified)
    score, same = (fitted(estimator, of(X), y_noisy, known).score(of(X_test), y_test) for of in (list, pd.Series))
    assert score == same > estimator.fit(X, y_noisy).score(X_test, y_test) + 0.05
    clf, meta = TransitionClassifierCV(estimator, random_state=0), (X[verified].tolist(), y[verified])
    clf.fit(X[~verified].tolist(), y_noisy[~verified], meta=meta, y_clean_noisy=y_noisy[verified])
    assert clf.score(X_test, y_test) == score


def test_data_frames_with_missing_values_and_categories_reach_the_estimator():
    def frame(X):
        table = pd.DataFrame(X, columns=list("abcd"))
        table["e"] = pd.Categorical(np.where(X[:, 0] > 1, "high", "low"))
        return table.mask(np.random.default_rng(0).random(table.shape) < 0.1)

    few = {"max_iter": 5, "max_leaf_nodes": 8, "random_state": 0}
    clf = fitted(HistGradientBoostingClassifier(**few, categorical_features="from_dtype"), frame(X))
    assert clf.score(frame(X_TEST), Y_TEST) > 0.75
    assert clf.feature_names_in_.tolist() == list("abcde")
    assert len(clf.find_label_issues(frame(X), NOISY)) > 100


def test_sparse_and_separate_samples_are_those_of_a_dense_table():
    expected = of_clouds(LogisticRegression).predict_proba(X_TEST)
    clf = TransitionClassifierCV(LogisticRegression(), random_state=0)
    of_clean = {"y_clean": Y[VERIFIED], "y_clean_noisy": NOISY[VERIFIED]}
    for kind in sparse.csr_array, sparse.csc_matrix, sparse.coo_array, pd.DataFrame:
        clf.fit(kind(X[~VERIFIED]), NOISY[~VERIFIED], X_clean=kind(X[VERIFIED]), **of_clean)
        np.testing.assert_allclose(clf.predict_proba(kind(X_TEST)), expected, atol=1e-3)
    clf.fit(X[~VERIFIED], NOISY[~VERIFIED], meta=(X[VERIFIED], Y[VERIFIED]))  # without their noisy labels
    assert clf.score(X_TEST, Y_TEST) > 0.85
    assert transition_error(T, clf.transition_matrix_) < 0.25


class Recorder(ClassifierMixin, BaseEstimator):
    """Record the arguments of clones."""

    fits = ()

    def fit(self, X, y, sample_weight=None):
        type(self).fits += ((X, y, sample_weight),)
        self.model_ = GaussianNB().fit(X, y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def test_what_clones_are_trained_on():
    Recorder.fits = ()
    fitted(Recorder())
    given = {tuple(row): label for row, label in zip(X, NOISY, strict=True)}
    true = {tuple(row): label for row, label in zip(X[VERIFIED], Y[VERIFIED], strict=True)}
    assert [len(rows) for rows, *_ in Recorder.fits] == [600] * 3 + [60] * 3 + [90] + [600] * 3 + [900]
    for labels_of, fits in ((given, Recorder.fits[:3]), (true, Recorder.fits[3:7])):  # all noisy; verified samples
        for rows, labels, weight in fits:
            assert [labels_of[tuple(row)] for row in rows] == labels.tolist()
            assert weight is None
    for rows, labels, weight in Recorder.fits[7:]:
        of_verified = [tuple(row) in true for row in rows]
        assert [true[tuple(row)] for row in rows[of_verified]] == labels[of_verified].tolist()
        assert (weight[of_verified] == 1).all()
        assert 1 / 3 <= weight.min() < 0.9


def test_the_result_pools_the_calibrated_estimator_and_the_one_of_verified_samples():
    clf = of_clouds()
    features = clf.calibration_(clf.estimator_.predict_proba(X_TEST))
    weights = clf.prediction_weights_
    product = features ** weights["features"] * clf.clean_estimator_.predict_proba(X_TEST) ** weights["clean"]
    np.testing.assert_allclose(clf.predict_proba(X_TEST), product / product.sum(axis=1, keepdims=True), atol=1e-9)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_noisy_labels_that_say_nothing_or_the_truth():
    """Of pure noise, the calibrations of all verified samples had a log-loss of 2.0 instead of log 10 = 2.3."""
    rng = np.random.default_rng(0)
    y, known = rng.integers(10, size=600), np.where(np.arange(600) < 100, rng.integers(10, size=600), -1)
    clf = fitted(LogisticRegression(), rng.normal(size=(600, 20)), y, known)
    assert -np.log(clf.oof_proba_[np.arange(100), known[:100]]).mean() > 2.25
    worthless = fitted(LogisticRegression(), y=rng.integers(3, size=900))
    alone = LogisticRegression().fit(X[VERIFIED], Y[VERIFIED])
    assert worthless.score(X_TEST, Y_TEST) > alone.score(X_TEST, Y_TEST) - 0.03
    clf = fitted(LogisticRegression(), y=Y)
    assert clf.score(X_TEST, Y_TEST) > LogisticRegression().fit(X, Y).score(X_TEST, Y_TEST) - 0.005
    assert transition_error(np.eye(3), clf.transition_matrix_) < 0.03


# ---------------------------------------------------------------------------- as in scikit-learn
class SelfCleanedCV(SelfCleaned, TransitionClassifierCV):
    """Use the training samples as clean samples, for scikit-learn's checks."""


_FOLDS = dict.fromkeys(
    [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")],
    "a repeated sample can be in two folds",
)


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks([SelfCleanedCV(GaussianNB(), cv=2, random_state=0)], expected_failed_checks=lambda _: _FOLDS)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_copies_and_parallel_folds_are_the_same():
    clf = of_clouds()
    expected = clf.predict_proba(X_TEST)
    with joblib.parallel_config("multiprocessing"):  # a fork starts at once
        parallel = fitted(GaussianNB(), n_jobs=2)
    for other in pickle.loads(pickle.dumps(clf)), parallel, fitted(clone(clf).estimator):
        np.testing.assert_array_equal(other.predict_proba(X_TEST), expected)


def test_weights_of_samples():
    weight = np.where(np.arange(900) < 450, 1.0, 0.0)
    kept = VERIFIED | (weight > 0)
    clf = TransitionClassifierCV(LogisticRegression(), random_state=0)
    clf.fit(X, NOISY, y_verified=KNOWN, sample_weight=weight)
    half = fitted(LogisticRegression(), X[kept], NOISY[kept], KNOWN[kept])
    np.testing.assert_allclose(clf.predict_proba(X_TEST), half.predict_proba(X_TEST))
    with refused("not accept sample_weight"):
        clf.set_params(estimator=KNeighborsClassifier()).fit(X, NOISY, y_verified=KNOWN, sample_weight=weight)


# ---------------------------------------------------------------------------- what cannot be trained on
def test_errors_before_training():
    Recorder.fits = ()
    clf, given = TransitionClassifierCV(Recorder()), {"y_verified": KNOWN}
    frame, short = pd.DataFrame(X), pd.DataFrame(X[:9, :2])
    for params, bad, words in (
        ({}, {"y_clean": Y[:3]}, "y_clean"),
        ({}, {"X": frame, "meta": (short, Y[:9])}, "same columns"),
        ({"prior": "flat"}, given, "prior"),
        ({"n_jobs": 0}, given, "n_jobs"),
        ({"estimator": LinearSVC()}, given, "has no predict_proba"),
    ):
        with refused(words):
            clone(clf).set_params(**params).fit(**{"X": X, "y": NOISY} | bad)
    with refused("has no attribute 'predict_proba'", AttributeError):  # SVC has it, but not with its default parameters
        TransitionClassifierCV(SVC()).fit(X, NOISY, **given)
    assert not Recorder.fits
    with pytest.raises(NotFittedError):
        clf.predict(X)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_class_that_a_fold_does_not_know():
    X, y = load_iris(return_X_y=True)
    rare = np.flatnonzero((y < 2) | (np.arange(150) > 147))
    known = np.where(np.isin(rare, [0, 20, 60, 80, 148]), y[rare], -1)
    clf = fitted(GaussianNB(), X[rare], y[rare], known)
    assert clf.predict_proba(X).shape == (150, 3)


def test_a_refit_keeps_nothing_of_the_former_fit():
    clf = fitted(GaussianNB(), pd.DataFrame(X, columns=list("abcd")))
    assert clf.feature_names_in_.tolist() == list("abcd")
    assert not hasattr(clf.fit(X, NOISY, y_verified=KNOWN), "feature_names_in_")
    with pytest.raises(ValueError, match="at least 2 classes"):
        clf.fit(X, np.zeros(len(X)))
    assert not hasattr(clf, "classes_")


def test_accuracy_interval_is_that_of_the_last_predictions():
    X, y = load_digits(return_X_y=True)
    noisy = flip_labels(y, pair_noise(10, 0.4), random_state=0)
    verified = np.where(np.arange(len(y)) % 9 == 0, y, -1)
    clf = TransitionClassifierCV(LogisticRegression(max_iter=300), random_state=0)
    clf.fit(X / 16, noisy, y_verified=verified)
    right = (clf.oof_proba_.argmax(axis=1) == y).mean()
    interval = clf.accuracy_interval()
    assert interval.lower <= right <= interval.upper
    assert clf.plan_verification("accuracy").table.estimate.iloc[0] == interval.estimate
    with pytest.raises(TypeError, match="proba"):  # its model was fitted to probabilities of other clones
        clf.class_shares(proba=clf.oof_proba_)
