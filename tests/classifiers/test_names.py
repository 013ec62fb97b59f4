"""Optimisers and the default network by name."""

import numpy as np
import pytest
import torch
from estimators import CLASSIFIERS, small
from sklearn.base import clone
from torch import nn
from training import assert_same, fit, fit_noisy, refused

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    MetaTransitionClassifier,
    TRevisionClassifier,
    load,
)

every = pytest.mark.parametrize("cls", CLASSIFIERS)


@every
def test_an_optimizer_by_name_is_the_class(cls, blobs):
    by_name, by_class = (fit(cls, blobs, optimizer=given, lr=0.01) for given in ("AdamW", torch.optim.AdamW))
    assert type(by_name.net_.optimizer_) is (torch.optim.Adam if cls is TRevisionClassifier else torch.optim.AdamW)
    assert_same(by_name, by_class, blobs[0])
    assert clone(by_name).optimizer == "AdamW"


def test_so_is_the_optimizer_of_T(blobs):
    by_name, by_class = (
        fit(MetaTransitionClassifier, blobs, transition_optimizer=given) for given in ("rmsprop", torch.optim.RMSprop)
    )
    assert_same(by_name, by_class, blobs[0])
    with refused("transition_optimizer='sdg'.*Did you mean 'sgd'?"):
        fit(MetaTransitionClassifier, blobs, transition_optimizer="sdg")


@every
def test_networks_by_name(cls, blobs):
    assert_same(fit(cls, blobs, module="mlp"), fit(cls, blobs), blobs[0])
    linear = fit(cls, blobs, module="linear")
    assert [type(layer) for layer in linear.module_] == [nn.Flatten, nn.Linear]
    assert_same(linear, fit(cls, blobs, module="mlp", module__hidden=()), blobs[0])


def test_a_name_of_no_network_is_refused(blobs):
    with refused(
        "module='lineer'; give an nn.Module class or instance that returns logits, 'mlp' .or None. or 'linear'"
    ):
        fit_noisy(CrossEntropyClassifier, blobs, module="lineer")
    with refused("module='linear' has no hidden layer, but module__hidden was given; give module='mlp'"):
        fit_noisy(CrossEntropyClassifier, blobs, module="linear", module__hidden=8)


@pytest.mark.parametrize("module", ["linear", "mlp", None])
def test_names_are_saved(module, blobs, tmp_path):
    clf = fit(EMTransitionClassifier, blobs, module=module, optimizer="adam", lr=0.01)
    clf.save(tmp_path / "clf")
    again = load(tmp_path / "clf")
    assert (again.module, again.optimizer) == (module, "adam")
    np.testing.assert_array_equal(again.predict_proba(blobs[0]), clf.predict_proba(blobs[0]))
    X, y, X_meta, y_meta, *_ = blobs
    assert_same(clone(again).fit(X, y, meta=(X_meta, y_meta)), clf, X)


@pytest.mark.parametrize("module", ["linear", "mlp"])
def test_large_values_are_warned_of_as_with_the_default(module, blobs):
    with pytest.warns(UserWarning, match="values of X are large"):
        small(CrossEntropyClassifier, module=module, lr=1e-6).fit(1e3 * blobs[0], blobs[1])
