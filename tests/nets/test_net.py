"""Parameters and callbacks of skorch in every stage of a fit, types of inputs, and scores of held-out samples."""

import numpy as np
import pytest
import torch
from estimators import NEED_CLEAN_DATA, WITHOUT_CLEAN_DATA
from scipy.special import softmax
from skorch.callbacks import Checkpoint, EarlyStopping, EpochScoring, LRScheduler, ProgressBar
from skorch.dataset import ValidSplit
from torch import nn
from training import Batches, On, assert_same, fit, fit_noisy

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
    SModelClassifier,
)

N_ROWS_OF_LAST_STAGE = {CrossEntropyClassifier: 300, FineTuningClassifier: 60} | dict.fromkeys(
    (GLCClassifier, MetaTransitionClassifier, EMTransitionClassifier), 360
)
# one training and several, on noisy samples, clean ones and both, with an update, and in folds
every = pytest.mark.parametrize("cls", N_ROWS_OF_LAST_STAGE)


# ---------------------------------------------------------------------------- callbacks
@every
def test_callbacks_and_transforms_see_every_stage_and_change_nothing(cls, blobs, plain, capsys):
    shapes, epochs = [], []

    def transform(x):
        shapes.append(x.shape[1:])
        return x * 1.0

    note = On(epoch_end=lambda net, **kwargs: epochs.append(len(net.history)))
    clf = fit(cls, blobs, callbacks=[("bar", ProgressBar()), note], batch_transform=transform, verbose=2)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()[:1].isdigit()]
    assert len(lines) == len(epochs) == sum(len(history) for history in clf.histories_.values())
    assert set(shapes) == {(4,)}
    n_batches = len(shapes)
    assert_same(clf, plain(cls), blobs[0])
    assert len(shapes) == n_batches, "predictions are not transformed"


@every
def test_schedules_splits_and_scores_act_on_copies(cls, blobs):
    schedule = LRScheduler("StepLR", step_size=1, gamma=0.5)
    scoring = EpochScoring("accuracy", name="acc", lower_is_better=False)
    before = dict(vars(schedule))
    clf = fit(cls, blobs, train_split=ValidSplit(4), callbacks=[schedule, scoring, batches := Batches()])
    assert vars(schedule) == before
    assert clf.net_.optimizer_.param_groups[0]["lr"] == pytest.approx(clf.net_.lr * 0.5 ** len(clf.history_))
    rows = batches.sizes("valid_batch_size")[-1]
    assert rows == N_ROWS_OF_LAST_STAGE[cls] // 4
    for row in clf.history_:
        assert row["acc"] == pytest.approx(row["valid_acc"])
        assert row["acc"] * rows == pytest.approx(round(row["acc"] * rows))


@every
def test_early_stopping_ends_its_stage_and_no_more(cls, blobs, plain):
    stop = EarlyStopping(monitor="train_loss", patience=1, threshold=10.0, threshold_mode="abs")
    clf = fit(cls, blobs, callbacks=[stop])
    assert next(len(h) for h in clf.histories_.values()) == 2
    assert clf.histories_.keys() == plain(cls).histories_.keys()
    assert clf.predict(blobs[0]).shape == (300,)


def score(net, **kwargs):
    """Give the second epoch the best score."""
    net.history.record("score", abs(len(net.history) - 2))
    net.history.record("score_best", len(net.history) == 2)


@pytest.mark.parametrize("kind", [EarlyStopping, Checkpoint])
def test_the_best_epoch_brings_T_back_with_the_weights(kind, blobs, tmp_path):
    best = EarlyStopping("score", patience=9, load_best=True)
    if kind is Checkpoint:
        best = Checkpoint("score_best", load_best=True, dirname=str(tmp_path))
    clf = fit(MetaTransitionClassifier, blobs, callbacks=[On(epoch_end=score), best], max_epochs=4, transition_lr=100.0)
    short = fit(MetaTransitionClassifier, blobs, max_epochs=2, warm_up_epochs=2, transition_lr=100.0, refit=False)
    assert not np.array_equal(clf.transition_matrix_, clf.transition_history_[-1])
    np.testing.assert_allclose(clf.transition_matrix_, clf.transition_history_[2], rtol=1e-6)
    np.testing.assert_allclose(clf.transition_matrix_, short.transition_matrix_, rtol=1e-6)
    np.testing.assert_allclose(clf.predict_proba(blobs[0]), short.predict_proba(blobs[0]), rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------------------- inputs
class Kind(nn.Module):
    """Module that records the types of its inputs."""

    seen: set

    def __init__(self, embed=False):
        super().__init__()
        self.embedding = nn.Embedding(256, 4) if embed else None
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        type(self).seen.add(x.dtype)
        x = x.flatten(1)
        x = self.embedding(x.long()).mean(1) if self.embedding is not None and not x.is_floating_point() else x[:, :4]
        return self.head(x)


@pytest.mark.parametrize(
    ("values", "embed", "dtype", "expected"),
    [
        (np.float64, False, "auto", torch.float32),
        (np.int64, False, "auto", torch.float32),
        (np.int64, True, "auto", torch.int64),
        (np.int32, True, "auto", torch.int32),
        (np.int16, True, "auto", torch.int64),  # embeddings take no other integers
        (np.uint16, True, "auto", torch.int64),
        (np.uint8, True, "auto", torch.float32),  # images
        (np.int32, True, "int64", torch.int64),
        (np.float32, False, torch.float32, torch.float32),
    ],
)
def test_batches_are_cast_to_what_the_module_takes(values, embed, dtype, expected):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 255, size=(40, 1, 2, 2) if values is np.uint8 else (40, 4)).astype(values) % 7
    Kind.seen = set()
    y = np.arange(40) % 3
    CrossEntropyClassifier(Kind, module__embed=embed, dtype=dtype, max_epochs=1, random_state=0).fit(X, y).predict(X)
    assert Kind.seen == {expected}


def test_a_double_module_trains_in_double(blobs):
    module = nn.Linear(4, 3).double()
    assert fit(MetaTransitionClassifier, blobs, module=module).predict_proba(blobs[0]).dtype == np.float64


def test_an_epoch_without_batches_is_an_error(blobs):
    split = {"batch_size": 280, "train_split": ValidSplit(5)}  # leaves 240 of 300 rows to train on
    with pytest.raises(ValueError, match="drop_last"):
        fit_noisy(CrossEntropyClassifier, blobs, iterator_train__drop_last=True, **split)


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
    best = int(np.argmin(clf.history_[:, "valid_clean_loss"]))
    assert clf.history_[best, "valid_clean_loss_best"]
    without = fit_noisy(cls, blobs)
    np.testing.assert_array_equal(plain(cls).predict_proba(X), without.predict_proba(X))
    assert "valid_clean_loss" not in without.history_[-1]


def test_no_loss_of_rows_that_are_trained_on_is_called_a_validation_loss(plain):
    assert not any("valid_clean_loss" in plain(cls).history_[-1] for cls in NEED_CLEAN_DATA)


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
