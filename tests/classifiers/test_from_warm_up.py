"""Where the net that is trained through T starts: from the weights of the warm-up, or as a new net."""

import warnings

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from skorch.dataset import ValidSplit
from training import StopAfter, assert_same, fit, refused

from noisytransition import FitState, ForwardClassifier, GLCClassifier, MetaTransitionClassifier
from noisytransition.classifiers import TransitionClassifier
from noisytransition.transition import pair_noise

METHODS = [GLCClassifier, ForwardClassifier, MetaTransitionClassifier]
NO_ROWS_HELD_OUT = {ForwardClassifier: {"validation_fraction": 0}, MetaTransitionClassifier: {"validation_fraction": 0}}


class Watch(Callback):
    """Parameters at the beginning and at the end of each stage, and the rows it held out."""

    def __init__(self):
        self.begin, self.end, self.held_out = [], [], []

    def on_train_begin(self, net, **kwargs):
        self.begin.append([p.detach().clone() for p in net.module_.parameters()])
        self.held_out.append(None)

    def on_epoch_end(self, net, dataset_valid=None, **kwargs):
        self.held_out[-1] = None if dataset_valid is None else set(dataset_valid.indices)

    def on_train_end(self, net, **kwargs):
        self.end.append([p.detach().clone() for p in net.module_.parameters()])

    def __copy__(self):  # every stage would have its own
        return self


def equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("cls", METHODS)
@pytest.mark.parametrize(
    "params",
    [{}, {"from_warm_up": True}, {"from_warm_up": True, "transition_init": pair_noise(3, 0.4)}],
    ids=["default", "True", "array"],
)
def test_the_second_net_goes_on_from_the_weights_of_the_warm_up(blobs, cls, params):
    watch = Watch()
    clf = fit(cls, blobs, callbacks=[watch], **params, **NO_ROWS_HELD_OUT.get(cls, {}))
    assert len(clf.histories_) == len(watch.begin) == 2
    assert next(iter(clf.histories_)) == "warm_up"
    assert equal(watch.end[0], watch.begin[1])
    assert not equal(watch.begin[0], watch.begin[1])
    assert not equal(watch.begin[1], watch.end[1])


@pytest.mark.parametrize("cls", METHODS)
@pytest.mark.parametrize("init", ["diagonal", "identity", pair_noise(3, 0.4)], ids=["diagonal", "identity", "array"])
@pytest.mark.filterwarnings("ignore:transition_init='identity'")
def test_a_start_without_a_warm_up_trains_none_by_default(blobs, cls, init):
    clf, published = (fit(cls, blobs, transition_init=init, **p) for p in ({}, {"from_warm_up": False}))
    assert len(clf.histories_) == 1
    assert_same(clf, published, blobs[0])
    assert len(fit(cls, blobs, transition_init=init, from_warm_up=True).histories_) == 2


@pytest.mark.parametrize("cls", METHODS)
def test_every_start_says_whether_it_needs_a_warm_up(blobs, cls):
    """A start that trains a net without saying so would leave `"auto"` with a new net; the other way costs a net."""
    for name, start in cls()._starts().items():
        if name == "count":  # needs pairs of labels
            assert not start.needs_warm_up
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            clf = fit(cls, blobs, transition_init=name, from_warm_up=False, max_epochs=1)
        assert ("warm_up" in clf.histories_) == start.needs_warm_up, name


@pytest.mark.parametrize("cls", METHODS)
def test_T_s_start_is_the_same_with_a_new_net(blobs, cls):
    clf, published = (fit(cls, blobs, **params) for params in ({}, {"from_warm_up": False}))
    np.testing.assert_array_equal(clf.transition_init_, published.transition_init_)
    assert not np.array_equal(clf.predict_proba(blobs[0]), published.predict_proba(blobs[0]))


def test_the_net_of_meta_transition_has_not_seen_the_rows_that_select_T(blobs):
    watch = Watch()
    clf = fit(MetaTransitionClassifier, blobs, callbacks=[watch])
    assert list(clf.histories_) == ["warm_up", "net_warm_up", "meta_transition"]
    none, second, last = watch.held_out
    assert none is None
    assert len(second) == 30
    assert second == last
    assert equal(watch.end[1], watch.begin[2])
    assert not equal(watch.end[0], watch.end[1])


def test_a_split_of_the_user_s_holds_out_in_every_stage_so_that_one_warm_up_is_enough(blobs):
    watch = Watch()
    clf = fit(MetaTransitionClassifier, blobs, callbacks=[watch], train_split=ValidSplit(3))
    assert list(clf.histories_) == ["warm_up", "meta_transition"]
    assert watch.held_out[0] == watch.held_out[1]
    assert equal(watch.end[0], watch.begin[1])


@pytest.mark.parametrize("cls", METHODS)
@pytest.mark.parametrize("n_epochs", [1, 3, 5])
def test_an_interrupted_fit_goes_on(blobs, cls, n_epochs, tmp_path):
    path = tmp_path / "fit.pt"
    X, y, X_meta, y_meta, *_ = blobs
    whole = fit(cls, blobs, max_epochs=4)
    with pytest.raises(KeyboardInterrupt):
        clone(whole, callbacks=[StopAfter(n_epochs)]).fit(X, y, meta=(X_meta, y_meta), state=path)
    assert_same(clone(whole).fit(X, y, meta=(X_meta, y_meta), state=FitState(path)), whole, X)


def clone(clf, **params):
    return type(clf)(**(clf.get_params(deep=False) | params))


@pytest.mark.parametrize("cls", METHODS)
@pytest.mark.parametrize("value", ["yes", 1, None, ["auto"]])
def test_from_warm_up_is_a_flag_or_auto(blobs, cls, value):
    with refused("from_warm_up=.*give True or False, or 'auto'", TypeError):
        fit(cls, blobs, from_warm_up=value)


def test_methods_without_the_choice_start_a_new_net():
    assert TransitionClassifier.from_warm_up is False
