"""Saved classifiers predict the same; unsaved objects are passed to `load`; other files are refused."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from estimators import CLASSIFIERS, small
from safetensors.torch import save_file
from sklearn.base import clone
from torch import nn
from training import fit

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, GLCClassifier, MWNetClassifier, load
from noisytransition.methods import METHODS
from noisytransition.persistence import read, write
from noisytransition.transition import pair_noise


@pytest.fixture
def path(tmp_path):
    return tmp_path / "clf.safetensors"


def loaded(clf, path, *args, **params):
    clf.save(path)
    own = {} if type(clf) in METHODS.values() else {"cls": type(clf)}
    return load(path, *args, **own, **params)


def assert_predicts_alike(clf, again, X):
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


def fitted(clf):
    """Fitted attributes, of the noise model too."""
    left_out = ("net_", "histories_", "noise_model_")
    own = {k: v for k, v in vars(clf).items() if k.endswith("_") and k not in left_out}
    return own | ({"of the model": vars(clf.noise_model_)} if hasattr(clf, "noise_model_") else {})


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_loaded_classifier_is_the_same(cls, blobs, path):
    X, y, X_clean, y_clean, X_test, *_ = blobs
    clf = fit(cls, blobs, module__hidden=12, lr=0.05)
    before = torch.get_rng_state()
    again = loaded(clf, path)
    assert torch.equal(torch.get_rng_state(), before)
    assert_predicts_alike(clf, again, X_test)
    np.testing.assert_array_equal(again.predict(X_test), clf.predict(X_test))
    assert fitted(again).keys() == fitted(clf).keys()
    for name, value in fitted(clf).items():
        assert type(fitted(again)[name]) is type(value)
        assert repr(fitted(again)[name]) == repr(value)
    assert again.histories_ == clf.histories_
    assert again.history_[:, "train_loss"] == clf.history_[:, "train_loss"]
    assert again.get_params() == clf.get_params()
    if hasattr(clf, "noise_model_"):
        np.testing.assert_array_equal(again.label_quality(X, y), clf.label_quality(X, y))
        np.testing.assert_array_equal(again.predict_noisy_proba(X_test), clf.predict_noisy_proba(X_test))
    if cls is EMTransitionClassifier:
        assert again.transition_summary() == clf.transition_summary()
    if cls is MWNetClassifier:  # the loss weights rows
        np.testing.assert_array_equal(again.sample_weights(X, y), clf.sample_weights(X, y))
    if cls is GLCClassifier:
        assert_predicts_alike(clf, clone(again).fit(X, y, meta=(X_clean, y_clean)), X_test)


# ---------------------------------------------------------------------------- what is given again
class Net(nn.Module):
    def __init__(self, width=5, act=nn.ReLU):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, width), nn.BatchNorm1d(width), act(), nn.Linear(width, 3))

    def forward(self, x):
        return self.layers(x)


def test_a_module_of_the_user_s_is_given_again(blobs, path):
    for params, given in (({"module": Net, "module__width": 6}, Net), ({"module": Net(6)}, Net(6))):
        clf = fit(CrossEntropyClassifier, blobs, **params)
        assert_predicts_alike(clf, loaded(clf, path, given), blobs[4])
    for other in (Net(7), nn.Linear(4, 3)):
        with pytest.raises(RuntimeError, match="loading state_dict"):
            load(path, other)
    with pytest.raises(ValueError, match="module="):
        load(path)
    clf = fit(CrossEntropyClassifier, blobs, module=Net, module__act=nn.Tanh)
    clf.save(path)
    with pytest.raises(ValueError, match="module__act"):
        load(path, Net)
    for again in (load(path, Net, module__act=nn.Tanh), load(path, Net(act=nn.Tanh))):
        assert_predicts_alike(clf, again, blobs[4])


def test_what_is_not_plain_data_is_given_again(blobs, path):
    clf = small(CrossEntropyClassifier, optimizer=torch.optim.Adam, optimizer__betas=(0.8, 0.9)).fit(*blobs[:2])
    again = loaded(clf, path, max_epochs=7)
    assert (again.optimizer, again.max_epochs) == (CrossEntropyClassifier().optimizer, 7)
    assert load(path, optimizer=torch.optim.Adam).get_params() == clf.get_params()
    assert_predicts_alike(clf, again, blobs[4])
    prior = pd.DataFrame(pair_noise(3, 0.2))
    clf = fit(EMTransitionClassifier, blobs, prior=prior, cv=2, verified_sampling="stratified")
    again = loaded(clf, path, prior=prior)
    assert_predicts_alike(clf, again, blobs[4])
    assert again.noise_model_.verified_sampling == "stratified"
    np.testing.assert_array_equal(again.noise_model_.prior, clf.noise_model_.prior)


class Own(CrossEntropyClassifier):
    def _fit(self, run):
        super()._fit(run)
        self.thing_ = (1, "two")


def test_classes_of_the_user_s(blobs, path):
    with pytest.raises(ValueError, match="not fitted"):
        Own().save(path)
    clf = fit(Own, blobs)
    clf.save(path)
    for given in ({}, {"cls": CrossEntropyClassifier}):
        with pytest.raises(ValueError, match="cls="):
            load(path, **given)
    assert type(load(path, cls=Own)) is Own
    clf.thing_ = object()
    with pytest.raises(ValueError, match="thing_"):
        clf.save(path)


# ---------------------------------------------------------------------------- files
class Exploit:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "owned")


def test_other_files_are_refused_and_run_no_code_and_are_not_overwritten(plain, path, tmp_path):
    clf = plain(CrossEntropyClassifier)
    save_file({"a": torch.zeros(2)}, tmp_path / "tensors")
    (tmp_path / "text").write_text("a,b\n")
    (tmp_path / "pickle").write_bytes(pickle.dumps(Exploit(tmp_path / "owned")))
    for name in ("tensors", "text", "pickle"):
        before = (tmp_path / name).read_bytes()
        for call in (load, clf.save):
            with pytest.raises(ValueError, match="is not a saved classifier"):
                call(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    assert not (tmp_path / "owned").exists()
    pickle.loads(before)
    assert (tmp_path / "owned").exists(), "the exploit works"
    for call in (load, clf.save):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            call(tmp_path / "nowhere" / "clf")
    clf.save(path)
    clf.save(path)


def test_no_attribute_of_python_s_own_comes_from_a_file(blobs, plain, path):
    clf = plain(CrossEntropyClassifier)
    clf.save(path)
    content = read(path, "classifier")
    interface = {"shape": (1,), "typestr": "<f8", "data": (0, True)}  # an address, which numpy would read
    content["fitted"] |= {"__dict__": {}, "__class__": "x", "predict": 1, "__array_interface__": interface}
    write(path, "classifier", content)
    assert not hasattr(load(path), "__array_interface__")
    np.testing.assert_array_equal(load(path).predict(blobs[0]), clf.predict(blobs[0]))
