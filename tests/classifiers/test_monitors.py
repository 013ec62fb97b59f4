"""Callbacks that follow a score: it must be recorded, and the error says which ones are."""

import pytest
from estimators import CLASSIFIERS, NEED_CLEAN_DATA, WITHOUT_CLEAN_DATA, small
from skorch.callbacks import Checkpoint, EarlyStopping, EpochScoring, LRScheduler
from skorch.dataset import ValidSplit
from torch.optim.lr_scheduler import ReduceLROnPlateau
from training import fit, fit_noisy, refused

from noisytransition import (
    CrossEntropyClassifier,
    FineTuningClassifier,
    ForwardClassifier,
    MetaTransitionClassifier,
    TRevisionClassifier,
)

every = pytest.mark.parametrize("cls", CLASSIFIERS)
# T-Revision holds out noisy rows in every training
HOLDS_OUT = [TRevisionClassifier]
SAYS = "monitors 'valid_loss', which the training '.*' does not record: hold out rows by train_split=.*ValidSplit"


@every
@pytest.mark.parametrize("stop", [EarlyStopping(patience=1), EarlyStopping, ("stop", EarlyStopping())])
def test_early_stopping_without_held_out_rows_is_refused(cls, stop, blobs):
    if cls in HOLDS_OUT:
        assert "valid_loss" in fit(cls, blobs, callbacks=[stop]).history_[-1]
        return
    # the first training of Forward holds out rows, the second does not
    raises = pytest.raises(ValueError, match=SAYS) if cls is ForwardClassifier else refused(f"EarlyStopping {SAYS}")
    with raises:
        fit(cls, blobs, callbacks=[stop])


@every
def test_with_held_out_rows_it_stops_all_trainings(cls, blobs):
    stop = EarlyStopping(patience=1, threshold=1e9, threshold_mode="abs")
    clf = fit(cls, blobs, callbacks=[stop], train_split=ValidSplit(5), max_epochs=4)
    assert all(len(history) < 4 for history in clf.histories_.values())


@every
def test_what_the_error_names_can_be_followed(cls, blobs):
    fit(cls, blobs, callbacks=[EarlyStopping("train_loss")])
    if cls in WITHOUT_CLEAN_DATA:
        fit(cls, blobs, callbacks=[EarlyStopping("valid_clean_loss")])


@pytest.mark.parametrize("cls", NEED_CLEAN_DATA)
def test_the_loss_of_clean_rows_is_not_recorded_where_they_are_trained_on(cls, blobs):
    with refused(r"'valid_clean_loss', which .* does not record.*give monitor= one of \['train_loss'\]"):
        fit(cls, blobs, callbacks=[EarlyStopping("valid_clean_loss")])


def test_clean_rows_must_be_there_to_be_followed(blobs):
    with refused(r"monitors 'valid_clean_loss'.*one of \['train_loss'\]"):
        fit_noisy(CrossEntropyClassifier, blobs, callbacks=[EarlyStopping("valid_clean_loss")])
    recorded = r"one of \['train_loss', 'valid_acc', 'valid_loss', 'valid_noisy_acc', 'valid_noisy_loss'\]"
    with refused(f"does not record: give monitor= {recorded}"):
        split = ValidSplit(5)
        fit_noisy(CrossEntropyClassifier, blobs, callbacks=[EarlyStopping("valid_clean_loss")], train_split=split)


@pytest.mark.parametrize(
    "callback",
    [
        Checkpoint(),
        LRScheduler(ReduceLROnPlateau, monitor="valid_acc"),
        ("stop", EarlyStopping("train_loss")),
    ],
)
def test_other_callbacks_are_checked_too(callback, blobs):
    with refused("monitors 'valid_(loss|acc)'"):
        stop = {"callbacks__stop__monitor": "valid_acc"} if isinstance(callback, tuple) else {}
        fit_noisy(CrossEntropyClassifier, blobs, callbacks=[callback], **stop)


def test_scores_of_the_user_s_own_may_have_any_name(blobs):
    score = EpochScoring(lambda net, X, y: 0.5, name="valid_acc", on_train=True, lower_is_better=False)
    clf = fit_noisy(CrossEntropyClassifier, blobs, callbacks=[score, EarlyStopping("valid_acc", patience=2)])
    assert "valid_acc" in clf.history_[-1]


def test_the_second_stage_of_fine_tuning_has_scores_of_clean_rows(blobs):
    stop = EarlyStopping("valid_noisy_loss")
    with pytest.raises(ValueError, match=r"the training 'fine_tuning' does not record.*valid_clean_loss.*valid_loss"):
        fit(FineTuningClassifier, blobs, callbacks=[stop], train_split=ValidSplit(5))


def test_a_training_that_holds_out_rows_itself_needs_no_split(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    clf = small(
        MetaTransitionClassifier, callbacks=[EarlyStopping()], transition_init="diagonal", from_warm_up=False
    ).fit(X, y, meta=(X_meta, y_meta))
    assert "valid_loss" in clf.history_[-1]
