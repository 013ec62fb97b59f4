"""skorch's callbacks in a fit: the stages that they monitor, and reserved names."""

import pytest
from skorch.callbacks import BatchScoring, Checkpoint, EarlyStopping, EpochScoring, PrintLog
from skorch.dataset import ValidSplit
from training import fit, fit_noisy, refused

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    ForwardClassifier,
    MWNetClassifier,
)

every = pytest.mark.parametrize(
    "cls", [CrossEntropyClassifier, FineTuningClassifier, ForwardClassifier, MWNetClassifier, EMTransitionClassifier]
)
OF_SKORCH = ["epoch_timer", "train_loss", "valid_loss", "valid_acc", "print_log"]


@every
def test_with_held_out_rows_it_stops_all_trainings(cls, blobs):
    stop = EarlyStopping(patience=1, threshold=1e9, threshold_mode="abs")
    clf = fit(cls, blobs, callbacks=[stop], train_split=ValidSplit(5), max_epochs=4)
    # scores are those of the noisy samples
    assert all(len(history) < 4 for stage, history in clf.histories_.items() if "clean" not in stage)


@every
def test_scores_without_held_out_rows_can_be_followed(cls, blobs):
    fit(cls, blobs, callbacks=[EarlyStopping("train_loss"), EpochScoring("accuracy", on_train=True)])
    if cls in (CrossEntropyClassifier, ForwardClassifier):  # clean samples are not trained on
        fit(cls, blobs, callbacks=[EarlyStopping("valid_clean_loss")])


@pytest.mark.parametrize(
    "callback",
    [
        EarlyStopping(),
        EarlyStopping,
        ("stop", EarlyStopping("valid_noisy_acc")),
        Checkpoint(),
        EpochScoring("f1_macro"),
        BatchScoring("accuracy"),
    ],
)
def test_scores_of_held_out_rows_need_a_split(callback, blobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Checkpoint writes there
    with refused("train_split"):
        fit(CrossEntropyClassifier, blobs, callbacks=[callback])
    clf = fit_noisy(CrossEntropyClassifier, blobs, callbacks=[callback], train_split=ValidSplit(5))
    assert "valid_loss" in clf.history_[-1]


def test_a_setting_of_a_callback_counts(blobs):
    stop = ("stop", EarlyStopping())
    fit_noisy(CrossEntropyClassifier, blobs, callbacks=[stop], callbacks__stop__monitor="train_loss")
    with refused("train_split"):
        fit_noisy(CrossEntropyClassifier, blobs, callbacks=[stop], callbacks__stop__monitor="valid_acc")


@pytest.mark.parametrize("name", ["update", "save_state"])
def test_callbacks_of_the_library_cannot_be_set(name, blobs):
    with refused("sets no callback"):
        fit(CrossEntropyClassifier, blobs, **{f"callbacks__{name}": None})


@pytest.mark.parametrize("name", OF_SKORCH)
def test_those_of_skorch_are_set_by_their_name(name, blobs):
    fit(FineTuningClassifier, blobs, **{f"callbacks__{name}": None})


def test_a_name_is_given_once(blobs):
    with refused("name"):
        fit(CrossEntropyClassifier, blobs, callbacks=[("update", PrintLog())])
