"""Save and load: the same predictions and attributes, a file that runs no code, clear errors."""

import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from estimators import CLASSIFIERS, WITH_TRANSITION, small
from safetensors import safe_open
from safetensors.torch import save_file
from sklearn.base import clone
from torch import nn
from training import fit, with_a_flipped_bit

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, GLCClassifier, MWNetClassifier, load
from noisytransition.classifiers import METHODS, _saving
from noisytransition.transition import pair_noise

every = pytest.mark.parametrize("cls", CLASSIFIERS)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "clf.safetensors"


def loaded(clf, path, *args, **params):
    clf.save(path)
    own = {} if type(clf) in METHODS.values() else {"cls": type(clf)}
    return load(path, *args, **own, **params)


def fitted(clf):
    return {k: v for k, v in vars(clf).items() if k.endswith("_") and k not in ("net_", "histories_")}


@every
def test_a_loaded_classifier_is_the_same(cls, blobs, path):
    clf = fit(cls, blobs, module__hidden=12, lr=0.05)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    again = loaded(clf, path)
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(again.predict_proba(blobs[4]), clf.predict_proba(blobs[4]))
    np.testing.assert_array_equal(again.predict(blobs[4]), clf.predict(blobs[4]))
    assert fitted(again).keys() == fitted(clf).keys()
    for name, value in fitted(clf).items():
        assert type(getattr(again, name)) is type(value)
        assert repr(getattr(again, name)) == repr(value)
    assert again.histories_ == clf.histories_
    assert again.history_[:, "train_loss"] == clf.history_[:, "train_loss"]
    assert again.get_params() == clf.get_params()
    np.testing.assert_array_equal(
        clone(again).fit(*blobs[:2], meta=blobs[2:4]).predict_proba(blobs[4]), clf.predict_proba(blobs[4])
    )


def test_a_frame_of_T_is_saved_as_an_array_in_the_order_of_the_classes(blobs, path):
    X, y, X_meta, y_meta, *_ = blobs
    names, T = np.array(["cat", "ant", "bee"]), pair_noise(3, 0.3)
    frame = pd.DataFrame(T, index=names, columns=names)
    clf = small(GLCClassifier, transition_init=frame).fit(X, names[y], meta=(X_meta, names[y_meta]))
    again = loaded(clf, path)
    np.testing.assert_array_equal(again.transition_init, T[np.ix_([1, 2, 0], [1, 2, 0])])
    np.testing.assert_allclose(again.transition_init, clf.transition_init_, atol=1e-3)  # with a floor


@pytest.mark.parametrize("series", [True, False])
def test_a_prior_of_pandas_is_saved_as_it_was_used(series, blobs, path):
    X, y, X_meta, y_meta, *_ = blobs
    names, M = np.array(["cat", "ant", "bee"]), np.array([[0.7, 0.3, 0], [0.1, 0.8, 0.1], [0.5, 0.2, 0.3]])
    prior = pd.Series([0, 0, 1]) if series else pd.DataFrame(M, index=names, columns=names)
    data = {"X": X, "y": names[y], "meta": (X_meta, names[y_meta])}
    clf = small(EMTransitionClassifier, transition_prior=prior, prior_strength=50.0, max_epochs=2).fit(**data)
    again = loaded(clf, path)
    order = [1, 2, 0]
    np.testing.assert_array_equal(again.transition_prior, [0, 0, 1] if series else M[np.ix_(order, order)])
    np.testing.assert_array_equal(clone(again).fit(**data).transition_matrix_, clf.transition_matrix_)


@pytest.mark.parametrize("cls", [cls for cls in WITH_TRANSITION if cls in METHODS.values()])
def test_a_loaded_T_finds_label_issues(cls, blobs, path):
    clf = fit(cls, blobs)
    again = loaded(clf, path)
    np.testing.assert_array_equal(again.label_quality(*blobs[:2]), clf.label_quality(*blobs[:2]))
    np.testing.assert_array_equal(again.predict_noisy_proba(blobs[4]), clf.predict_noisy_proba(blobs[4]))
    if cls is EMTransitionClassifier:
        assert again.transition_summary() == clf.transition_summary()


def test_a_loaded_loss_weighs_rows(blobs, path):
    clf = fit(MWNetClassifier, blobs)
    np.testing.assert_array_equal(loaded(clf, path).sample_weights(*blobs[:2]), clf.sample_weights(*blobs[:2]))


@pytest.mark.parametrize(
    "names",
    [
        np.array(["ant", "bee", "cat"]),
        np.array(["ant", "bee", "cat"], dtype=object),
        np.array([-7, 10, 300]),
        np.array([1.0, 2.0, 3.0], dtype=np.float32),
        np.array([0, 1, 2], dtype=np.uint8),
    ],
    ids=lambda names: str(names.dtype),
)
def test_classes_of_any_kind(blobs, path, names):
    X, y, *_, X_test, _, _ = blobs
    clf = small(CrossEntropyClassifier).fit(X, names[y])
    again = loaded(clf, path)
    assert again.classes_.dtype == clf.classes_.dtype
    np.testing.assert_array_equal(again.predict(X_test), clf.predict(X_test))


def test_bool_classes(blobs, path):
    clf = small(CrossEntropyClassifier).fit(blobs[0], blobs[1] > 0)
    assert loaded(clf, path).predict(blobs[0]).dtype == bool


class Net(nn.Module):
    def __init__(self, width=5):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 3))
        self.mean, self.counts = torch.zeros(3), np.zeros(3)
        self.register_buffer("hidden", torch.zeros(3), persistent=False)

    def forward(self, x):
        z = self.layers(x)
        if self.training:  # what a state_dict leaves out
            self.mean = 0.9 * self.mean + 0.1 * z.detach().mean(0)
            self.hidden.mul_(0.9).add_(self.mean)
            self.counts = self.counts + z.detach().mean(0).numpy()
        return z + self.mean + self.hidden + torch.from_numpy(self.counts).float()


def test_a_module_of_the_user_s_is_given_again(blobs, path):
    for params, given in (({"module": Net, "module__width": 6}, Net), ({"module": Net(6)}, Net(6))):
        clf = fit(CrossEntropyClassifier, blobs, **params)
        before = repr(given.state_dict()) if isinstance(given, nn.Module) else ""
        again = loaded(clf, path, given)
        np.testing.assert_array_equal(again.predict_proba(blobs[4]), clf.predict_proba(blobs[4]))
        assert before == "" or before == repr(given.state_dict())
    for other, message in ((Net(7), r"float32 \(7,\), and float32 \(6,\)"), (nn.Linear(4, 3), "nothing")):
        with pytest.raises(ValueError, match=f"has other weights than the saved one.*{message}"):
            load(path, other)
    with pytest.raises(ValueError, match=r"weights of .*Net, and not its code.*load\(path, module=\.\.\.\)"):
        load(path)
    with pytest.raises(ValueError, match="float64"):
        load(path, Net(6).double())


def test_a_module_without_sizes_is_refused_with_what_to_give(blobs, path):
    fit(CrossEntropyClassifier, blobs, module=nn.Linear(4, 3)).save(path)
    with pytest.raises(ValueError, match=r"LazyLinear has weights without a size .*give layers their sizes"):
        load(path, nn.LazyLinear(3))


class Counting(nn.Module):
    """The scale of its logits is a number that training changes."""

    def __init__(self):
        super().__init__()
        self.linear, self.scale = nn.Linear(4, 3), 1.0

    def forward(self, x):
        self.scale += 0.1 * self.training
        return self.linear(x) * self.scale


def test_numbers_that_training_changes_are_loaded(blobs, path):
    clf = fit(CrossEntropyClassifier, blobs, module=Counting)
    assert clf.net_.module_.scale > 1
    np.testing.assert_array_equal(loaded(clf, path, Counting).predict_proba(blobs[4]), clf.predict_proba(blobs[4]))


class Activated(nn.Sequential):
    def __init__(self, act=nn.ReLU):
        super().__init__(nn.Linear(4, 5), act(), nn.Linear(5, 3))


CHANGES = [
    {"precision": "bf16"},
    {"dtype": "float64"},
    {"module__hidden": (8,)},
    {"module__hidden": 5, "batch_size": 7},
    {"module": "linear"},
    {"module": Net(6)},
    {"module": Net, "module__width": 6},
    {"iterator_valid": torch.utils.data.DataLoader, "compile": True},
]


@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: "+".join(changes))
def test_parameters_of_the_network_that_are_set_after_fit_are_not_saved(blobs, path, changes):
    clf = fit(CrossEntropyClassifier, blobs, module__hidden=12)
    before, params = clf.predict_proba(blobs[4]), clf.get_params()
    again = loaded(clf.set_params(**changes, max_epochs=9), path)
    np.testing.assert_array_equal(clf.predict_proba(blobs[4]), before)
    np.testing.assert_array_equal(again.predict_proba(blobs[4]), before)
    assert again.get_params() == params | {"max_epochs": 9}
    np.testing.assert_array_equal(loaded(again.set_params(**changes), path).predict_proba(blobs[4]), before)


@pytest.mark.parametrize("changes", [{"module": "mlp"}, {"module": None}, {"module__width": 7}], ids=str)
def test_a_module_of_the_user_s_that_is_replaced_after_fit_is_given_again(blobs, path, changes):
    clf = fit(CrossEntropyClassifier, blobs, module=Net, module__width=6)
    before = clf.predict_proba(blobs[4])
    np.testing.assert_array_equal(loaded(clf.set_params(**changes), path, Net).predict_proba(blobs[4]), before)
    with pytest.raises(ValueError, match=r"weights of .*Net, and not its code"):
        load(path)


def test_the_device_may_be_set_for_another_machine(blobs, path):
    clf = fit(CrossEntropyClassifier, blobs)
    assert loaded(clf.set_params(device="cpu"), path).device == "cpu"
    clf.set_params(device="cuda:99").save(path)
    with pytest.raises(ValueError, match="device='cuda:99' cannot be used"):
        load(path)
    np.testing.assert_array_equal(load(path, device="cpu").predict(blobs[4]), clf.predict(blobs[4]))


def test_a_classifier_that_an_earlier_version_pickled_is_saved(blobs, path):
    clf = fit(CrossEntropyClassifier, blobs, module__hidden=12)
    del clf._params_of_fit
    np.testing.assert_array_equal(loaded(clf, path).predict_proba(blobs[4]), clf.predict_proba(blobs[4]))


def test_a_parameter_of_the_module_that_is_not_saved_is_given_again(blobs, path):
    clf = fit(CrossEntropyClassifier, blobs, module=Activated, module__act=nn.Tanh)
    clf.save(path)
    with pytest.raises(ValueError, match=r"had \['module__act'\].*load\(path, module__act=\.\.\.\)"):
        load(path, Activated)
    for again in (load(path, Activated, module__act=nn.Tanh), load(path, Activated(nn.Tanh))):
        np.testing.assert_array_equal(again.predict_proba(blobs[4]), clf.predict_proba(blobs[4]))


def test_what_is_not_plain_data_is_given_again(blobs, path):
    params = {"optimizer": torch.optim.Adam, "optimizer__betas": (0.8, 0.9)}
    clf = small(CrossEntropyClassifier, **params).fit(*blobs[:2])
    again = loaded(clf, path, max_epochs=7)
    assert again.optimizer is torch.optim.SGD
    assert again.max_epochs == 7
    assert load(path, optimizer=torch.optim.Adam).get_params() == clf.get_params()
    np.testing.assert_array_equal(again.predict_proba(blobs[4]), clf.predict_proba(blobs[4]))


class Own(CrossEntropyClassifier):
    pass


class OwnThing(CrossEntropyClassifier):
    def _fit(self, run):
        super()._fit(run)
        self.thing_ = object()


def test_classes_of_the_user_s(blobs, path):
    fit(Own, blobs).save(path)
    with pytest.raises(ValueError, match=r"is a .*Own, which is not one of the library's.*cls="):
        load(path)
    with pytest.raises(ValueError, match=r"Own, not a .*CrossEntropyClassifier"):
        load(path, cls=CrossEntropyClassifier)
    assert type(load(path, cls=Own)) is Own
    with pytest.raises(ValueError, match=r"OwnThing\.thing_ cannot be saved: object is not plain data"):
        fit(OwnThing, blobs).save(path)


def test_other_files_are_refused_and_not_overwritten(blobs, path, tmp_path):
    clf = fit(CrossEntropyClassifier, blobs)
    save_file({"a": torch.zeros(2)}, tmp_path / "tensors")
    (tmp_path / "text").write_text("a,b\n")
    torch.save({"a": torch.zeros(2)}, tmp_path / "pickle")
    for name in ("tensors", "text", "pickle"):
        before = (tmp_path / name).read_bytes()
        for call in (load, clf.save):
            with pytest.raises(ValueError, match="is not a saved classifier"):
                call(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    with pytest.raises(FileNotFoundError):
        load(path)
    with pytest.raises(ValueError, match="does not exist; make it"):
        clf.save(tmp_path / "nowhere" / "clf")
    clf.save(path)
    clf.save(path)
    path.write_bytes(path.read_bytes().replace(b'"version": "2"', b'"version": "3"', 1))
    with pytest.raises(ValueError, match="has version 3 of the format"):
        load(path)


def test_no_flipped_bit_goes_unnoticed(blobs, path):
    clf = fit(EMTransitionClassifier, blobs)
    clf.save(path)
    whole = path.read_bytes()
    for changed in with_a_flipped_bit(whole, 150):
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"damaged|version"):
            load(path)


def test_the_file_is_safetensors_and_json_alone(blobs, path):
    fit(CrossEntropyClassifier, blobs).save(path)
    with safe_open(path, "np") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert {tensor.dtype.kind for tensor in tensors.values()} <= set("biuf")
    assert (metadata["format"], metadata["kind"]) == ("noisytransition", "classifier")
    content = json.loads(tensors["content"].tobytes())
    assert content["class"] == "noisytransition.classifiers._cross_entropy.CrossEntropyClassifier"


class Exploit:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "owned")


def test_a_pickle_in_place_of_the_file_runs_no_code(path, tmp_path):
    path.write_bytes(pickle.dumps(Exploit(tmp_path / "owned")))
    pickle.loads(path.read_bytes())  # the exploit works
    (tmp_path / "owned").unlink()
    with pytest.raises(ValueError, match="is not a saved classifier"):
        load(path)
    assert not (tmp_path / "owned").exists()


def test_no_attribute_of_python_s_own_comes_from_a_file(blobs, path, monkeypatch):
    clf, original = fit(CrossEntropyClassifier, blobs), _saving._fitted
    more = {"__dict__": {}, "__class__": "x"}
    monkeypatch.setattr(_saving, "_fitted", lambda clf: original(clf) | more)
    monkeypatch.setattr(_saving, "unlisted", lambda name, module: {"": {"__dict__": {}}})
    np.testing.assert_array_equal(loaded(clf, path).predict(blobs[0]), clf.predict(blobs[0]))


def test_a_classifier_that_is_not_fitted_is_refused(path):
    with pytest.raises(ValueError, match="not fitted"), warnings.catch_warnings():
        CrossEntropyClassifier().save(path)
    assert not path.exists()
