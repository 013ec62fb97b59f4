import numpy as np
import pytest
from estimators import small
from training import Batches, fit

from noisytransition import CrossEntropyClassifier, FineTuningClassifier


def test_clean_rows_are_never_trained_on(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    without = small(CrossEntropyClassifier).fit(X, y)
    with_them = small(CrossEntropyClassifier).fit(X, y, meta=(X_meta, y_meta))
    np.testing.assert_array_equal(without.predict_proba(X), with_them.predict_proba(X))


def test_fine_tuning_of_no_epochs_is_cross_entropy_to_the_bit(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    plain = small(CrossEntropyClassifier).fit(X, y)
    tuned = small(FineTuningClassifier, fine_tuning_epochs=0).fit(X, y, meta=(X_meta, y_meta))
    np.testing.assert_array_equal(plain.predict_proba(X), tuned.predict_proba(X))


def test_fine_tuning_goes_on_with_the_clean_rows_alone(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    batches = Batches()
    clf = small(FineTuningClassifier, fine_tuning_epochs=10, fine_tuning_lr=0.05, callbacks=[batches])
    clf.fit(X, y, meta=(X_meta, y_meta))
    history = clf.histories_["fine_tuning"]
    assert history[-1, "train_loss"] < history[0, "train_loss"]
    assert batches.sizes()[-1] == len(X_meta)
    assert clf.net_.optimizer_.param_groups[0]["lr"] == 0.05
    assert list(clf.histories_) == ["cross_entropy", "fine_tuning"]


@pytest.mark.parametrize("cls", [CrossEntropyClassifier, FineTuningClassifier])
def test_label_smoothing_spreads_a_share_of_each_label(cls, blobs):
    """The loss of a network that does not move, by its definition."""
    X, y, *_ = blobs
    clf = fit(cls, blobs, label_smoothing=0.3, lr=0.0, max_epochs=1, batch_size=len(X))
    log_proba = np.log(clf.predict_proba(X))
    expected = -0.7 * log_proba[np.arange(len(y)), y].mean() - 0.3 * log_proba.mean()
    np.testing.assert_allclose(clf.histories_["cross_entropy"][-1, "train_loss"], expected, rtol=1e-5)


def test_the_clean_labels_of_fine_tuning_are_not_smoothed(blobs):
    _, _, X_meta, y_meta, *_ = blobs
    given = {"lr": 0.0, "max_epochs": 1, "fine_tuning_epochs": 1, "batch_size": 100}
    clf = fit(FineTuningClassifier, blobs, label_smoothing=0.3, **given)
    expected = -np.log(clf.predict_proba(X_meta))[np.arange(len(y_meta)), y_meta].mean()
    np.testing.assert_allclose(clf.histories_["fine_tuning"][-1, "train_loss"], expected, rtol=1e-5)


def test_without_any_label_in_them_labels_do_not_matter(blobs):
    X, y, *_ = blobs
    a, b = (small(CrossEntropyClassifier, label_smoothing=1.0).fit(X, labels) for labels in (y, (y + 1) % 3))
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-6)
