"""Names of callbacks that the library uses: the user gives no other callback under them, and sets none of them."""

import pytest
from estimators import CLASSIFIERS, small
from skorch.callbacks import EpochTimer, PrintLog
from training import fit, refused

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, MetaTransitionClassifier
from noisytransition.classifiers._checks import _OF_FITS
from noisytransition.nets import NoisyLabelNet

OF_SKORCH = ["epoch_timer", "train_loss", "valid_loss", "valid_acc", "print_log"]
OF_NETS = ["valid_noisy_loss", "valid_noisy_acc", "valid_clean_loss", "valid_clean_acc", "scaling", "update", "select"]
OURS = sorted({*OF_NETS, *_OF_FITS})


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("name", ["update", "select"])
def test_the_callbacks_of_a_method_cannot_be_left_out(cls, name, blobs):
    for setting in (f"callbacks__{name}", f"callbacks__{name}__lr"):
        with refused(f"'{setting}': the callback '{name}' is the library's own.*leave it out.*'print_log'"):
            fit(cls, blobs, **{setting: None})


def test_not_even_after_a_warm_up(blobs):
    with refused("'callbacks__update': the callback 'update' is the library's own"):
        fit(MetaTransitionClassifier, blobs, transition_init="gold", callbacks__update=None)


@pytest.mark.parametrize("name", OURS)
def test_names_of_the_library_are_taken(name, blobs):
    with refused(f"callbacks has one named '{name}', a name that the library itself uses: give another name"):
        fit(CrossEntropyClassifier, blobs, callbacks=[("mine", EpochTimer()), (name, EpochTimer())])
    with refused("is the library's own"):
        fit(CrossEntropyClassifier, blobs, **{f"callbacks__{name}": None})


@pytest.mark.parametrize("name", OF_SKORCH)
def test_those_of_skorch_are_set_by_their_name(name, blobs):
    with refused(f"callbacks has one named '{name}', .*: set that of skorch by callbacks__{name}=..."):
        fit(CrossEntropyClassifier, blobs, callbacks=[(name, PrintLog)])
    fit(EMTransitionClassifier, blobs, **{f"callbacks__{name}": None})


def test_all_names_that_a_fit_adds_are_known(blobs, tmp_path, monkeypatch):
    names, initialize = set(), NoisyLabelNet.initialize

    def watched(net):
        initialize(net)
        names.update(name for name, _ in net.callbacks_)
        return net

    monkeypatch.setattr(NoisyLabelNet, "initialize", watched)
    X, y, X_meta, y_meta, *_ = blobs
    for cls in (CrossEntropyClassifier, EMTransitionClassifier, MetaTransitionClassifier):
        small(cls).fit(X, y, meta=(X_meta, y_meta), state=tmp_path / cls.__name__)
    assert names <= {*OURS, *OF_SKORCH}
    assert {"update", "select", "save_state", "held_out_posteriors", "valid_clean_loss"} <= names
