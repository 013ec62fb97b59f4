"""Optimisers and the default network by name."""

import numpy as np
import pytest
import torch
from estimators import CLASSIFIERS
from sklearn.base import clone
from torch import nn
from training import assert_same, fit

from noisytransition import (
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


@every
def test_networks_by_name(cls, blobs):
    assert_same(fit(cls, blobs, module="mlp"), fit(cls, blobs), blobs[0])
    linear = fit(cls, blobs, module="linear")
    assert [type(layer) for layer in linear.module_] == [nn.Flatten, nn.Linear]
    assert_same(linear, fit(cls, blobs, module="mlp", module__hidden=()), blobs[0])


@pytest.mark.parametrize("module", ["linear", "mlp"])
def test_names_are_saved(module, blobs, tmp_path):
    clf = fit(EMTransitionClassifier, blobs, module=module, optimizer="adam", lr=0.01)
    clf.save(tmp_path / "clf")
    again = load(tmp_path / "clf")
    assert (again.module, again.optimizer) == (module, "adam")
    np.testing.assert_array_equal(again.predict_proba(blobs[0]), clf.predict_proba(blobs[0]))
    X, y, X_meta, y_meta, *_ = blobs
    assert_same(clone(again).fit(X, y, meta=(X_meta, y_meta)), clf, X)
