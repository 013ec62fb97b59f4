"""Scores of held-out samples: clean ones that are not trained on, and a validation set of noisy ones."""

import numpy as np
import pytest
import torch
from estimators import NEED_CLEAN_DATA, WITHOUT_CLEAN_DATA
from scipy.special import softmax
from skorch.callbacks import EarlyStopping
from skorch.dataset import ValidSplit
from training import On, fit, fit_noisy

from noisytransition import CrossEntropyClassifier, FineTuningClassifier, GLCClassifier, SModelClassifier


# ---------------------------------------------------------------------------- clean rows that are not trained on
@pytest.mark.parametrize("cls", WITHOUT_CLEAN_DATA)
def test_their_loss_is_in_every_stage_s_history_and_changes_nothing(cls, blobs, plain):
    """Compare the history with the net's loss of the clean samples after each epoch."""
    X, _, X_clean, y_clean, *_ = blobs
    expected = []

    def note(net, **kwargs):
        proba = net.predict_proba(X_clean.astype(np.float32))[np.arange(len(y_clean)), y_clean]
        expected.append(-np.log(proba).mean())

    clf = fit(cls, blobs, callbacks=[On(epoch_end=note)])
    losses = [loss for history in clf.histories_.values() for loss in history[:, "valid_clean_loss"]]
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    without = fit_noisy(cls, blobs)
    np.testing.assert_array_equal(plain(cls).predict_proba(X), without.predict_proba(X))
    assert "valid_clean_loss" not in without.history_[-1]


def test_no_loss_of_rows_that_are_trained_on_is_called_a_validation_loss(plain):
    assert not any("valid_clean_loss" in plain(cls).history_[-1] for cls in NEED_CLEAN_DATA)


def test_they_select_the_epoch_when_asked(blobs):
    stop = EarlyStopping(monitor="valid_clean_loss", patience=12, load_best=True)
    params = {"lr": 0.5, "batch_size": 16}
    clf = fit(CrossEntropyClassifier, blobs, callbacks=[stop], max_epochs=12, **params)
    best = int(np.argmin(clf.history_[:, "valid_clean_loss"])) + 1
    assert best < 12
    short = fit(CrossEntropyClassifier, blobs, max_epochs=best, **params)
    np.testing.assert_array_equal(clf.predict_proba(blobs[0]), short.predict_proba(blobs[0]))
    assert clf.history_[best - 1, "valid_clean_loss_best"]


# ---------------------------------------------------------------------------- a validation set of noisy rows
@pytest.mark.parametrize("cls", [CrossEntropyClassifier, SModelClassifier, GLCClassifier])
def test_noisy_rows_are_scored_through_T(cls, blobs):
    outputs = []  # for the validation samples of the last epoch

    def note(net, batch=None, training=False, y_pred=None, **kwargs):
        if not training:
            clean = batch.columns.get("is_clean", torch.zeros(len(batch.label), dtype=torch.bool))
            outputs.append((y_pred, batch.label, clean))

    note = On(train_begin=lambda net, *args, **kwargs: outputs.clear(), batch_end=note)
    clf = fit(cls, blobs, train_split=ValidSplit(3, stratified=False), callbacks=[note], max_epochs=1)
    z, y, is_clean = (torch.cat(parts).numpy() for parts in zip(*outputs, strict=True))
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
