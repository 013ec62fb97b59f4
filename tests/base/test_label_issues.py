"""Label issues and other methods that use T, for labels of any type."""

import pickle

import numpy as np
import pandas as pd
import pytest
from estimators import WITH_TRANSITION, small
from sklearn.exceptions import NotFittedError

from noisytransition import EMTransitionClassifier, GLCClassifier
from noisytransition.transition import denoise_proba, label_posterior

NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def fitted(blobs):
    """GLC at the true T: the names of the classes are strings."""
    X, y, X_meta, y_meta, _, _, T = blobs
    return small(GLCClassifier, transition_init=T, max_epochs=10).fit(X, NAMES[y], meta=(X_meta, NAMES[y_meta]))


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
    X, y, X_meta, y_meta, *_ = blobs
    clf = small(GLCClassifier).fit(X, names[y], meta=(X_meta, names[y_meta]))
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
    X, y, X_meta, y_meta, *_ = blobs
    clf = pickle.loads(pickle.dumps(small(cls).fit(X, NAMES[y], meta=(X_meta, NAMES[y_meta]))))
    model, proba = clf.noise_model_, clf.predict_proba(X)
    assert model.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(model.transition_matrix_, clf.transition_matrix_)
    pd.testing.assert_frame_equal(
        model.find_label_issues(proba, NAMES[y], calibrate=False), clf.find_label_issues(X, NAMES[y])
    )


# ---------------------------------------------------------------------------- numbers of rows of each class
def test_class_counts_are_the_most_likely_behind_the_noisy_labels(fitted, blobs):
    y, T = blobs[1], blobs[-1]
    noisy = np.bincount(y)
    shares = denoise_proba([noisy / 300], fitted.transition_matrix_, n_iter=1000)
    np.testing.assert_allclose(fitted.class_counts_, 300 * shares[0])
    np.testing.assert_allclose(fitted.class_counts_ @ T, noisy, atol=0.5)  # here the solution has no negative entry


def test_em_counts_them_by_its_posteriors(blobs, true_labels):
    X, y, X_meta, y_meta, *_ = blobs
    clf = small(EMTransitionClassifier).fit(X, y, meta=(X_meta, y_meta))
    np.testing.assert_allclose(clf.class_counts_, clf.noise_model_.transition_counts_.sum(axis=1))
    np.testing.assert_allclose(clf.class_counts_, np.bincount(true_labels), atol=30)
