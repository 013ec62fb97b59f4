"""Ctrl-C at any moment of a fit: it raises KeyboardInterrupt, and leaves nothing behind."""

import os
import signal
import threading
import time
from unittest import mock

import joblib
import numpy as np
import pytest
import torch
from estimators import CLASSIFIERS, small
from skorch.callbacks import Callback, Checkpoint, EarlyStopping, LRScheduler
from training import assert_same, fit

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, MetaTransitionClassifier
from noisytransition.nets import GlobalState


@pytest.fixture(autouse=True)
def _ctrl_c_is_python_s():
    """A process that is started in the background ignores Ctrl-C, and so do its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press(times=1):
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


def interrupting(base, method, times=1):
    """A callback of this class with Ctrl-C pressed after the first line of the second call of a method."""

    class Interrupting(base):
        calls = 0

    def pressed(self, *args, **kwargs):
        type(self).calls += 1
        if type(self).calls == 2:
            press(times)
        return getattr(base, method)(self, *args, **kwargs)

    setattr(Interrupting, method, pressed)
    return Interrupting


def outside():
    """What a fit must leave as it was."""
    return (
        signal.getsignal(signal.SIGINT),
        torch.is_grad_enabled(),
        torch.get_num_threads(),
        torch.get_rng_state().numpy().tobytes(),
    )


def interrupted(clf, blobs, **how):
    """Fit, and check that Ctrl-C ended it cleanly."""
    X, y, X_meta, y_meta, *_ = blobs
    before = outside()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y, meta=(X_meta, y_meta), **how)
    assert outside() == before
    assert not [name for name in vars(clf) if name.endswith("_")]


HOOKS = ["on_epoch_begin", "on_batch_begin", "on_batch_end", "on_epoch_end"]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("method", [*HOOKS, "_is_score_improved", "_calc_new_threshold"])
def test_inside_early_stopping(method, times, blobs):
    stop = interrupting(EarlyStopping, method, times)(monitor="train_loss", patience=3)
    interrupted(small(CrossEntropyClassifier, callbacks=[stop], max_epochs=10, lr=0.01), blobs)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(("base", "method"), [(LRScheduler, hook) for hook in HOOKS] + [(Callback, h) for h in HOOKS])
def test_inside_other_callbacks(base, method, times, blobs):
    interrupted(small(CrossEntropyClassifier, callbacks=[interrupting(base, method, times)()]), blobs)


@pytest.mark.parametrize("times", [1, 2])
def test_inside_a_checkpoint(times, blobs, tmp_path):
    best = interrupting(Checkpoint, "on_epoch_end", times)(monitor="train_loss_best", dirname=str(tmp_path))
    interrupted(small(CrossEntropyClassifier, callbacks=[best]), blobs)


@pytest.mark.parametrize("method", ["on_train_begin", "on_train_end"])
def test_at_the_begin_and_the_end_of_a_stage(method, blobs):
    """In the last training too, though it is complete."""
    note = interrupting(Callback, method)
    note.calls = 1
    interrupted(small(CrossEntropyClassifier, callbacks=[note()]), blobs)


def test_early_stopping_s_own_interrupt_is_none_of_the_user_s(blobs):
    stop = EarlyStopping(monitor="train_loss", patience=1, threshold=10.0, threshold_mode="abs")
    assert len(fit(CrossEntropyClassifier, blobs, callbacks=[stop], max_epochs=9).history_) == 2


def test_while_early_stopping_runs_out_of_patience(blobs):
    """Both at once: the user's counts."""

    class Stop(EarlyStopping):
        def _sink(self, text, verbose):
            press(2)

    stop = Stop(monitor="train_loss", patience=1, threshold=10.0, threshold_mode="abs")
    interrupted(small(CrossEntropyClassifier, callbacks=[stop], verbose=2), blobs)


# ---------------------------------------------------------------------------- at any time
class Clock:
    """Presses Ctrl-C after a time, unless the block has ended by then."""

    def __init__(self, seconds):
        self.timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))

    def __enter__(self):
        self.timer.start()

    def __exit__(self, *error):
        self.timer.cancel()
        self.timer.join()


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_saved_fit_goes_on_to_the_same_bits(cls, blobs, tmp_path):
    """Wherever Ctrl-C came: no epoch is lost, and no stage is taken for complete."""
    X, y, X_meta, y_meta, *_ = blobs
    began = time.perf_counter()
    whole, duration = fit(cls, blobs), time.perf_counter() - began
    for i, seconds in enumerate(np.random.default_rng(0).uniform(0, duration, 4)):
        clf, before, ended = small(cls), outside(), None
        try:
            with Clock(seconds):
                ended = clf.fit(X, y, meta=(X_meta, y_meta), state=tmp_path / str(i))
        except KeyboardInterrupt:
            assert ended or not [name for name in vars(clf) if name.endswith("_")]
        assert outside() == before
        assert_same(whole, small(cls).fit(X, y, meta=(X_meta, y_meta), state=tmp_path / str(i)), X)


@pytest.mark.parametrize("method", ["_take", "_give_back"])
def test_while_what_is_borrowed_is_taken_or_put_back(method, blobs):
    """However often: it comes to its end."""
    original = getattr(GlobalState, method)

    def pressed(self):
        press(3)
        original(self)
        press(3)

    with mock.patch.object(GlobalState, method, pressed):
        interrupted(small(CrossEntropyClassifier), blobs)
    fitted = joblib.Parallel(2, backend="threading")([joblib.delayed(fit)(CrossEntropyClassifier, blobs)] * 2)
    assert_same(*fitted, blobs[0])


@pytest.mark.xdist_group("workers")
def test_while_processes_train(blobs):
    interrupted_by_a_clock(small(EMTransitionClassifier, n_jobs=2, max_epochs=100), blobs)


def test_while_another_thread_trains(blobs):
    """A fit that waits for its turn."""
    began = threading.Event()

    class Began(Callback):
        def on_epoch_begin(self, net, **kwargs):
            began.set()

    other = threading.Thread(
        target=fit, args=(CrossEntropyClassifier, blobs), kwargs={"max_epochs": 100, "callbacks": [Began()]}
    )
    other.start()
    began.wait()
    try:
        interrupted_by_a_clock(small(CrossEntropyClassifier, max_epochs=10_000), blobs)
    finally:
        other.join()


def interrupted_by_a_clock(clf, blobs):
    X, y, X_meta, y_meta, *_ = blobs
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Clock(0.5):
        clf.fit(X, y, meta=(X_meta, y_meta))
    assert signal.getsignal(signal.SIGINT) is handler
    assert not [name for name in vars(clf) if name.endswith("_")]


# ---------------------------------------------------------------------------- where nothing is held back
def test_a_handler_of_the_program_s_own_stays_in_force(blobs):
    pressed = []

    class Press(Callback):
        def on_epoch_end(self, net, **kwargs):
            press()

    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(None))
    try:
        fit(CrossEntropyClassifier, blobs, callbacks=[Press()], max_epochs=4)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(pressed) == 4


def test_after_an_interrupt_all_is_as_before(blobs):
    note = interrupting(Callback, "on_batch_end")
    interrupted(small(MetaTransitionClassifier, callbacks=[note()]), blobs)
    assert_same(fit(MetaTransitionClassifier, blobs), fit(MetaTransitionClassifier, blobs), blobs[0])
    with pytest.raises(KeyboardInterrupt):
        press()
