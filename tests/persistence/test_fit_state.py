"""Interrupted fits continue to the same bits; folders of other fits are refused; state of a net is saved or refused."""

import pickle
from pathlib import Path
from unittest import mock

import joblib
import numpy as np
import pytest
import torch
from estimators import CLASSIFIERS, small
from skorch.callbacks import Callback, LRScheduler
from torch import nn
from training import StopAfter, assert_same, no_training, refused

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, ForwardClassifier
from noisytransition.methods import NoisyLabelClassifier
from noisytransition.nets import MLP, NoisyLabelNet
from noisytransition.selection import Selection
from noisytransition.updates import Update


@pytest.fixture
def fit(blobs, tmp_path):
    """Fit in the folder "fit"."""

    def fit(cls=CrossEntropyClassifier, state=tmp_path / "fit", **params):
        X, y, X_clean, y_clean, *_ = blobs
        return small(cls, **params).fit(X, y, meta=(X_clean, y_clean), state=state)

    return fit


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def histories(clf):
    """Without the durations of epochs."""
    return {stage: [epoch | {"dur": None} for epoch in history] for stage, history in clf.histories_.items()}


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_an_interrupted_fit_goes_on_to_the_same_result(cls, blobs, fit):
    """Interrupted after one epoch, and before the last; then finished; then read."""
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
    schedule = LRScheduler("MultiStepLR", milestones=[1, 2, 2])  # its state has a Counter
    params = {"module": module, "optimizer": torch.optim.Adam, "lr": 0.01, "callbacks": [schedule]}
    whole = fit(cls, state=None, **params)
    for n_epochs in (1, sum(map(len, whole.histories_.values())) - 2):
        with pytest.raises(KeyboardInterrupt):
            fit(cls, **(params | {"callbacks": [schedule, StopAfter(n_epochs)]}))
    resumed = fit(cls, **params)
    with no_training():
        again = fit(cls, **params)
    for clf in (resumed, again):
        assert_same(clf, whole, blobs[0])
        assert histories(clf) == histories(whole)
        assert len(pickle.dumps(clf)) < 1.05 * len(pickle.dumps(whole))
        assert b".stage" not in pickle.dumps(clf)


def test_a_fit_that_is_read_has_the_seed_that_was_drawn(fit, blobs):
    assert_same(fit(random_state=None), fit(random_state=None), blobs[0])


# ---------------------------------------------------------------------------- the folder
def test_each_stage_has_a_file_and_a_complete_one_is_not_written_again(fit, tmp_path, blobs, monkeypatch):
    """A relative path is that of the caller's folder, also in other processes."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        fit(EMTransitionClassifier, callbacks=[StopAfter(4)])
    first = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "fit").iterdir()}
    assert set(first) == {"warm_up.stage", "fold_0.stage"}
    with joblib.parallel_config(backend="multiprocessing"):  # processes that are forked start at once
        in_two = fit(EMTransitionClassifier, n_jobs=2, state="fit")
    last = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "fit").iterdir()}
    assert set(last) == {*first, "fold_0_clean.stage", "fold_1.stage", "fold_1_clean.stage", "clean.stage", "em.stage"}
    assert first["warm_up.stage"] == last["warm_up.stage"]
    assert first["fold_0.stage"] < last["fold_0.stage"]
    with no_training():
        assert_same(fit(EMTransitionClassifier), in_two, blobs[0])


def test_a_changed_file_is_refused_and_left_as_it_is(fit, tmp_path):
    fit(ForwardClassifier)
    path = tmp_path / "fit" / "forward.stage"
    path.write_bytes(path.read_bytes()[:-10])
    before = files(tmp_path / "fit")
    with refused("damaged"):
        fit(ForwardClassifier)
    assert files(tmp_path / "fit") == before


def test_a_write_that_was_cut_off_leaves_nothing_in_the_way(fit, tmp_path, blobs):
    """attacks/test_interruptions.py kills the process."""
    with mock.patch.object(Path, "replace", side_effect=ZeroDivisionError), pytest.raises(ZeroDivisionError):
        fit()
    assert set(files(tmp_path / "fit")) == {"cross_entropy.stage.part"}
    assert_same(fit(), fit(state=None), blobs[0])
    assert set(files(tmp_path / "fit")) == {"cross_entropy.stage"}


# ---------------------------------------------------------------------------- what of a net is saved, and what refused
class OneStage(NoisyLabelClassifier):
    """Trains with the parts that a test sets."""

    parts = staticmethod(dict)

    def _fit(self, run):
        self.net_ = run.train("only", **self.parts())


@pytest.fixture
def fit_with(monkeypatch, fit):
    """Fit with these parts."""

    def fit_with(parts, *callbacks, **how):
        monkeypatch.setattr(OneStage, "parts", staticmethod(parts))
        return fit(OneStage, max_epochs=4, callbacks=list(callbacks), **how)

    return fit_with


class Moves(Update):
    """Update that weights batches by all kinds of state."""

    def on_train_begin(self, net, **kwargs):
        super().on_train_begin(net, **kwargs)
        self.factor_, self.weights_, self.seen_ = np.float32(0.5), nn.Linear(1, 1), []
        self.optimizer_ = torch.optim.Adam(self.weights_.parameters(), lr=0.1)

    def before_step(self, net, batch):
        self.factor_ *= np.float32(0.99)
        self.optimizer_.zero_grad()
        self.weights_(torch.tensor([self.factor_])).square().sum().backward()
        self.optimizer_.step()
        self.seen_.append((self.weights_.bias.item(), self.factor_))
        batch.x.mul_(1 + self.seen_[-1][0] + self.factor_)


def test_an_update_s_module_optimiser_list_and_number_go_on(fit_with):
    with pytest.raises(KeyboardInterrupt):
        fit_with(lambda: {"update": Moves()}, StopAfter(2))
    whole, resumed = fit_with(lambda: {"update": Moves()}, state=None).net_, fit_with(lambda: {"update": Moves()}).net_
    assert whole.history[:, "train_loss"] == resumed.history[:, "train_loss"]
    assert whole.update.seen_ == resumed.update.seen_


class Late(Update):
    """Update that creates its optimiser at the first step, which the checkpoint cannot restore."""

    def before_step(self, net, batch):
        self.optimizer_ = torch.optim.Adam(net.module_.parameters())


def test_an_optimiser_that_is_made_too_late_is_not_left_as_it_was(fit_with):
    with pytest.raises(KeyboardInterrupt):
        fit_with(lambda: {"update": Late()}, StopAfter(2))
    with pytest.raises(AttributeError, match="load_state_dict"):
        fit_with(lambda: {"update": Late()})


UNSAVEABLE = [
    ("net", NoisyLabelNet, lambda module: lambda x: x),
    ("update", Update, lambda module: np.random.default_rng(0)),
    ("select", Selection, lambda module: [torch.optim.SGD(module.parameters())]),
    ("update", Update, lambda module: {"peer": MLP(4, 3)}),
]


@pytest.mark.parametrize(("part", "base", "make"), UNSAVEABLE)
def test_state_that_would_be_lost_is_refused_before_training(fit_with, part, base, make):
    class Keeps(base):
        def on_train_begin(self, net, **kwargs):
            super().on_train_begin(net, **kwargs)
            self.thing_ = make(net.module_)

    parts = {part: Keeps if part == "net" else Keeps()}
    with refused("thing_"):
        fit_with(lambda: parts)
    fit_with(lambda: parts, state=None)


class Plots(Callback):
    """A user's callback with attributes and records that cannot be saved."""

    def on_train_begin(self, net, **kwargs):
        self.draw_ = lambda: None

    def on_epoch_end(self, net, **kwargs):
        net.history.record("thing", self)
        net.history.record("n", len(net.history))


def test_what_a_user_s_callback_cannot_save_is_left_out(fit):
    fit(callbacks=[Plots()])
    history = fit(callbacks=[Plots()]).history_
    assert history[:, "n"] == [1, 2, 3]
    assert "thing" not in history[-1]
