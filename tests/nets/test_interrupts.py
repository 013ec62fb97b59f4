"""Ctrl-C in any callback raises KeyboardInterrupt and leaves nothing behind; tests/attacks kills fits at any moment."""

import signal

import pytest
import torch
from estimators import small
from skorch.callbacks import Callback, EarlyStopping
from training import On

from noisytransition import MetaTransitionClassifier


@pytest.fixture(autouse=True)
def _ctrl_c_is_python_s():
    """A process that is started in the background ignores Ctrl-C, and so do its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def outside():
    """Return the global state that a fit must not change."""
    n_threads, generator = torch.get_num_threads(), torch.get_rng_state().numpy().tobytes()
    return signal.getsignal(signal.SIGINT), torch.is_grad_enabled(), n_threads, generator


@pytest.mark.parametrize("event", [name[3:] for name in vars(Callback) if name.startswith("on_")])
def test_inside_callbacks(event, blobs):
    """With EarlyStopping, whose own KeyboardInterrupt ends a stage but not the fit."""
    press = On(**{event: lambda net, **kwargs: signal.raise_signal(signal.SIGINT)})
    clf = small(MetaTransitionClassifier, callbacks=[EarlyStopping("train_loss", patience=3), press])
    before = outside()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*blobs[:2], meta=blobs[2:4])
    assert outside() == before
    assert not [name for name in vars(clf) if name.endswith("_")]
