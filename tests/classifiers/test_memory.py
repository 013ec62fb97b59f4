"""Trainings that are kept: shared where they are the same, to the bit; missed after any change."""

import copy
import pickle
import sys
from unittest import mock

import joblib
import numpy as np
import pytest
import torch
from estimators import CLASSIFIERS, small
from page_methods import CoTeachingClassifier
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from skorch.callbacks import Callback, EarlyStopping, EpochScoring, LRScheduler
from skorch.dataset import ValidSplit
from torch import nn
from torch.utils.data import Dataset, Subset, TensorDataset
from training import StopAfter, assert_same, fit, no_training, refused

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
    compare,
    load,
)
from noisytransition.classifiers import _memory
from noisytransition.comparison import ComparisonData
from noisytransition.nets import NoisyLabelNet

every = pytest.mark.parametrize("cls", CLASSIFIERS)


@pytest.fixture
def trained():
    """Names of the stages that are trained, in order."""
    from noisytransition.classifiers._run import Run

    names, train = [], Run._train

    def noted(self, nets, *args):
        names.extend(nets)
        return train(self, nets, *args)

    with mock.patch.object(Run, "_train", noted):
        yield names


# ---------------------------------------------------------------------------- the same bits
class Generators(Callback):
    """Notes the generator at the start of each stage's training and after it."""

    fit_name = "generators"
    seen = ()

    def initialize(self):
        Generators.seen = (*Generators.seen, torch.get_rng_state())
        return self


@every
def test_a_fit_is_the_same_without_with_and_from_memory(cls, blobs, tmp_path, trained):
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
    params = {"module": module, "optimizer": torch.optim.Adam, "lr": 0.01}
    if "select_classifier" in cls._get_param_names():
        params["select_classifier"] = True
    generators, fits = [], []
    for memory in (None, tmp_path, tmp_path):
        Generators.seen = ()
        fits.append(fit(cls, blobs, memory=memory, callbacks=[Generators()], **params))
        generators.append(Generators.seen)
        trained.append("end")
    plain, _, again = fits
    assert trained[-2:] == ["end", "end"]  # the third trains nothing
    for clf, seen in zip(fits[1:], generators[1:], strict=True):
        assert_same(clf, plain, blobs[0])
        assert all(torch.equal(a, b) for a, b in zip(seen, generators[0], strict=True))
        for stage, history in plain.histories_.items():
            assert clf.histories_[stage][:, "train_loss"] == history[:, "train_loss"]
    pickle.loads(pickle.dumps(again))


def test_generators_after_a_stage(blobs, tmp_path):
    from noisytransition.classifiers._run import Run

    after, train = [], Run._fit

    def noted(self, *args):
        nets = train(self, *args)
        after.append(torch.get_rng_state())
        return nets

    with mock.patch.object(Run, "_fit", noted):
        for memory in (None, tmp_path, tmp_path):
            fit(EMTransitionClassifier, blobs, memory=memory, select_classifier=True)
    n = len(after) // 3
    assert all(
        torch.equal(a, b) and torch.equal(a, c) for a, b, c in zip(after[:n], after[n:-n], after[-n:], strict=True)
    )


# ---------------------------------------------------------------------------- what is shared
def test_a_search_pays_the_warm_up_once(blobs, tmp_path, trained):
    X, y, X_meta, y_meta, *_ = blobs
    search = GridSearchCV(
        small(MetaTransitionClassifier, memory=tmp_path), {"transition_lr": [0.1, 1.0, 10.0]}, cv=2, refit=False
    )
    search.fit(X, y, meta=(X_meta, y_meta))
    assert trained.count("warm_up") == 2  # one for each fold of the search
    assert trained.count("meta_transition") == 6


def test_meta_transition_from_em_and_em_share_the_folds(blobs, tmp_path, trained):
    same = {"memory": tmp_path, "cv": 3}
    fit(EMTransitionClassifier, blobs, select_epochs=True, **same)
    assert trained == ["warm_up", "fold_0", "fold_1", "fold_2", "em"]
    same.pop("cv")
    clf = fit(MetaTransitionClassifier, blobs, transition_init="em", **same)
    assert trained[5:] == [*(f"start_fold_{k}_fine_tuned" for k in range(3)), "net_warm_up", "meta_transition"]
    assert_same(clf, fit(MetaTransitionClassifier, blobs, transition_init="em"), blobs[0])


@pytest.mark.xdist_group("workers")
def test_folds_in_other_processes_share_too(blobs, tmp_path, trained):
    """Arrays over a megabyte are memory-mapped there."""
    X, y, X_meta, y_meta, *_ = blobs
    wide = np.tile(X, (1, 150)), np.tile(X_meta, (1, 150))
    given = {"memory": tmp_path, "lr": 1e-3, "module": "linear"}
    for n_jobs in (2, 1):
        clf = small(EMTransitionClassifier, n_jobs=n_jobs, **given).fit(wide[0], y, meta=(wide[1], y_meta))
    assert trained == ["warm_up", "em"]
    plain = small(EMTransitionClassifier, **given | {"memory": None}).fit(wide[0], y, meta=(wide[1], y_meta))
    assert_same(clf, plain, wide[0])


def test_compare_shares(blobs, tmp_path, trained):
    X, y, X_meta, y_meta, X_test, y_test, T = blobs
    data = ComparisonData(X, y, X_meta, y_meta, X_test, y_test, T)
    methods = [small(GLCClassifier), small(MetaTransitionClassifier, validation_fraction=0)]
    kept = compare(data, methods, seeds=[0], verbose=0, memory=tmp_path)
    assert trained.count("warm_up") == 1
    plain = compare(data, methods, seeds=[0], verbose=0)
    assert [r.get("accuracy") for r in kept.rows] == [r.get("accuracy") for r in plain.rows]


def test_an_interrupted_fit_keeps_what_was_complete(blobs, tmp_path, trained):
    stop = StopAfter(3)
    stop.fit_name = "stop"
    with pytest.raises(KeyboardInterrupt):
        fit(FineTuningClassifier, blobs, memory=tmp_path, callbacks=[stop])
    named = Callback()
    named.fit_name = "stop"
    fit(FineTuningClassifier, blobs, memory=tmp_path, callbacks=[("StopAfter", named)])
    assert trained == ["cross_entropy", "fine_tuning", "fine_tuning"]


def test_a_saved_state_and_the_memory_together(blobs, tmp_path, trained):
    X, y = blobs[:2]
    given = {"memory": tmp_path / "memory", "max_epochs": 4}
    stop = StopAfter(2)
    stop.fit_name = "stop"
    with pytest.raises(KeyboardInterrupt):
        small(CrossEntropyClassifier, **given, callbacks=[stop]).fit(X, y, state=tmp_path / "fit")
    resumed = small(CrossEntropyClassifier, **given).fit(X, y, state=tmp_path / "fit")
    assert trained == ["cross_entropy"] * 2
    other = small(CrossEntropyClassifier, **given).fit(X, y, state=tmp_path / "another")  # was not whole in memory
    assert trained == ["cross_entropy"] * 3
    again = small(CrossEntropyClassifier, **given).fit(X, y, state=tmp_path / "third")
    assert trained == ["cross_entropy"] * 3
    for clf in (resumed, other, again):
        assert_same(clf, small(CrossEntropyClassifier, max_epochs=4).fit(X, y), X)


# ---------------------------------------------------------------------------- what misses
class Net(nn.Module):
    scale = 1.0

    def __init__(self, hidden=8):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Linear(hidden, 3))

    def forward(self, x):
        return self.layers(self.scale * x)


def shifted(x):
    return x + 0.1


def weights(seed):
    torch.manual_seed(seed)
    return Net()


PLAIN = {"module": Net}
CHANGES = {
    "seed": {"random_state": 1},
    "epochs": {"max_epochs": 4},
    "step size": {"lr": 0.05},
    "batch size": {"batch_size": 32},
    "optimiser": {"optimizer": "adam"},
    "optimiser setting": {"optimizer__momentum": 0.8},
    "parameter of the module": {"module__hidden": 9},
    "another module": {"module": "mlp"},
    "type of inputs": {"dtype": torch.float32},
    "augmentation": {"batch_transform": shifted},
    "validation set": {"train_split": ValidSplit(4)},
    "schedule": {"callbacks": [LRScheduler("StepLR", step_size=1)]},
    "losses of batches": {"batch_history": True},
    "order of rows": {"iterator_train__shuffle": False},
}


def trains(blobs, trained, path, X=None, y=None, **params):
    """Whether a fit with these parameters trains."""
    n, clf = len(trained), small(CrossEntropyClassifier, memory=path, **(PLAIN | params))
    clf.fit(blobs[0] if X is None else X, blobs[1] if y is None else y)
    return len(trained) > n


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_a_parameter_misses(blobs, tmp_path, trained, change):
    assert trains(blobs, trained, tmp_path)
    assert not trains(blobs, trained, tmp_path)
    assert trains(blobs, trained, tmp_path, **change)
    assert not trains(blobs, trained, tmp_path, **change)
    assert not trains(blobs, trained, tmp_path)


def test_a_change_of_a_callback_misses(blobs, tmp_path, trained):
    for n in (1, 2):
        schedule = [LRScheduler("StepLR", step_size=n), EarlyStopping("train_loss", patience=9)]
        assert trains(blobs, trained, tmp_path, callbacks=schedule)
        assert not trains(blobs, trained, tmp_path, callbacks=schedule)
    assert trains(blobs, trained, tmp_path, callbacks=schedule, callbacks__EarlyStopping__patience=8)


@pytest.mark.parametrize("column", ["X", "y"])
def test_a_change_of_one_value_misses(blobs, tmp_path, trained, column):
    changed = {"X": blobs[0].copy(), "y": blobs[1].copy()}
    assert trains(blobs, trained, tmp_path, **changed)
    changed[column].flat[7] = (changed[column].flat[7] + 1) % 3
    assert trains(blobs, trained, tmp_path, **changed)


def test_a_change_of_the_initial_weights_misses(blobs, tmp_path, trained):
    assert trains(blobs, trained, tmp_path, module=weights(0))
    assert not trains(blobs, trained, tmp_path, module=weights(0))
    assert trains(blobs, trained, tmp_path, module=weights(1))
    frozen = weights(0)
    frozen.layers[0].weight.requires_grad_(False)
    assert trains(blobs, trained, tmp_path, module=frozen)


def test_a_change_of_code_misses(blobs, tmp_path, trained):
    assert trains(blobs, trained, tmp_path)
    with mock.patch.object(Net, "scale", 0.5):
        assert trains(blobs, trained, tmp_path)
    with mock.patch.object(Net, "forward", lambda self, x: self.layers(x) / 2):
        assert trains(blobs, trained, tmp_path)
    with mock.patch.object(sys.modules[__name__], "Net", Net):
        assert not trains(blobs, trained, tmp_path)


@pytest.mark.parametrize("library", ["torch", "skorch", "numpy", "scipy", "sklearn", "noisytransition"])
def test_another_version_of_a_library_misses(blobs, tmp_path, trained, library):
    assert trains(blobs, trained, tmp_path)
    with mock.patch.object(sys.modules[library], "__version__", "99.0"):
        assert trains(blobs, trained, tmp_path)
    assert not trains(blobs, trained, tmp_path)


def test_another_number_of_threads_misses(blobs, tmp_path, trained):
    assert trains(blobs, trained, tmp_path)
    torch.set_num_threads(2)
    assert trains(blobs, trained, tmp_path)


# ---------------------------------------------------------------------------- what cannot be kept
class Counting(Callback):
    """Of unknown effect."""

    epochs = 0

    def on_epoch_end(self, net, **kwargs):
        Counting.epochs += 1


class FromFiles(Dataset):
    def __init__(self, X):
        self.X = X

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return self.X[i]


def _accuracy(net, X, y):
    return 0.5


NOT_KEPT = {
    "a callback of unknown effect": ({"callbacks": [Counting()]}, "the callback Counting may have effects"),
    "a lambda": ({"batch_transform": lambda x: x}, "batch_transform is or has <function <lambda>"),
    "a lambda in a callback": ({"callbacks": [LRScheduler("LambdaLR", lr_lambda=lambda i: 0.9)]}, "<lambda>"),
}


@pytest.mark.parametrize(("params", "why"), NOT_KEPT.values(), ids=NOT_KEPT)
def test_what_cannot_be_described_is_trained_each_time(blobs, tmp_path, trained, params, why):
    for _ in range(2):
        with pytest.warns(UserWarning, match=f"'cross_entropy' is not kept in memory and not read from it: .*{why}"):
            assert trains(blobs, trained, tmp_path, **params)
    assert not list(tmp_path.rglob("output.pkl"))
    plain = small(CrossEntropyClassifier, **PLAIN, **params).fit(*blobs[:2])
    with pytest.warns(UserWarning, match="not kept"):
        assert_same(small(CrossEntropyClassifier, memory=tmp_path, **PLAIN, **params).fit(*blobs[:2]), plain, blobs[0])


def test_a_name_makes_it_known(blobs, tmp_path, trained):
    for number in ("1", "2"):
        named, flip = Counting(), lambda x: x
        named.fit_name, flip.fit_name = f"counting, {number}", f"flip, {number}"
        assert trains(blobs, trained, tmp_path, callbacks=[named], batch_transform=flip)
        assert not trains(blobs, trained, tmp_path, callbacks=[copy.copy(named)], batch_transform=flip)


def test_scores_of_the_user_s_are_known(blobs, tmp_path, trained):
    scores = [EpochScoring(_accuracy, name="half", on_train=True)]
    assert trains(blobs, trained, tmp_path, callbacks=scores)
    assert not trains(blobs, trained, tmp_path, callbacks=scores)


def test_samples_in_memory_are_known_and_others_need_a_name(blobs, tmp_path, trained):
    X = torch.as_tensor(blobs[0], dtype=torch.float32)
    known = Subset(TensorDataset(X), range(300))
    assert trains(blobs, trained, tmp_path, X=known)
    assert not trains(blobs, trained, tmp_path, X=known)
    files = FromFiles(X)
    for _ in range(2):
        with pytest.warns(UserWarning, match="FromFiles may read samples that change"):
            assert trains(blobs, trained, tmp_path, X=files)
    files.fit_name = "files, 1"
    assert trains(blobs, trained, tmp_path, X=files)
    assert not trains(blobs, trained, tmp_path, X=files)


class Losing(NoisyLabelNet):
    """Gets state in training that a saved fit would lose."""

    def on_train_end(self, net, **kwargs):
        super().on_train_end(net, **kwargs)
        self.kept_tensors = [torch.zeros(1)]


class LosingClassifier(CrossEntropyClassifier):
    def _fit(self, run):
        self.net_ = run.train("losing", net=Losing)


def test_a_net_that_loses_state_is_trained_each_time(blobs, tmp_path):
    for _ in range(2):
        with pytest.warns(UserWarning, match="'losing' is not kept in memory .*keeps state in"):
            clf = small(LosingClassifier, memory=tmp_path).fit(*blobs[:2])
        assert len(clf.net_.kept_tensors) == 1


def test_nets_of_the_user_s_are_kept_whole(blobs, tmp_path):
    fit(CoTeachingClassifier, blobs, memory=tmp_path)
    with no_training():
        fit(CoTeachingClassifier, blobs, memory=tmp_path)


def test_errors_of_a_training_are_raised_and_nothing_is_kept(blobs, tmp_path):
    for _ in range(2):
        with pytest.raises(ValueError, match="Scale X"):
            small(CrossEntropyClassifier, memory=tmp_path).fit(blobs[0] * 1e20, blobs[1])
    assert not list(tmp_path.rglob("output.pkl"))


# ---------------------------------------------------------------------------- the parameter
@pytest.mark.parametrize(
    "make", [str, lambda p: p, lambda p: joblib.Memory(p, verbose=0)], ids=["str", "path", "Memory"]
)
def test_forms_of_the_parameter(blobs, tmp_path, trained, make):
    clf = small(CrossEntropyClassifier, memory=make(tmp_path)).fit(*blobs[:2])
    clone(clf).fit(*blobs[:2])
    pickle.loads(pickle.dumps(clf)).fit(*blobs[:2])
    assert trained == ["cross_entropy"]


def test_a_wrong_parameter_is_refused(blobs):
    with refused("memory=3; give a folder, a joblib.Memory, or None", TypeError):
        fit(CrossEntropyClassifier, blobs, memory=3)


def test_a_saved_classifier_names_no_folder_of_pickles(blobs, tmp_path):
    clf = fit(CrossEntropyClassifier, blobs, memory=str(tmp_path / "memory"))
    clf.save(tmp_path / "clf")
    assert load(tmp_path / "clf").memory is None
    assert _memory.as_memory(None) is None


def test_a_folder_that_cannot_be_made_is_refused_before_training(blobs, tmp_path):
    (tmp_path / "file").write_text("")
    with no_training(), refused(r"memory=.*file.* cannot be written to: .*Use another folder"):
        fit(CrossEntropyClassifier, blobs, memory=tmp_path / "file" / "inside")
