"""Label issues and other methods that use T, for labels of any type."""

import numpy as np
import pandas as pd
import pytest
from estimators import small
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from noisytransition import EMTransitionClassifier, GLCClassifier, LabelNoiseModel, TransitionClassifierCV
from noisytransition.transition import denoise_proba, label_posterior

NAMES = np.array(["ant", "bee", "cat"])
JUDGES = ["label_posterior", "label_quality", "find_label_issues", "relabel", "noise_report"]


@pytest.fixture(scope="module")
def fitted(blobs):
    """GLC at the true T: the names of the classes are strings."""
    X, y, X_clean, y_clean, _, _, T = blobs
    return small(GLCClassifier, transition_init=T, max_epochs=10).fit(X, NAMES[y], meta=(X_clean, NAMES[y_clean]))


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_results_are_those_of_the_posterior_and_have_the_index_of_a_series(fitted, blobs):
    X, y = blobs[:2]
    posterior = label_posterior(fitted.predict_proba(X), y, fitted.transition_matrix_)
    quality, best = posterior[np.arange(300), y], posterior.argmax(axis=1)
    given = pd.Series(NAMES[y], index=[f"row {n}" for n in range(300)], name="animal")
    columns = {"position": range(300), "given_label": given, "suggested_label": NAMES[best], "label_quality": quality}
    expected = pd.DataFrame(columns)[quality < 0.3].sort_values("label_quality")
    frame = pd.DataFrame(X, index=given.index)
    for rows, labels in ((X, given), (X, given.astype("category")), (frame, NAMES[y])):
        np.testing.assert_allclose(fitted.label_posterior(rows, labels), posterior)
        np.testing.assert_allclose(fitted.label_quality(rows, labels), quality)
        found = fitted.find_label_issues(rows, labels, threshold=0.3)
        pd.testing.assert_frame_equal(found, expected)
        relabelled = fitted.relabel(rows, labels, threshold=0.95)
        np.testing.assert_array_equal(relabelled, NAMES[np.where(posterior.max(axis=1) >= 0.95, best, y)])
    plain = fitted.find_label_issues(X, given.tolist(), threshold=0.3)
    pd.testing.assert_frame_equal(plain, expected.set_axis(expected["position"].to_numpy()))
    positions = fitted.find_label_issues(X, given, threshold=0.3, as_frame=False)
    np.testing.assert_array_equal(positions, expected["position"])
    assert fitted.label_quality(X, given).index.equals(given.index)
    relabelled = fitted.relabel(X, given)
    assert relabelled.index.equals(given.index)
    assert relabelled.name == "animal"


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("method", JUDGES)
def test_labels_in_another_order_than_the_samples_are_warned_of(fitted, blobs, method):
    X, given = pd.DataFrame(blobs[0]), pd.Series(NAMES[blobs[1]])
    with pytest.warns(UserWarning, match="differ in their order") as caught:
        getattr(fitted, method)(X, given[::-1])
    assert [of.filename for of in caught if "order" in str(of.message)] == [__file__]
    with pytest.raises(NotFittedError):
        getattr(GLCClassifier(), method)(X, given)


def test_verified_samples_are_known(fitted, blobs, true_labels):
    """They may also be in a table, as in samples of the fit below."""
    X, y, checked = blobs[0], blobs[1], np.arange(300) % 3 == 0
    verified = np.where(checked, NAMES[true_labels], None)
    issues, relabelled, quality, posterior, report = (
        getattr(fitted, name)(X, NAMES[y], y_verified=verified)
        for name in ("find_label_issues", "relabel", "label_quality", "label_posterior", "noise_report")
    )
    every = fitted.find_label_issues(X, NAMES[y])
    pd.testing.assert_frame_equal(issues, every[~checked[every.position]])
    assert len(issues) < len(every)
    np.testing.assert_array_equal(relabelled[checked], NAMES[true_labels[checked]])
    np.testing.assert_array_equal(quality[checked], (y == true_labels)[checked])
    np.testing.assert_array_equal(posterior[checked], np.eye(3)[true_labels[checked]])
    assert [row["row"] for row in report.facts["label_issues"]["listed"]] == issues.index.tolist()
    assert report.facts["noise"]["verified"]["rate"] == pytest.approx((y != true_labels)[checked].mean())
    assert report.facts["calibration"] is None  # a fit may have seen these samples


# ---------------------------------------------------------------------------- samples of the fit
@pytest.fixture(scope="module")
def table(blobs, true_labels):
    """Noisy labels with names of their samples, and some verified labels."""
    verified = np.where(np.arange(300) % 5 == 0, NAMES[true_labels], None)
    return pd.DataFrame({"label": NAMES[blobs[1]], "verified": verified}, index=[f"row {n}" for n in range(300)])


@pytest.fixture(scope="module", params=["EM", "tree"])
def cross_fitted(request, blobs, table):
    """Classifiers that memorise the labels of the fit."""
    if request.param == "tree":
        tree = DecisionTreeClassifier(min_samples_leaf=3, random_state=0)
        return TransitionClassifierCV(tree, random_state=0).fit(blobs[0], table)
    return small(EMTransitionClassifier, module__hidden=(100,), max_epochs=20).fit(blobs[0], table)


def test_labels_of_the_fit_are_judged_by_out_of_fold_probabilities(cross_fitted, blobs, table, true_labels):
    clf, X, model = cross_fitted, blobs[0], cross_fitted.noise_model_
    of_fit = model.label_posterior(clf.oof_proba_, table, calibrated=True)
    assert not np.allclose(of_fit, model.label_posterior(clf.predict_proba(X), table, calibrated=True))
    for given in ((), (X, table), (X.tolist(), table)):
        np.testing.assert_allclose(clf.label_posterior(*given), of_fit)
        np.testing.assert_array_equal(clf.relabel(*given), model.relabel(clf.oof_proba_, table, calibrated=True))
    issues, named = clf.find_label_issues(), clf.find_label_issues(X, table)
    assert named.index.tolist() == [f"row {n}" for n in named.position]
    pd.testing.assert_frame_equal(issues, named, check_index_type=False)
    np.testing.assert_array_equal(clf.find_label_issues(as_frame=False), issues.position)
    wrong = (blobs[1] != true_labels) & table["verified"].isna().to_numpy()
    assert wrong[issues.position].mean() > 0.8
    assert wrong[issues.position].sum() > 0.8 * wrong.sum()
    facts, of_all = clf.noise_report().facts, clf.noise_report(X, table).facts
    assert [row["row"] for row in facts["label_issues"]["listed"]] == issues.index.tolist()
    assert facts["label_issues"]["n_expected"] == of_all["label_issues"]["n_expected"]
    more = table.assign(verified=table["verified"].where(table.index != named.index[0], table["label"]))
    pd.testing.assert_frame_equal(clf.find_label_issues(X, more), named[1:])  # verified after the fit


def test_labels_of_other_samples_are_judged_by_predictions(cross_fitted, blobs, table):
    """Fewer samples, more of them, or one other label: there is no out-of-fold probability for these."""
    clf, X, y = cross_fitted, blobs[0], table["label"].to_numpy()
    other = np.where(np.arange(300) == 7, np.where(y == "ant", "bee", "ant"), y)
    for rows, labels in ((X[:299], y[:299]), (X[::-1], y[::-1]), (X, other)):
        posterior = clf.noise_model_.label_posterior(clf.predict_proba(rows), labels, calibrated=True)
        np.testing.assert_allclose(clf.label_posterior(rows, labels), posterior)
    more = clf.label_posterior(np.vstack([X, X]), np.concatenate([y, y]))
    predicted = clf.noise_model_.label_posterior(clf.predict_proba(X), y, calibrated=True)
    np.testing.assert_allclose(more, np.concatenate([clf.label_posterior(X, y), predicted]), rtol=1e-5)


def test_samples_and_labels_are_given_together(cross_fitted, fitted, blobs, table):
    for method in JUDGES:
        for clf, given in ((cross_fitted, (blobs[0],)), (cross_fitted, (None, table)), (fitted, ())):
            with pytest.raises(ValueError, match="y_noisy is None"):
                getattr(clf, method)(*given)


def test_samples_of_weight_0_were_not_trained_on(blobs, table):
    X, weight = blobs[0], np.where(np.arange(300) % 7 == 1, 0, 1)
    clf = small(EMTransitionClassifier).fit(X, table, sample_weight=weight)
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
    for name in ("relabel", "label_quality"):
        np.testing.assert_array_equal(getattr(model, name)(), getattr(model, name)(proba, y, y_verified=verified))
    with pytest.raises(ValueError, match="not fitted to samples"):
        LabelNoiseModel.from_transition_matrix(np.eye(2)).find_label_issues()


# ---------------------------------------------------------------------------- number of samples of each class
def test_class_counts_are_the_most_likely_behind_the_noisy_labels(fitted, plain, blobs, true_labels):
    noisy, T = np.bincount(blobs[1]), blobs[-1]
    shares = denoise_proba([noisy / 300], fitted.transition_matrix_, n_iter=1000)
    np.testing.assert_allclose(fitted.noisy_class_counts_, 300 * shares[0])
    np.testing.assert_allclose(fitted.noisy_class_counts_ @ T, noisy, atol=0.5)  # no entry of the solution is negative
    em = plain(EMTransitionClassifier)  # counts them by its posteriors
    np.testing.assert_allclose(em.noisy_class_counts_, em.noise_model_.transition_counts_.sum(axis=1))
    np.testing.assert_allclose(em.noisy_class_counts_, np.bincount(true_labels), atol=30)
