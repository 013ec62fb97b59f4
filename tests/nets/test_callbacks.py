import numpy as np
import pytest
import torch
from estimators import NEED_CLEAN_DATA, WITHOUT_CLEAN_DATA, small
from scipy.special import softmax
from skorch.callbacks import Callback, EarlyStopping
from skorch.dataset import ValidSplit
from training import fit

from noisytransition import (
    CrossEntropyClassifier,
    FineTuningClassifier,
    ForwardClassifier,
    GCEClassifier,
    GLCClassifier,
    SModelClassifier,
)


# ---------------------------------------------------------------------------- clean rows that are not trained on
@pytest.mark.parametrize("cls", WITHOUT_CLEAN_DATA)
def test_their_loss_is_in_every_stage_s_history(cls, blobs):
    """Compare the history with the net's loss of the clean samples after each epoch."""
    X, y, X_clean, y_clean, *_ = blobs
    expected = []

    class Note(Callback):
        def on_epoch_end(self, net, **kwargs):
            proba = net.predict_proba(X_clean.astype(np.float32))[np.arange(len(y_clean)), y_clean]
            expected.append(-np.log(proba).mean())

    clf = fit(cls, blobs, lr=0.01, callbacks=[Note()])
    found = [loss for history in clf.histories_.values() for loss in history[:, "valid_clean_loss"]]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert "valid_clean_loss" not in small(cls).fit(X, y).history_[-1]


@pytest.mark.parametrize("cls", NEED_CLEAN_DATA)
def test_no_loss_of_rows_that_are_trained_on_is_called_a_validation_loss(cls, plain):
    assert "valid_clean_loss" not in plain(cls).history_[-1]


@pytest.mark.parametrize("cls", [CrossEntropyClassifier, GCEClassifier, ForwardClassifier])
def test_watching_changes_nothing(cls, blobs, plain):
    X, y, *_ = blobs
    np.testing.assert_array_equal(plain(cls).predict_proba(X), small(cls).fit(X, y).predict_proba(X))


def test_they_select_the_epoch_when_asked(blobs):
    stop = EarlyStopping(monitor="valid_clean_loss", patience=30, load_best=True)
    params = {"max_epochs": 30, "lr": 0.5, "batch_size": 16}
    clf = fit(CrossEntropyClassifier, blobs, callbacks=[stop], **params)
    losses = clf.history_[:, "valid_clean_loss"]
    best = int(np.argmin(losses)) + 1
    assert best < 30
    short = fit(CrossEntropyClassifier, blobs, **(params | {"max_epochs": best}))
    np.testing.assert_array_equal(clf.predict_proba(blobs[0]), short.predict_proba(blobs[0]))
    assert clf.history_[best - 1, "valid_clean_loss_best"]


# ---------------------------------------------------------------------------- a validation set of noisy rows
class Logits(Callback):
    """Record the net's outputs for the validation samples, and their labels."""

    def on_train_begin(self, net, **kwargs):
        self.kept_ = []

    def on_batch_end(self, net, batch=None, training=False, y_pred=None, **kwargs):
        if not training:
            clean = batch.columns.get("is_clean", torch.zeros(len(batch.label), dtype=torch.bool))
            self.kept_.append((y_pred, batch.label, clean))


@pytest.mark.parametrize("cls", [CrossEntropyClassifier, SModelClassifier, GLCClassifier])
def test_noisy_rows_are_scored_through_T(cls, blobs):
    logits = Logits()
    clf = fit(cls, blobs, train_split=ValidSplit(3, stratified=False), callbacks=[("logits", logits)], max_epochs=1)
    z, y, is_clean = (
        torch.cat(parts).numpy() for parts in zip(*dict(clf.net_.callbacks_)["logits"].kept_, strict=True)
    )
    T = getattr(clf, "transition_matrix_", np.eye(3))
    proba, row = softmax(z.astype(np.float64), axis=1), clf.history_[-1]
    np.testing.assert_allclose(row["valid_noisy_acc"], np.mean((proba @ T).argmax(1) == y))
    np.testing.assert_allclose(row["valid_acc"], np.mean(proba.argmax(1) == y))
    through = np.where(is_clean[:, None], proba, proba @ T)[np.arange(len(y)), y]
    np.testing.assert_allclose(row["valid_noisy_loss"], -np.log(through).mean(), rtol=1e-4)
    assert row["valid_loss"] == row["valid_noisy_loss"]


def test_clean_rows_held_out_of_fine_tuning_are_called_clean(blobs):
    clf = fit(FineTuningClassifier, blobs, train_split=ValidSplit(3))
    noisy, clean = (history[-1].keys() for history in clf.histories_.values())
    assert {"valid_noisy_loss", "valid_noisy_acc"} <= noisy
    assert {"valid_clean_loss", "valid_clean_acc"} <= clean
    assert "valid_noisy_loss" not in clean
