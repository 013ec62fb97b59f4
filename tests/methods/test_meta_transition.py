import numpy as np
import pytest
import torch
from estimators import small
from skorch.callbacks import EarlyStopping
from training import Stages, floored

from noisytransition import GLCClassifier, MetaTransitionClassifier
from noisytransition.labels._draw import weights_of_draw, weights_of_labels
from noisytransition.transition import symmetric_noise


def fit(blobs, y_clean_noisy=None, **params):
    X, y, *meta = blobs[:4]
    return small(MetaTransitionClassifier, **params).fit(X, y, meta=meta, y_clean_noisy=y_clean_noisy)


# ---------------------------------------------------------------------------- starts of T
def test_starts_without_a_warm_up(blobs):
    given = [[0.5, 0.25, 0.25], [0, 1, 0], [0.1, 0, 0.9]]
    y_clean = blobs[3]
    y_clean_noisy = (y_clean + (np.arange(60) % 3 == 0)) % 3
    of_all = np.bincount(np.append(blobs[1], y_clean_noisy))
    weights = weights_of_draw(None, y_clean_noisy, weights_of_labels(np.bincount(y_clean_noisy), of_all))
    counted = np.full((3, 3), 1 / 3)
    np.add.at(counted, (y_clean, y_clean_noisy), weights)
    counted /= counted.sum(axis=1, keepdims=True)
    for init, expected in (("diagonal", symmetric_noise(3, 0.2)), (given, given), ("count", counted)):
        clf = fit(blobs, transition_init=init, transition_lr=0.0, y_clean_noisy=y_clean_noisy)
        np.testing.assert_allclose(clf.transition_init_, floored(expected), rtol=1e-4, atol=1e-6)
        assert list(clf.histories_) == ["meta_transition", "refit"]


def test_it_is_three_trainings_from_the_same_weights_the_last_with_the_clean_samples(blobs):
    stages = Stages()
    clf = fit(blobs, callbacks=[stages], max_epochs=6, warm_up_epochs=None)
    assert len(clf.histories_["warm_up"]) == 6
    assert list(clf.histories_) == ["warm_up", "meta_transition", "refit"]
    assert all(torch.equal(stages.weights[0][0], begin) for begin, *_ in stages.weights)
    assert stages.n_samples == [300, 300, 360]


def test_as_published_a_new_network_is_the_last_one(blobs):
    stages = Stages()
    X, y, X_clean, y_clean, *_ = blobs
    for from_warm_up in (False, True):
        clf = MetaTransitionClassifier.as_published(max_epochs=2, callbacks=[stages], from_warm_up=from_warm_up)
        clf.fit(X, y, meta=(X_clean, y_clean))
        assert list(clf.histories_) == ["warm_up", "meta_transition"]
        assert torch.equal(stages.weights[-2][-1 if from_warm_up else 0], stages.weights[-1][0])
        np.testing.assert_array_equal(clf.transition_matrix_, clf.transition_history_[-1])


# ---------------------------------------------------------------------------- the selected epoch
@pytest.mark.parametrize("lr", [0.1, 1.0])
def test_T_and_number_of_epochs_are_those_of_the_lowest_clean_loss(blobs, lr):
    """tests/test_selection.py compares this loss with a search on a grid."""
    clf = fit(blobs, transition_lr=30.0, max_epochs=6, lr=lr, optimizer="sgd")
    best = int(np.argmin(clf.histories_["meta_transition"][:, "calibrated_clean_loss"]))
    assert len(clf.transition_history_) == 7
    np.testing.assert_array_equal(clf.transition_matrix_, clf.transition_history_[best + 1])
    assert len(clf.histories_["refit"]) == best + 1
    np.testing.assert_allclose(clf.net_.criterion_.transition_matrix, clf.transition_matrix_, rtol=1e-4, atol=1e-6)


def test_a_refit_is_glc_with_that_T_and_as_many_epochs(blobs):
    X, y, *meta = blobs[:4]
    clf = fit(blobs, max_epochs=6, batch_size=-1)
    own = {"transition_init": clf.transition_matrix_, "max_epochs": len(clf.histories_["refit"])}
    glc = small(GLCClassifier, batch_size=-1, **own).fit(X, y, meta=meta)
    np.testing.assert_allclose(clf.predict_proba(X), glc.predict_proba(X), rtol=1e-4, atol=1e-6)


def test_callbacks_that_select_an_epoch_replace_the_selection_and_the_refit(blobs):
    clf = fit(blobs, max_epochs=6, callbacks=[EarlyStopping("train_loss", patience=6, load_best=True)])
    assert list(clf.histories_) == ["warm_up", "meta_transition"]
    best = int(np.argmin(clf.history_[:, "train_loss"]))
    np.testing.assert_array_equal(clf.transition_matrix_, clf.transition_history_[best + 1])


def test_many_classes_have_the_start_and_the_end_in_the_history(blobs, monkeypatch):
    whole, no_epochs = fit(blobs), fit(blobs, max_epochs=0)
    np.testing.assert_array_equal(no_epochs.transition_matrix_, no_epochs.transition_init_)
    monkeypatch.setattr("noisytransition.nets._net.MOST_CLASSES_IN_HISTORY", 2)
    clf = fit(blobs)
    assert clf.transition_history_.shape == (2, 3, 3)
    np.testing.assert_array_equal(clf.transition_matrix_, whole.transition_matrix_)
    np.testing.assert_array_equal(clf.transition_history_[-1], clf.transition_matrix_)
    np.testing.assert_allclose(clf.transition_init_, whole.transition_init_, rtol=1e-6)
