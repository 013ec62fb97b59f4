"""EM and TransitionClassifierCV, trained on the labels of several sources."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from estimators import small
from sklearn.base import clone
from sklearn.model_selection import cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from training import no_training, refused

from noisytransition import EMTransitionClassifier, TransitionClassifierCV, VerifiedKFold, load, make_verified_scorer
from noisytransition.noise_model import LabelNoiseModel
from noisytransition.transition import flip_labels, symmetric_noise

pytestmark = pytest.mark.xdist_group("several sources")  # one process makes the fixtures
NAMES = np.array(["ant", "bee", "cat"])
NOISE = {"careful": 0.15, "hasty": 0.45, "hasty too": 0.45, "wild": 0.6, "mean": 0.6}


def people(n=400, asked=3):
    """Clouds, of which three of five people label each sample and some are verified, and clean samples for testing."""
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=2 * n)
    X, names = np.float32(rng.normal(size=(2 * n, 4)) + 2.2 * np.eye(4)[true]), NAMES[true]
    table = pd.DataFrame()
    for who, p in NOISE.items():
        table[who] = flip_labels(names[:n], symmetric_noise(3, p), random_state=rng, classes=NAMES)
    table = table.mask(rng.random(table.shape).argsort(axis=1) >= asked)
    table["verified"] = pd.Series(names[:n]).where(np.arange(n) % 9 == 0)
    return X[:n], table, names[:n], X[n:], names[n:]


X, TABLE, TRUE, X_TEST, Y_TEST = people()


def majority(table):
    """Each sample's most frequent label, or one of them, beside the verified ones."""
    return pd.DataFrame({"label": table.drop(columns="verified").mode(axis=1)[0], "verified": table["verified"]})


EM = small(EMTransitionClassifier, module="linear", max_epochs=4)
CV = TransitionClassifierCV(GaussianNB(), random_state=0)


@pytest.fixture(scope="module", params=["EM", "CV"])
def clf(request):
    return {"EM": EM, "CV": CV}[request.param]


@pytest.fixture(scope="module")
def fitted(clf):
    return clone(clf).fit(X, TABLE)


# ---------------------------------------------------------------------------- what is learned
def test_it_finds_who_labels_well_and_labels_samples_better_than_the_majority(clf, fitted):
    model = fitted.noise_model_
    summary = model.source_summary()
    assert set(summary.index) == set(NOISE)
    right = pd.Series({who: 1 - p for who, p in NOISE.items()})
    np.testing.assert_allclose(summary["right"].reindex(right.index), right, atol=0.1)
    one = majority(TABLE)["label"] == TRUE
    is_noisy = TABLE["verified"].isna()
    found = model.classes_[model.posterior_of_fit().argmax(axis=1)] == TRUE[is_noisy]
    assert found.mean() > one[is_noisy].mean() + 0.05
    assert fitted.score(X_TEST, Y_TEST) > 0.8
    assert fitted.score(X_TEST, Y_TEST) > clone(clf).fit(X, majority(TABLE)).score(X_TEST, Y_TEST) - 0.01
    assert fitted.score(X, TABLE) == fitted.score(X[~is_noisy], TRUE[~is_noisy])


def test_the_labels_of_samples_are_judged_by_all_sources(fitted):
    quality = fitted.label_quality(X, TABLE)
    one = majority(TABLE)["label"] == TRUE
    assert quality[one].mean() > quality[~one].mean() + 0.2
    assert (fitted.relabel(X, TABLE, threshold=0) == TRUE).mean() > one.mean()
    np.testing.assert_allclose(fitted.label_posterior(X, TABLE).sum(axis=1), 1)
    posterior = fitted.noise_model_.label_posterior(fitted.oof_proba_, TABLE, calibrated=True)
    np.testing.assert_allclose(fitted.label_posterior(X, TABLE), posterior)
    np.testing.assert_allclose(fitted.label_posterior(), posterior)


def test_samples_beside_X_may_be_verified(clf):
    labels = TABLE.drop(columns="verified")
    beside = clone(clf).fit(X[100:], labels[100:], meta=(X[:100], TRUE[:100]))
    assert beside.score(X_TEST, Y_TEST) > 0.8


def test_samples_of_weight_0_are_left_out():
    X, table, _, X_test, _ = people(900)  # with and without them, the classes have the same order of frequency
    weight = np.where((np.arange(len(X)) < 600) | table["verified"].notna(), 1.0, 0.0)
    found = clone(CV).fit(X, table, sample_weight=weight).predict_proba(X_test)
    expected = clone(CV).fit(X[weight > 0], table[weight > 0]).predict_proba(X_test)
    np.testing.assert_allclose(found, expected)
    clone(EM).set_params(max_epochs=1).fit(X, table, sample_weight=weight)


def test_a_fit_is_saved_and_pickled_with_its_sources(fitted, tmp_path):
    again = [pickle.loads(pickle.dumps(fitted))]
    if hasattr(fitted, "save"):
        fitted.save(tmp_path / "clf")
        again.append(load(tmp_path / "clf"))
    for other in again:
        np.testing.assert_array_equal(other.label_posterior(X, TABLE), fitted.label_posterior(X, TABLE))
        pd.testing.assert_frame_equal(other.noise_model_.source_summary(), fitted.noise_model_.source_summary())


def test_it_is_the_noise_model_of_the_same_probabilities():
    clf = clone(CV).fit(X, TABLE)
    held_out = clf.noise_model_.out_of_fold_
    proba = held_out.in_order(held_out.candidates[0].proba, held_out.candidates[0].proba_clean)
    model = LabelNoiseModel().fit(proba, TABLE)
    pd.testing.assert_frame_equal(model.source_summary(), clf.noise_model_.source_summary())
    is_noisy = TABLE["verified"].isna().to_numpy()
    np.testing.assert_allclose(model.label_posterior(proba, TABLE)[is_noisy], clf.noise_model_.posterior_of_fit())


# ---------------------------------------------------------------------------- tools of scikit-learn
def test_folds_scores_and_pipelines():
    scorers = {"own": lambda clf, X, y: clf.score(X, y), "balanced": make_verified_scorer("balanced_accuracy")}
    scores = cross_validate(CV, X, TABLE, cv=VerifiedKFold(2), scoring=scorers)
    assert min(scores["test_own"].min(), scores["test_balanced"].min()) > 0.7
    for clf in (EM, CV):
        assert make_pipeline(StandardScaler(), clone(clf)).fit(X, TABLE).score(X_TEST, Y_TEST) > 0.8


@sklearn.config_context(enable_metadata_routing=True)
def test_sources_are_routed_and_cut():
    X, table, *_ = people(300, asked=1)
    given = table.drop(columns="verified")
    labels, who = given.bfill(axis=1).iloc[:, 0], given.notna().idxmax(axis=1)  # each sample has one label
    params = {"y_verified": table["verified"], "sources": who}
    scores = cross_val_score(CV, X, labels, cv=VerifiedKFold(2), params=params)
    with sklearn.config_context(enable_metadata_routing=False):
        frame = pd.DataFrame({"label": labels, "verified": table["verified"]})
        without = cross_val_score(CV, X, frame, cv=VerifiedKFold(2), params={"sources": who})
    np.testing.assert_array_equal(scores, without)


def test_a_saved_fit_is_of_its_sources(tmp_path):
    X, table, *_ = people(200)
    clf = clone(EM).set_params(max_epochs=1)
    expected = clone(clf).fit(X, table, state=tmp_path / "state").predict_proba(X)
    with no_training():
        np.testing.assert_array_equal(clone(clf).fit(X, table, state=tmp_path / "state").predict_proba(X), expected)
    other = table.rename(columns={"careful": "wild", "wild": "careful"})
    with refused("sources"):
        clone(clf).fit(X, other, state=tmp_path / "state")
