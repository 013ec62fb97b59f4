"""Callbacks that follow a score: rows are held out for it, or the error says which scores there are."""

import numpy as np
import pytest
from estimators import CLASSIFIERS, NEED_CLEAN_DATA, WITHOUT_CLEAN_DATA, small
from sklearn.metrics import f1_score, make_scorer
from skorch.callbacks import (
    BatchScoring,
    Callback,
    Checkpoint,
    EarlyStopping,
    EpochScoring,
    EpochTimer,
    LRScheduler,
    PassthroughScoring,
)
from skorch.dataset import ValidSplit
from torch.optim.lr_scheduler import ReduceLROnPlateau
from training import Batches, fit, fit_noisy, refused

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    MetaTransitionClassifier,
    MWNetClassifier,
    TRevisionClassifier,
)
from noisytransition.classifiers import METHODS

every = pytest.mark.parametrize("cls", CLASSIFIERS)


@every
@pytest.mark.parametrize("stop", [EarlyStopping(patience=1), EarlyStopping, ("stop", EarlyStopping())])
def test_early_stopping_has_held_out_rows_by_default(cls, stop, blobs):
    clf = fit(cls, blobs, callbacks=[stop])
    assert all("valid_loss" in history[-1] for history in clf.histories_.values())


def rows_trained_on(train, cls, blobs, callbacks, **params):
    """Numbers of rows that epochs were trained on, in their order."""
    batches = Batches()
    clf = train(cls, blobs, callbacks=[*callbacks, batches], **params)
    return clf, list(dict.fromkeys(batches.sizes()))


@pytest.mark.parametrize("monitor", ["valid_loss", "valid_acc", "valid_noisy_loss", "valid_acc_best"])
def test_a_tenth_of_the_rows_is_held_out(monitor, blobs):
    given = fit_noisy, CrossEntropyClassifier, blobs
    assert rows_trained_on(*given, [EarlyStopping(monitor)])[1] == [270]
    assert rows_trained_on(*given, [EarlyStopping(monitor)], train_split=ValidSplit(3))[1] == [200]
    assert rows_trained_on(*given, [EarlyStopping("train_loss")])[1] == [300]


def test_what_a_method_holds_out_stays_as_it_is(blobs):
    assert rows_trained_on(fit, TRevisionClassifier, blobs, [EarlyStopping()], validation_fraction=0.3)[1] == [210]


def test_clean_rows_are_held_out_where_they_are_trained_on(blobs):
    assert rows_trained_on(fit, FineTuningClassifier, blobs, [EarlyStopping()])[1] == [270, 54]


def test_T_is_not_selected_by_rows_that_are_held_out_for_a_callback(blobs):
    clf = fit(MetaTransitionClassifier, blobs, callbacks=[EarlyStopping()], validation_fraction=0, transition_lr=5.0)
    np.testing.assert_allclose(clf.transition_matrix_, clf.transition_history_[-1], atol=1e-6)
    assert not np.allclose(clf.transition_matrix_, clf.transition_init_, atol=1e-3)


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


NOISY = r"\[('meta_loss', )?'train_loss', 'valid_acc', 'valid_loss', 'valid_noisy_acc', 'valid_noisy_loss'\]"


@pytest.mark.parametrize("cls", NEED_CLEAN_DATA)
def test_the_loss_of_clean_rows_is_not_recorded_where_they_are_trained_on(cls, blobs):
    with refused(f"'valid_clean_loss', which .* does not record: give monitor= one of {NOISY}"):
        fit(cls, blobs, callbacks=[EarlyStopping("valid_clean_loss")])


def test_clean_rows_must_be_there_to_be_followed(blobs):
    for split in ({}, {"train_split": ValidSplit(5)}):
        with refused(f"monitors 'valid_clean_loss'.*one of {NOISY}"):
            fit_noisy(CrossEntropyClassifier, blobs, callbacks=[EarlyStopping("valid_clean_loss")], **split)


@pytest.mark.parametrize(
    "callback",
    [
        Checkpoint(),
        LRScheduler(ReduceLROnPlateau, monitor="valid_acc"),
        ("stop", EarlyStopping("train_loss")),
    ],
)
def test_other_callbacks_have_held_out_rows_too(callback, blobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Checkpoint writes there
    stop = {"callbacks__stop__monitor": "valid_acc"} if isinstance(callback, tuple) else {}
    clf = fit_noisy(CrossEntropyClassifier, blobs, callbacks=[callback], **stop)
    assert "valid_loss" in clf.history_[-1]


def test_scores_of_the_user_s_own_may_have_any_name(blobs):
    score = EpochScoring(lambda net, X, y: 0.5, name="valid_acc", on_train=True, lower_is_better=False)
    clf = fit_noisy(CrossEntropyClassifier, blobs, callbacks=[score, EarlyStopping("valid_acc", patience=2)])
    assert "valid_acc" in clf.history_[-1]


@pytest.mark.parametrize("cls", METHODS.values())
@pytest.mark.parametrize(
    "callback",
    [
        EarlyStopping("valid_foo"),
        ("stop", EarlyStopping("foo_best")),
        Checkpoint("valid_f1_best"),
        LRScheduler(ReduceLROnPlateau, monitor="train_accuracy"),
    ],
)
def test_scores_that_nothing_records_are_refused_with_those_that_exist(cls, callback, blobs):
    with refused("monitors '(valid_foo|foo|valid_f1|train_accuracy)', which the training .*one of .*'train_loss'"):
        fit(cls, blobs, callbacks=[callback])


def test_the_refusal_names_scores_of_the_user_s_own(blobs):
    score = EpochScoring(make_scorer(f1_score, average="macro"), on_train=True)
    with refused("'valid_foo'.*one of .*'f1_score'"):
        fit_noisy(CrossEntropyClassifier, blobs, callbacks=[score, EarlyStopping("valid_foo")])


class Writes(Callback):
    """Writes a score of its own."""

    def on_epoch_end(self, net, **kwargs):
        net.history.record("mine", 0.5)


@pytest.mark.parametrize(
    ("callback", "monitor"),
    [
        (EpochScoring("accuracy", on_train=True), "accuracy_best"),
        (EpochScoring(lambda net, X, y: 0.5, on_train=True), "<lambda>"),
        (EpochScoring(make_scorer(f1_score, average="macro"), on_train=True), "f1_score"),
        (BatchScoring(lambda net, X, y: 0.5, name="half", on_train=True), "half"),
        (PassthroughScoring("train_batch_size", on_train=True), "train_batch_size"),
        (LRScheduler("StepLR", step_size=1, event_name="rate"), "rate"),
        (LRScheduler("StepLR", step_size=1), "event_lr"),
        (Writes(), "mine"),
        (EpochTimer(), "dur"),
    ],
)
def test_scores_that_callbacks_write_may_be_followed(callback, monitor, blobs):
    clf = fit_noisy(CrossEntropyClassifier, blobs, callbacks=[callback, EarlyStopping(monitor)], max_epochs=2)
    assert monitor in clf.history_[-1]


@pytest.mark.parametrize(
    "followed",
    [
        [],
        [EarlyStopping("f1_macro", lower_is_better=False)],
        [LRScheduler(ReduceLROnPlateau, monitor="f1_macro", mode="max")],
    ],
)
def test_a_score_of_held_out_rows_has_them(followed, blobs):
    callbacks = [EpochScoring("f1_macro", lower_is_better=False), *followed]
    clf, sizes = rows_trained_on(fit_noisy, CrossEntropyClassifier, blobs, callbacks)
    assert "f1_macro" in clf.history_[-1]
    assert sizes == [270]


@pytest.mark.parametrize("how", [{"callbacks__score": None}, {"callbacks__score__use_caching": False}])
def test_no_rows_are_held_out_for_a_score_that_is_not_computed_of_them(how, blobs):
    callbacks = [("score", EpochScoring("accuracy"))]
    clf, sizes = rows_trained_on(fit_noisy, CrossEntropyClassifier, blobs, callbacks, **how)
    assert sizes == [300]
    assert "accuracy" not in clf.history_[-1]


@pytest.mark.parametrize(("followed", "clean"), [([], 60), ([EarlyStopping("accuracy", lower_is_better=False)], 54)])
def test_few_clean_rows_are_not_held_out_for_a_score_that_nobody_follows(followed, clean, blobs):
    callbacks = [EpochScoring("accuracy", lower_is_better=False), *followed]
    assert rows_trained_on(fit, FineTuningClassifier, blobs, callbacks)[1] == [270, clean]


def test_trainings_on_clean_rows_alone_hold_none_out_for_a_score(blobs):
    clf = fit(EMTransitionClassifier, blobs, callbacks=[EpochScoring("accuracy")], select_classifier=True, max_epochs=2)
    assert all("accuracy" in clf.histories_[stage][-1] for stage in ("fold_0", "fold_1", "em"))
    assert not any("clean_fold" in stage for stage in clf.histories_)


def test_a_name_that_is_set_by_a_parameter_may_be_followed(blobs):
    callbacks = [("score", EpochScoring("accuracy", on_train=True)), EarlyStopping("mine")]
    clf = fit_noisy(CrossEntropyClassifier, blobs, callbacks=callbacks, callbacks__score__name="mine")
    assert "mine" in clf.history_[-1]


def test_the_meta_loss_may_be_followed_where_it_is_recorded(blobs):
    assert "meta_loss" in fit(MWNetClassifier, blobs, callbacks=[EarlyStopping("meta_loss")]).history_[-1]
    with refused("'meta_loss', which the training 'cross_entropy' does not record"):
        fit(FineTuningClassifier, blobs, callbacks=[EarlyStopping("meta_loss")])


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
