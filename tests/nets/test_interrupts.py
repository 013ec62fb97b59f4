"""Ctrl-C at any moment of a fit raises KeyboardInterrupt and leaves nothing behind."""

import os
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
import torch
from estimators import small
from skorch.callbacks import Callback, EarlyStopping
from training import assert_same, fit

from noisytransition import CrossEntropyClassifier, MetaTransitionClassifier


@pytest.fixture(autouse=True)
def _ctrl_c_is_python_s():
    """A process that is started in the background ignores Ctrl-C, and so do its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Press(Callback):
    """Presses Ctrl-C at the first call of a method."""

    def __init__(self, method):
        setattr(self, method, lambda net, **kwargs: signal.raise_signal(signal.SIGINT))


def outside():
    """Return the global state that a fit must not change."""
    n_threads, generator = torch.get_num_threads(), torch.get_rng_state().numpy().tobytes()
    return signal.getsignal(signal.SIGINT), torch.is_grad_enabled(), n_threads, generator


@pytest.mark.parametrize("method", [name for name in vars(Callback) if name.startswith("on_")])
def test_inside_callbacks(method, blobs):
    """With EarlyStopping, whose own KeyboardInterrupt ends a stage but not the fit."""
    clf = small(MetaTransitionClassifier, callbacks=[EarlyStopping("train_loss", patience=3), Press(method)])
    before = outside()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*blobs[:2], meta=blobs[2:4])
    assert outside() == before
    assert not [name for name in vars(clf) if name.endswith("_")]


class Clock:
    """Presses Ctrl-C after a time, unless the block has ended by then."""

    def __init__(self, seconds):
        self.timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))

    def __enter__(self):
        self.timer.start()

    def __exit__(self, *error):
        self.timer.cancel()
        self.timer.join()


# one training, and several; test_fit_state.py stops all classifiers
@pytest.mark.parametrize("cls", [CrossEntropyClassifier, MetaTransitionClassifier])
def test_a_saved_fit_goes_on_to_the_same_bits(cls, blobs, tmp_path):
    """Wherever Ctrl-C arrives, no epoch is lost, and no incomplete stage counts as complete."""
    given = {"meta": blobs[2:4], "state": tmp_path / "fit"}
    began = time.perf_counter()
    whole, duration = fit(cls, blobs), time.perf_counter() - began
    moment = np.random.default_rng(len(cls.__name__)).uniform(0, duration)
    with suppress(KeyboardInterrupt), Clock(moment):
        small(cls).fit(*blobs[:2], **given)
    assert_same(whole, small(cls).fit(*blobs[:2], **given), blobs[0])
