"""skorch's callbacks in a fit: the stages that they monitor, and reserved names."""

import pytest
from skorch.callbacks import Checkpoint, EarlyStopping, PrintLog
from skorch.dataset import ValidSplit
from training import fit, fit_noisy, refused

from noisytransition import CrossEntropyClassifier

OF_SKORCH = ["epoch_timer", "train_loss", "valid_loss", "valid_acc", "print_log"]


CALLBACKS = [EarlyStopping(), EarlyStopping, ("stop", EarlyStopping("valid_noisy_acc")), Checkpoint()]


@pytest.mark.parametrize("callback", CALLBACKS)
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


def test_callbacks_of_skorch_are_set_by_their_name_and_those_of_the_library_are_not(blobs):
    fit_noisy(CrossEntropyClassifier, blobs, **{f"callbacks__{name}": None for name in OF_SKORCH})
    for name in ("update", "save_state"):
        with refused("set no callback"):
            fit_noisy(CrossEntropyClassifier, blobs, **{f"callbacks__{name}": None})
    with refused("name"):
        fit_noisy(CrossEntropyClassifier, blobs, callbacks=[("update", PrintLog())])
