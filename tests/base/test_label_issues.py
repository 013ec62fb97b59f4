"""Label issues and other methods that use T, for labels of any type."""

import pickle

import numpy as np
import pandas as pd
import pytest
from estimators import WITH_TRANSITION, small
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError

from noisytransition import EMTransitionClassifier, GLCClassifier, LabelNoiseModel, TransitionClassifierCV
from noisytransition.transition import denoise_proba, label_posterior

NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def fitted(blobs):
    """GLC at the true T: the names of the classes are strings."""
    X, y, X_clean, y_clean, _, _, T = blobs
    return small(GLCClassifier, transition_init=T, max_epochs=10).fit(X, NAMES[y], meta=(X_clean, NAMES[y_clean]))


@pytest.mark.parametrize("kind", [list, lambda y: pd.Series(y, dtype="category")], ids=["list", "category"])
def test_labels_of_any_container(fitted, blobs, kind):
    X, y = blobs[:2]
    posterior = label_posterior(fitted.predict_proba(X), y, fitted.transition_matrix_)
    quality, given = posterior[np.arange(300), y], kind(NAMES[y])
    np.testing.assert_allclose(fitted.label_posterior(X, given), posterior)
    np.testing.assert_allclose(fitted.label_quality(X, given), quality)
    issues = fitted.find_label_issues(X, given, threshold=0.3)
    assert issues.position.tolist() == sorted(np.flatnonzero(quality < 0.3), key=lambda n: quality[n])
    np.testing.assert_array_equal(issues.suggested_label, NAMES[posterior[issues.position].argmax(axis=1)])
    labels = np.where(posterior.max(axis=1) >= 0.95, posterior.argmax(axis=1), y)
    np.testing.assert_array_equal(fitted.relabel(X, given, threshold=0.95), NAMES[labels])
    np.testing.assert_array_equal(given, NAMES[y])


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_results_have_the_index_of_a_series(fitted, blobs):
    X, y = blobs[:2]
    frame = pd.DataFrame(X, index=[f"row {n}" for n in range(300)])
    given = pd.Series(NAMES[y], index=frame.index, name="animal")
    quality, issues, labels = (
        fitted.label_quality(X, given),
        fitted.find_label_issues(X, given),
        fitted.relabel(X, given),
    )
    assert quality.index.equals(frame.index)
    assert labels.index.equals(frame.index)
    assert labels.name == "animal"
    pd.testing.assert_frame_equal(frame.iloc[issues.position], frame.loc[issues.index])
    pd.testing.assert_frame_equal(fitted.find_label_issues(frame, NAMES[y]), issues)  # of X without one of y
    plain = fitted.find_label_issues(X, NAMES[y])
    assert plain.index.tolist() == plain.position.tolist()
    pd.testing.assert_frame_equal(plain.reset_index(drop=True), issues.reset_index(drop=True))
    positions = fitted.find_label_issues(X, given, as_frame=False)
    np.testing.assert_array_equal(positions, issues.position)
    np.testing.assert_array_equal(labels, fitted.relabel(X, NAMES[y]))
    assert (quality[issues.index].diff().dropna() >= 0).all()


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("method", ["label_posterior", "label_quality", "find_label_issues", "relabel", "noise_report"])
def test_labels_in_another_order_than_the_samples_are_warned_of(fitted, blobs, method):
    X, given = pd.DataFrame(blobs[0]), pd.Series(NAMES[blobs[1]])
    with pytest.warns(UserWarning, match="differ in their order") as caught:
        getattr(fitted, method)(X, given[::-1])
    assert [of.filename for of in caught if "order" in str(of.message)] == [__file__]


@pytest.mark.parametrize("as_table", [True, False])
def test_verified_rows_are_known(fitted, blobs, true_labels, as_table):
    X, y, checked = blobs[0], blobs[1], np.arange(300) % 3 == 0
    verified = np.where(checked, NAMES[true_labels], None)
    table = pd.DataFrame({"label": NAMES[y], "verified": verified})
    given = ((X, table), {}) if as_table else ((X, NAMES[y]), {"y_verified": verified})

    def call(name, **options):
        return getattr(fitted, name)(*given[0], **given[1], **options)

    every = fitted.find_label_issues(X, NAMES[y])
    issues = call("find_label_issues")
    pd.testing.assert_frame_equal(issues, every[~checked[every.position]])
    assert len(issues) < len(every)
    np.testing.assert_array_equal(call("relabel")[checked], NAMES[true_labels[checked]])
    np.testing.assert_array_equal(call("label_quality")[checked], (y == true_labels)[checked])
    np.testing.assert_array_equal(call("label_posterior")[checked], np.eye(3)[true_labels[checked]])
    facts = call("noise_report").facts
    assert [row["row"] for row in facts["label_issues"]["listed"]] == issues.position.tolist()
    assert facts["noise"]["verified"]["n_wrong"] == (y != true_labels)[checked].sum()
    assert facts["calibration"] is None  # a fit may have seen these rows


def test_wrong_labels_come_first_and_are_mended(fitted, blobs, true_labels):
    X, y, true = *blobs[:2], true_labels
    assert 0.2 < (true != y).mean() < 0.5
    found = fitted.find_label_issues(X, NAMES[y])
    assert (true != y)[found.position].mean() > 0.85
    assert (true != y)[found.position[:50]].mean() >= (true != y)[found.position].mean()
    mended = fitted.relabel(X, NAMES[y])
    assert (mended == NAMES[true]).mean() > (y == true).mean() + 0.15


@pytest.mark.parametrize("names", [np.array([-7, 10, 300]), np.array([0.0, 1.0, 2.0]), NAMES.astype(object)])
def test_relabelled_are_of_the_kind_that_the_labels_were(blobs, names):
    X, y, X_clean, y_clean, *_ = blobs
    clf = small(GLCClassifier).fit(X, names[y], meta=(X_clean, names[y_clean]))
    labels = clf.relabel(X, names[y])
    assert labels.dtype == names.dtype
    assert set(labels) <= set(names)


@pytest.mark.parametrize("method", ["label_posterior", "label_quality", "find_label_issues", "relabel"])
def test_labels_that_do_not_fit_are_refused(fitted, blobs, method):
    X, y = blobs[:2]
    call = getattr(fitted, method)
    with pytest.raises(ValueError, match="dog"):
        call(X, np.where(y == 0, "dog", NAMES[y]))
    with pytest.raises(NotFittedError):
        getattr(GLCClassifier(), method)(X, NAMES[y])


@pytest.mark.parametrize("cls", WITH_TRANSITION)
def test_the_noise_model_takes_probabilities(cls, blobs):
    X, y, X_clean, y_clean, *_ = blobs
    clf = pickle.loads(pickle.dumps(small(cls).fit(X, NAMES[y], meta=(X_clean, NAMES[y_clean]))))
    model, proba = clf.noise_model_, getattr(clf, "oof_proba_", clf.predict_proba(X))
    assert model.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(model.transition_matrix_, clf.transition_matrix_)
    pd.testing.assert_frame_equal(
        model.find_label_issues(proba, NAMES[y], calibrated=True), clf.find_label_issues(X, NAMES[y])
    )


# ---------------------------------------------------------------------------- samples of the fit
@pytest.fixture(scope="module")
def table(blobs, true_labels):
    """Noisy labels with names of their samples, and some verified labels."""
    verified = np.where(np.arange(300) % 5 == 0, NAMES[true_labels], None)
    return pd.DataFrame({"label": NAMES[blobs[1]], "verified": verified}, index=[f"row {n}" for n in range(300)])


@pytest.fixture(scope="module", params=["EM", "forest"])
def cross_fitted(request, blobs, table):
    """Classifiers that memorise the labels of the fit."""
    if request.param == "forest":
        return TransitionClassifierCV(RandomForestClassifier(30, random_state=0), random_state=0).fit(blobs[0], table)
    return small(EMTransitionClassifier, module__hidden=(200,), max_epochs=40, cv=3).fit(blobs[0], table)


def test_labels_of_the_fit_are_judged_by_out_of_fold_probabilities(cross_fitted, blobs, table, true_labels):
    clf, X = cross_fitted, blobs[0]
    of_fit = clf.noise_model_.label_posterior(clf.oof_proba_, table, calibrated=True)
    assert not np.allclose(of_fit, clf.noise_model_.label_posterior(clf.predict_proba(X), table, calibrated=True))
    for given in ((), (X, table), (X.tolist(), table)):
        np.testing.assert_allclose(clf.label_posterior(*given), of_fit)
        np.testing.assert_array_equal(
            clf.relabel(*given), clf.noise_model_.relabel(clf.oof_proba_, table, calibrated=True)
        )
    issues, named = clf.find_label_issues(), clf.find_label_issues(X, table)
    assert named.index.tolist() == [f"row {n}" for n in named.position]
    pd.testing.assert_frame_equal(issues, named.set_axis(named.position.to_numpy()))
    np.testing.assert_array_equal(clf.find_label_issues(as_frame=False), issues.position)
    wrong = (blobs[1] != true_labels) & table["verified"].isna().to_numpy()
    assert wrong[issues.position].mean() > 0.8
    assert wrong[issues.position].sum() > 0.8 * wrong.sum()
    facts, of_all = clf.noise_report().facts, clf.noise_report(X, table).facts
    assert [row["row"] for row in facts["label_issues"]["listed"]] == issues.position.tolist()
    assert facts["label_issues"]["n_expected"] == of_all["label_issues"]["n_expected"]


def test_labels_of_other_samples_are_judged_by_predictions(cross_fitted, blobs, table):
    """Fewer samples, more of them, or one other label: there is no out-of-fold probability for these."""
    clf, X, y = cross_fitted, blobs[0], table["label"].to_numpy()
    other = np.where(np.arange(300) == 7, np.where(y == "ant", "bee", "ant"), y)
    for rows, labels in ((X[:299], y[:299]), (X[::-1], y[::-1]), (X, other)):
        posterior = clf.noise_model_.label_posterior(clf.predict_proba(rows), labels, calibrated=True)
        np.testing.assert_allclose(clf.label_posterior(rows, labels), posterior)
    more = clf.label_posterior(np.vstack([X, X]), np.concatenate([y, y]))
    np.testing.assert_allclose(more[:300], clf.label_posterior(X, y))
    np.testing.assert_allclose(
        more[300:], clf.noise_model_.label_posterior(clf.predict_proba(X), y, calibrated=True), rtol=1e-5
    )


def test_verified_labels_may_be_added_after_the_fit(cross_fitted, blobs, table):
    issues = cross_fitted.find_label_issues(blobs[0], table)
    more = table.assign(verified=table["verified"].where(table.index != issues.index[0], table["label"]))
    pd.testing.assert_frame_equal(cross_fitted.find_label_issues(blobs[0], more), issues[1:])


@pytest.mark.parametrize("method", ["label_posterior", "label_quality", "find_label_issues", "relabel", "noise_report"])
def test_samples_and_labels_are_given_together(cross_fitted, fitted, blobs, table, method):
    for clf, given in ((cross_fitted, (blobs[0],)), (cross_fitted, (None, table)), (fitted, ())):
        with pytest.raises(ValueError, match="y_noisy is None"):
            getattr(clf, method)(*given)


def test_without_folds_samples_of_the_fit_have_no_out_of_fold_probabilities(blobs, table):
    clf = small(EMTransitionClassifier, cv=None).fit(blobs[0], table)
    with pytest.raises(ValueError, match="oof_proba_"):
        clf.find_label_issues()
    with pytest.raises(ValueError, match="cv=3"):
        clf.noise_model_.find_label_issues()


def test_samples_of_weight_0_were_not_trained_on(blobs, table):
    X, weight = blobs[0], np.where(np.arange(300) % 7 == 1, 0, 1)
    clf = small(EMTransitionClassifier, max_epochs=10).fit(X, table, sample_weight=weight)
    kept = (weight > 0) | table["verified"].notna().to_numpy()
    predicted = clf.noise_model_.label_posterior(clf.predict_proba(X), table, calibrated=True)
    of_fit = clf.noise_model_.label_posterior(clf.oof_proba_, table[kept], calibrated=True)
    found = clf.label_posterior(X, table)
    np.testing.assert_allclose(found[~kept], predicted[~kept])
    np.testing.assert_allclose(found[kept], of_fit)
    with pytest.raises(ValueError, match="weights above 0"):  # their positions would not be those in X
        clf.find_label_issues()


def test_a_noise_model_knows_its_samples(cross_fitted, table):
    proba = cross_fitted.noise_model_.out_of_fold_.candidates[0].proba
    y, rows = table["label"][table["verified"].isna()].to_numpy(), np.arange(len(proba))
    verified = np.where(rows % 4 == 0, "ant", None)
    with pytest.warns(UserWarning, match="T may be wrong"):
        model = LabelNoiseModel().fit(proba, y, y_verified=verified)
    pd.testing.assert_frame_equal(model.find_label_issues(), model.find_label_issues(proba, y, y_verified=verified))
    np.testing.assert_allclose(model.label_posterior()[verified == None], model.posterior_of_fit())  # noqa: E711
    np.testing.assert_array_equal(model.relabel(), model.relabel(proba, y, y_verified=verified))
    np.testing.assert_array_equal(model.label_quality(), model.label_quality(proba, y, y_verified=verified))
    with pytest.raises(ValueError, match="not fitted to samples"):
        LabelNoiseModel.from_transition_matrix(np.eye(2)).find_label_issues()


# ---------------------------------------------------------------------------- numbers of rows of each class
def test_class_counts_are_the_most_likely_behind_the_noisy_labels(fitted, blobs):
    y, T = blobs[1], blobs[-1]
    noisy = np.bincount(y)
    shares = denoise_proba([noisy / 300], fitted.transition_matrix_, n_iter=1000)
    np.testing.assert_allclose(fitted.noisy_class_counts_, 300 * shares[0])
    np.testing.assert_allclose(
        fitted.noisy_class_counts_ @ T, noisy, atol=0.5
    )  # here the solution has no negative entry


def test_em_counts_them_by_its_posteriors(blobs, true_labels):
    X, y, X_clean, y_clean, *_ = blobs
    clf = small(EMTransitionClassifier).fit(X, y, meta=(X_clean, y_clean))
    np.testing.assert_allclose(clf.noisy_class_counts_, clf.noise_model_.transition_counts_.sum(axis=1))
    np.testing.assert_allclose(clf.noisy_class_counts_, np.bincount(true_labels), atol=30)
