"""A classifier for noisy labels around any classifier of scikit-learn."""

import functools
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from estimators import SelfCleaned
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from training import refused

from noisytransition import LabelNoiseModel, TransitionClassifierCV, VerifiedKFold, flip_labels, transition_error
from noisytransition.transition import pair_noise

T = pair_noise(3, 0.35)


def clouds(n=900, seed=0, noise=T):
    """Three clouds with pair noise, of which each tenth row is verified, and clean rows for testing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=2 * n)
    X = rng.normal(size=(2 * n, 4)) + 2.2 * np.eye(4)[y]
    verified = np.arange(n) % 10 == 0
    return X[:n], y[:n], flip_labels(y[:n], noise, random_state=seed), verified, X[n:], y[n:]


def only(y, verified):
    """True labels of verified rows."""
    return pd.Series(y).where(verified)


def fitted(estimator, data=None, **params):
    X, y, y_noisy, verified, *_ = clouds() if data is None else data
    clf = TransitionClassifierCV(estimator, random_state=0, **params)
    return clf.fit(X, y_noisy, y_verified=only(y, verified))


@functools.cache
def of_clouds(estimator=GaussianNB):
    """A fit, which tests must not change."""
    return fitted(estimator())


def texts(n=600, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=2 * n)
    words = np.array([f"word{i}" for i in range(60)])
    p = np.where(np.arange(60) % 3 == np.arange(3)[:, None], 4.0, 1.0)
    made = [" ".join(rng.choice(words, 12, p=p[i] / p[i].sum())) for i in y]
    verified = np.arange(n) % 6 == 0
    return made[:n], y[:n], flip_labels(y[:n], T, random_state=seed), verified, made[n:], y[n:]


# ---------------------------------------------------------------------------- any classifier
@pytest.mark.parametrize(
    "estimator",
    [
        HistGradientBoostingClassifier(max_iter=10, max_leaf_nodes=8, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(20, random_state=0),
        KNeighborsClassifier(15),
        GaussianNB(),
    ],
    ids=["boosting", "pipeline", "forest", "neighbours", "bayes"],
)
def test_it_is_better_than_the_estimator_and_finds_T(estimator):
    X, _, y_noisy, _, X_test, y_test = clouds()
    clf = fitted(estimator)
    ignoring = clone(estimator).fit(X, y_noisy).score(X_test, y_test)
    assert clf.score(X_test, y_test) > max(ignoring + 0.01, 0.82)
    assert transition_error(T, clf.transition_matrix_) < 0.25
    proba = clf.predict_proba(X_test)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert -np.log(proba[np.arange(len(y_test)), y_test]).mean() < 0.6


def test_texts_reach_the_estimator():
    X, y, y_noisy, verified, X_test, y_test = data = texts()
    estimator = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10))
    scores = [
        fitted(estimator, (rows(X), *data[1:])).score(rows(X_test), y_test) for rows in (list, np.array, pd.Series)
    ]
    assert scores[0] == scores[1] == scores[2] > estimator.fit(X, y_noisy).score(X_test, y_test) + 0.05
    beside = [[text for text, of in zip(X, verified, strict=True) if of == which] for which in (False, True)]
    clf = TransitionClassifierCV(estimator, random_state=0)
    clf.fit(beside[0], y_noisy[~verified], meta=(beside[1], y[verified]), y_clean_noisy=y_noisy[verified])
    assert clf.score(X_test, y_test) == scores[0]


def test_data_frames_with_missing_values_and_categories_reach_the_estimator():
    X, *others = clouds()

    def frame(X):
        table = pd.DataFrame(X, columns=list("abcd"))
        table["e"] = pd.Categorical(np.where(X[:, 0] > 1, "high", "low"))
        return table.mask(np.random.default_rng(0).random(table.shape) < 0.1)

    estimator = HistGradientBoostingClassifier(
        max_iter=10, max_leaf_nodes=8, categorical_features="from_dtype", random_state=0
    )
    clf = fitted(estimator, (frame(X), *others))
    assert clf.score(frame(others[3]), others[4]) > 0.75
    assert clf.n_features_in_ == 5
    np.testing.assert_array_equal(clf.feature_names_in_, list("abcde"))
    assert len(clf.find_label_issues(frame(X), others[1])) > 100


def test_sparse_rows_and_rows_beside_are_those_of_a_dense_table():
    X, y, y_noisy, verified, X_test, _ = clouds()
    expected = of_clouds(LogisticRegression).predict_proba(X_test)
    for kind in sparse.csr_array, sparse.csc_matrix, sparse.coo_array, pd.DataFrame:
        clf = TransitionClassifierCV(LogisticRegression(), random_state=0)
        clf.fit(
            kind(X[~verified]),
            y_noisy[~verified],
            X_clean=kind(X[verified]),
            y_clean=y[verified],
            y_clean_noisy=y_noisy[verified],
        )
        np.testing.assert_allclose(clf.predict_proba(kind(X_test)), expected, atol=1e-3)


def test_clean_rows_without_noisy_labels():
    X, y, y_noisy, verified, X_test, y_test = clouds()
    clf = TransitionClassifierCV(LogisticRegression(), random_state=0)
    clf.fit(X[~verified], y_noisy[~verified], meta=(X[verified], y[verified]))
    assert clf.score(X_test, y_test) > 0.85
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
    X, y, y_noisy, verified, *_ = clouds()
    Recorder.fits = ()
    fitted(Recorder())
    given = {tuple(row): label for row, label in zip(X, y_noisy, strict=True)}
    true = {tuple(row): label for row, label in zip(X[verified], y[verified], strict=True)}
    on_noisy, on_verified, relabelled = (Recorder.fits[of] for of in (slice(3), slice(3, 7), slice(7, None)))
    for rows, labels, weight in on_noisy:  # all rows have their noisy labels
        assert [given[tuple(row)] for row in rows] == labels.tolist()
        assert weight is None
    for rows, labels, weight in on_verified:
        assert [true[tuple(row)] for row in rows] == labels.tolist()
        assert weight is None
    for rows, labels, weight in relabelled:
        of_verified = [tuple(row) in true for row in rows]
        assert [true[tuple(row)] for row in rows[of_verified]] == labels[of_verified].tolist()
        assert (weight[of_verified] == 1).all()
        assert 1 / 3 <= weight.min() < 0.9
    assert [len(rows) for rows, *_ in Recorder.fits] == [600] * 3 + [60] * 3 + [90] + [600] * 3 + [900]


def test_the_result_pools_the_calibrated_estimator_and_the_one_of_verified_samples():
    *_, X_test, _ = clouds()
    clf = of_clouds()
    features = clf.calibration_(clf.estimator_.predict_proba(X_test))
    weights = clf.prediction_weights_
    product = features ** weights["features"] * clf.clean_estimator_.predict_proba(X_test) ** weights["clean"]
    np.testing.assert_allclose(clf.predict_proba(X_test), product / product.sum(axis=1, keepdims=True), atol=1e-9)


def test_out_of_fold_predictions_of_pure_noise_are_not_better_than_chance():
    """The calibrations of all verified samples had a log-loss of 2.0 instead of log 10 = 2.3."""
    rng = np.random.default_rng(0)
    X, y, y_noisy = rng.normal(size=(600, 20)), rng.integers(10, size=600), rng.integers(10, size=600)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = fitted(LogisticRegression(), (X, y, y_noisy, np.arange(600) < 100))
    assert -np.log(clf.oof_proba_[np.arange(100), y[:100]]).mean() > 2.25


def test_verified_samples_alone_if_noisy_labels_say_nothing():
    X, y, _, verified, X_test, y_test = clouds()
    y_noisy = np.random.default_rng(1).integers(3, size=len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = fitted(LogisticRegression(), (X, y, y_noisy, verified))
    alone = LogisticRegression().fit(X[verified], y[verified]).score(X_test, y_test)
    assert clf.score(X_test, y_test) > alone - 0.03


def test_T_is_that_of_out_of_fold_probabilities_of_the_noisy_labels():
    X, y, y_noisy, verified, *_ = clouds()
    clf = of_clouds()
    assert isinstance(clf.noise_model_, LabelNoiseModel)
    np.testing.assert_array_equal(clf.transition_matrix_, clf.noise_model_.transition_matrix_)
    assert (np.abs(clf.transition_matrix_ - T) < 4 * clf.transition_std_ + 0.02).all()
    assert clf.oof_proba_.shape == (900, 3)
    for rows in (verified, ~verified):
        assert (clf.oof_proba_[rows].argmax(axis=1) == y[rows]).mean() > 0.85
    assert "0 -> 1" in clf.transition_summary()
    wrong = y_noisy != y
    assert wrong[clf.find_label_issues(X, y_noisy).position].mean() > 0.85
    assert (clf.relabel(X, y_noisy) == y).mean() > (~wrong).mean() + 0.1
    assert "of the labels are wrong" in str(clf.noise_report(X, y_noisy))


def test_labels_without_noise():
    X, y, _, verified, X_test, y_test = clouds(noise=np.eye(3))
    clf = TransitionClassifierCV(LogisticRegression(), random_state=0).fit(X, y, y_verified=only(y, verified))
    assert clf.score(X_test, y_test) > LogisticRegression().fit(X, y).score(X_test, y_test) - 0.005
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


def test_labels_of_any_kind():
    X, y, y_noisy, verified, X_test, _ = clouds()
    numbers = of_clouds()
    for names in (
        np.array(["ant", "bee", "cat"]),
        np.array(["ant", "bee", "cat"], dtype=object),
        np.array([-7, 10, 300]),
    ):
        named = fitted(GaussianNB(), (X, names[y], names[y_noisy], verified))
        np.testing.assert_array_equal(named.classes_, names)
        np.testing.assert_array_equal(named.predict(X_test), names[numbers.predict(X_test)])
        np.testing.assert_allclose(named.transition_matrix_, numbers.transition_matrix_)


def test_copies_and_parallel_folds_are_the_same():
    X_test = clouds()[4]
    clf = of_clouds()
    expected = clf.predict_proba(X_test)
    with joblib.parallel_config("multiprocessing"):  # a fork starts at once
        parallel = fitted(GaussianNB(), n_jobs=2)
    for other in pickle.loads(pickle.dumps(clf)), parallel, fitted(clone(clf).estimator):
        np.testing.assert_array_equal(other.predict_proba(X_test), expected)


def test_searches_reach_the_estimator():
    X, y, y_noisy, verified, X_test, y_test = clouds(600)
    clf = TransitionClassifierCV(make_pipeline(StandardScaler(), LogisticRegression()), random_state=0)
    search = GridSearchCV(clf, {"estimator__logisticregression__C": [1e-4, 1.0]}, cv=VerifiedKFold(3))
    search.fit(X, pd.DataFrame({"label": y_noisy, "verified": only(y, verified)}))
    assert search.best_params_ == {"estimator__logisticregression__C": 1.0}
    assert search.score(X_test, y_test) > 0.85


def test_in_a_pipeline():
    X, y, y_noisy, verified, X_test, y_test = clouds()
    pipe = make_pipeline(StandardScaler(), TransitionClassifierCV(LogisticRegression(), random_state=0))
    pipe.fit(X, pd.DataFrame({"label": y_noisy, "verified": only(y, verified)}))
    assert pipe.score(X_test, y_test) > 0.85


def test_a_table_of_given_and_verified_labels():
    X, y, y_noisy, verified, X_test, _ = clouds()
    labels = pd.DataFrame({"verified": only(y, verified), "given": y_noisy})
    clf = TransitionClassifierCV(GaussianNB(), random_state=0)
    expected = of_clouds().predict_proba(X_test)
    np.testing.assert_array_equal(clf.fit(X, labels).predict_proba(X_test), expected)
    assert clf.score(X, labels) == clf.score(X[verified], y[verified])
    without = clone(clf).fit(X, labels.assign(given=labels["given"].where(~verified)))
    beside = clone(clf).fit(X[~verified], y_noisy[~verified], meta=(X[verified], y[verified]))
    np.testing.assert_array_equal(without.predict_proba(X), beside.predict_proba(X))


def test_weights_of_rows():
    X, y, y_noisy, verified, X_test, _ = clouds()
    weight = np.where(np.arange(900) < 450, 1.0, 0.0)
    kept = verified | (weight > 0)
    clf = TransitionClassifierCV(LogisticRegression(), random_state=0)
    clf.fit(X, y_noisy, y_verified=only(y, verified), sample_weight=weight)
    half = fitted(LogisticRegression(), (X[kept], y[kept], y_noisy[kept], verified[kept]))
    np.testing.assert_allclose(clf.predict_proba(X_test), half.predict_proba(X_test))
    with refused("not accept sample_weight"):
        clone(clf).set_params(estimator=KNeighborsClassifier()).fit(
            X, y_noisy, y_verified=only(y, verified), sample_weight=weight
        )


# ---------------------------------------------------------------------------- what cannot be trained on
def test_errors_before_training():
    X, y, y_noisy, verified, *_ = clouds()
    Recorder.fits = ()
    clf = TransitionClassifierCV(Recorder())
    with refused("at least 3 clean samples"):
        clf.fit(X, y_noisy, meta=(X[:2], y[:2]))
    with refused("y_clean"):
        clf.fit(X, y_noisy, y_clean=y[:3])
    with refused("same columns"):
        clf.fit(pd.DataFrame(X), y_noisy, meta=(pd.DataFrame(X[:9, :2]), y[:9]))
    with refused("prior"):
        clone(clf).set_params(prior="flat").fit(X, y_noisy, y_verified=only(y, verified))
    with refused("n_jobs"):
        clone(clf).set_params(n_jobs=0).fit(X, y_noisy, y_verified=only(y, verified))
    with refused("has no predict_proba"):
        TransitionClassifierCV(LinearSVC()).fit(X, y_noisy, y_verified=only(y, verified))
    with refused("has no attribute 'predict_proba'", AttributeError):  # SVC has it, but not with its default parameters
        TransitionClassifierCV(SVC()).fit(X, y_noisy, y_verified=only(y, verified))
    assert not Recorder.fits
    with pytest.raises(NotFittedError):
        clf.predict(X)


def test_reasons_not_to_trust_T_are_warned_of():
    X, y, y_noisy, verified, *_ = clouds(300)
    few = verified & (y != 2)
    with pytest.warns(UserWarning, match="of class"):
        clf = TransitionClassifierCV(GaussianNB()).fit(X, y_noisy, y_verified=only(y, few))
    assert "missing_class" in clf.diagnostics_


def test_a_class_that_a_fold_does_not_know():
    X, y = load_iris(return_X_y=True)
    rare = np.flatnonzero((y < 2) | (np.arange(150) > 147))
    verified = np.isin(rare, [0, 20, 60, 80, 148])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clf = fitted(GaussianNB(), (X[rare], y[rare], y[rare], verified))
    assert clf.predict_proba(X).shape == (150, 3)


def test_a_refit_keeps_nothing_of_the_former_fit():
    X, y, y_noisy, verified, *_ = clouds()
    clf = TransitionClassifierCV(LogisticRegression(), random_state=0)
    clf.fit(pd.DataFrame(X, columns=list("abcd")), y_noisy, y_verified=only(y, verified))
    assert clf.feature_names_in_.tolist() == list("abcd")
    clf.fit(X, y_noisy, y_verified=only(y, verified))
    assert not hasattr(clf, "feature_names_in_")
    with pytest.raises(ValueError, match="at least 2 classes"):
        clf.fit(X, np.zeros(len(X)))
    assert not hasattr(clf, "classes_")


def test_the_report_has_all_reasons():
    X, y, y_noisy, verified, *_ = clouds(noise=pair_noise(3, 0.1))
    X = np.random.default_rng(0).normal(size=X.shape)  # says nothing of the class
    with pytest.warns(UserWarning, match="worse than the labels"):
        clf = TransitionClassifierCV(LogisticRegression(), random_state=0).fit(X, y_noisy, y_verified=only(y, verified))
    report = clf.noise_report(X, y_noisy, y_verified=only(y, verified))
    assert "worse_than_labels" in report.facts["diagnostics"]
