import numpy as np
from training import Batches, fit, fit_noisy

from noisytransition import CrossEntropyClassifier, FineTuningClassifier


def test_adam_is_fused_unless_another_implementation_is_selected(blobs):
    X, y, *_ = blobs
    fused = CrossEntropyClassifier(max_epochs=3, random_state=0).fit(X, y)
    looped = CrossEntropyClassifier(max_epochs=3, random_state=0, optimizer__fused=False).fit(X, y)
    assert fused.net_.optimizer_.defaults["fused"]
    assert not looped.net_.optimizer_.defaults["fused"]
    np.testing.assert_allclose(fused.predict_proba(X), looped.predict_proba(X), atol=1e-5)


def test_fine_tuning_of_no_epochs_is_cross_entropy_to_the_bit(blobs):
    plain, tuned = fit_noisy(CrossEntropyClassifier, blobs), fit(FineTuningClassifier, blobs, fine_tuning_epochs=0)
    np.testing.assert_array_equal(plain.predict_proba(blobs[0]), tuned.predict_proba(blobs[0]))


def test_fine_tuning_goes_on_with_the_clean_rows_alone(blobs):
    batches = Batches()
    clf = fit(FineTuningClassifier, blobs, fine_tuning_epochs=10, fine_tuning_lr=0.05, callbacks=[batches])
    history = clf.histories_["fine_tuning"]
    assert history[-1, "train_loss"] < history[0, "train_loss"]
    assert batches.sizes()[-1] == len(blobs[2])
    assert clf.net_.optimizer_.param_groups[0]["lr"] == 0.05
    assert list(clf.histories_) == ["cross_entropy", "fine_tuning"]
