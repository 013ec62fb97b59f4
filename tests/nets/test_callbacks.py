import numpy as np
import pytest
import torch
from estimators import NEED_CLEAN_DATA, WITHOUT_CLEAN_DATA, small
from skorch.callbacks import Callback, EarlyStopping
from skorch.dataset import ValidSplit
from torch.nn import functional as F

from noisytransition import (
    CrossEntropyClassifier,
    FineTuningClassifier,
    ForwardClassifier,
    GCEClassifier,
    GLCClassifier,
    SModelClassifier,
)
from noisytransition.nets import KeepBest, NoisyLabelNet, Rows


def fit(cls, blobs, **params):
    X, y, X_meta, y_meta, *_ = blobs
    return small(cls, **params).fit(X, y, meta=(X_meta, y_meta))


# ---------------------------------------------------------------------------- clean rows that are not trained on
@pytest.mark.parametrize("cls", WITHOUT_CLEAN_DATA)
def test_their_loss_is_in_every_stage_s_history(cls, blobs):
    X, y, X_meta, y_meta, *_ = blobs
    clf = fit(cls, blobs)
    for history in clf.histories_.values():
        assert np.isfinite(history[:, "valid_clean_loss"]).all()
    proba = clf.predict_proba(X_meta)[np.arange(len(y_meta)), y_meta]
    if len(clf.histories_) < 3:  # T-Revision may end with an earlier epoch
        assert clf.history_[-1, "valid_clean_loss"] == pytest.approx(-np.log(proba).mean(), rel=1e-4)
    assert "valid_clean_loss" not in small(cls).fit(X, y).history_[-1]


@pytest.mark.parametrize("cls", NEED_CLEAN_DATA)
def test_no_loss_of_rows_that_are_trained_on_is_called_a_validation_loss(cls, blobs):
    assert "valid_clean_loss" not in fit(cls, blobs).history_[-1]


@pytest.mark.parametrize("cls", [CrossEntropyClassifier, GCEClassifier, ForwardClassifier])
def test_watching_changes_nothing(cls, blobs):
    X, y, *_ = blobs
    np.testing.assert_array_equal(fit(cls, blobs).predict_proba(X), small(cls).fit(X, y).predict_proba(X))


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
    """Keeps what the net said of the validation rows, and their labels."""

    def on_train_begin(self, net, **kwargs):
        self.kept_ = []

    def on_batch_end(self, net, batch=None, training=False, y_pred=None, **kwargs):
        if not training:
            self.kept_.append((y_pred, batch[1]))


@pytest.mark.parametrize("cls", [CrossEntropyClassifier, SModelClassifier, GLCClassifier])
def test_noisy_rows_are_scored_through_T(cls, blobs):
    logits = Logits()
    clf = fit(cls, blobs, train_split=ValidSplit(3, stratified=False), callbacks=[("logits", logits)], max_epochs=1)
    z, y = (torch.cat(parts) for parts in zip(*dict(clf.net_.callbacks_)["logits"].kept_, strict=True))
    T = getattr(clf, "transition_matrix_", np.eye(3))
    proba, row = F.softmax(z, 1).double().numpy(), clf.history_[-1]
    np.testing.assert_allclose(row["valid_noisy_acc"], np.mean((proba @ T).argmax(1) == y.numpy() % 3))
    np.testing.assert_allclose(row["valid_acc"], np.mean(proba.argmax(1) == y.numpy() % 3))
    through = np.where(y.numpy()[:, None] < 3, proba @ T, proba)[np.arange(len(y)), y.numpy() % 3]
    np.testing.assert_allclose(row["valid_noisy_loss"], -np.log(through).mean(), rtol=1e-4)
    assert row["valid_loss"] == row["valid_noisy_loss"]


def test_clean_rows_held_out_of_fine_tuning_are_called_clean(blobs):
    clf = fit(FineTuningClassifier, blobs, train_split=ValidSplit(3))
    noisy, clean = (history[-1].keys() for history in clf.histories_.values())
    assert {"valid_noisy_loss", "valid_noisy_acc"} <= noisy
    assert {"valid_clean_loss", "valid_clean_acc"} <= clean
    assert "valid_noisy_loss" not in clean


# ---------------------------------------------------------------------------- the best epoch
@pytest.mark.parametrize(("monitor", "lower"), [("valid_noisy_loss", True), ("valid_noisy_acc", False)])
def test_the_best_epoch_s_weights_come_back(blobs, monitor, lower):
    X, y, *_ = blobs
    rows = Rows(X.astype(np.float32), y)
    seen = []

    class Weights(Callback):
        def on_epoch_end(self, net, **kwargs):
            seen.append(net.module_.weight.detach().clone())

    torch.manual_seed(0)
    net = NoisyLabelNet(
        torch.nn.Linear(4, 3),
        lr=2.0,
        max_epochs=12,
        train_split=ValidSplit(5, stratified=False),
        classes=np.arange(3),
        verbose=0,
        callbacks=[("weights", Weights()), ("best", KeepBest(monitor, lower_is_better=lower))],
    ).fit(rows, rows.y)
    scores = np.array(net.history[:, monitor]) * (1 if lower else -1)
    assert len(set(scores)) > 1
    torch.testing.assert_close(net.module_.weight.detach(), seen[int(scores.argmin())], rtol=0, atol=0)
