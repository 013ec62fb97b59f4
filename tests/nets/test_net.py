"""Parameters and callbacks of skorch in every stage of a fit, and the types of inputs."""

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback, Checkpoint, EarlyStopping, EpochScoring, LRScheduler, ProgressBar
from skorch.dataset import ValidSplit
from torch import nn
from training import Batches, On, assert_same, fit, fit_noisy

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
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


class Worsens(Callback):
    """Callback that gives the second epoch the best score."""

    def on_epoch_end(self, net, **kwargs):
        net.history.record("score", abs(len(net.history) - 2))
        net.history.record("score_best", len(net.history) == 2)


@pytest.mark.parametrize("kind", [EarlyStopping, Checkpoint])
def test_the_best_epoch_brings_T_back_with_the_weights(kind, blobs, tmp_path):
    best = EarlyStopping("score", patience=9, load_best=True)
    if kind is Checkpoint:
        best = Checkpoint("score_best", load_best=True, dirname=str(tmp_path))
    clf = fit(MetaTransitionClassifier, blobs, callbacks=[Worsens(), best], max_epochs=4, transition_lr=100.0)
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
        (np.float16, False, "auto", torch.float32),
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
