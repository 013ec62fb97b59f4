"""The last classifier of EM: the network trained through T, or the same fine-tuned on the clean rows."""

from functools import cache

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback, Checkpoint, EarlyStopping, LRScheduler
from skorch.dataset import ValidSplit
from torch import nn
from training import StopAfter, refused

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, load
from noisytransition.nets._checks import DivergenceError
from noisytransition.transition import flip_labels, pair_noise

SGD = {"optimizer": "sgd", "lr": 0.1, "optimizer__momentum": 0.9}
FAST = SGD | {"max_epochs": 4, "batch_size": 64, "random_state": 0, "cv": 2}


def problem(n=300, n_clean=45, *, worthless=False, seed=0):
    """Three classes that overlap; pair noise, or labels in any order. Noisy rows, clean ones, true labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n + n_clean)
    X = rng.normal(size=(len(y), 2)) + 2.2 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    noisy = rng.permutation(y) if worthless else flip_labels(y, pair_noise(3, 0.3), random_state=seed)
    return X[n_clean:], noisy[n_clean:], (X[:n_clean], y[:n_clean]), y[n_clean:]


def fit(X, y, meta, _, **params):
    return EMTransitionClassifier(**FAST | params).fit(X, y, meta=meta)


def under_trained(**params):
    """A step so small that fine-tuning always helps."""
    return fit(*problem(worthless=True), lr=0.001, **params)


# ---------------------------------------------------------------------------- the choice
def test_worthless_labels_do_no_harm():
    X, _, meta, true = rows = problem(1000, 60, worthless=True)
    clean = CrossEntropyClassifier(**{k: v for k, v in FAST.items() if k != "cv"} | {"max_epochs": 50}).fit(*meta)
    assert fit(*rows).score(X, true) > clean.score(X, true) - 0.05


@pytest.mark.parametrize(("lr", "final"), [(0.001, "fine-tuned"), (0.1, "own")])
def test_the_network_is_fine_tuned_where_held_out_clean_rows_are_predicted_better(lr, final):
    clf = fit(*problem(), lr=lr, max_epochs=4 if lr == 0.001 else 8)
    assert clf.selected_classifier_ == final
    assert (clf.selection_losses_["fine-tuned"] < clf.selection_losses_["own"]) == (final == "fine-tuned")
    stages = ["warm_up", "fold_0", "fold_1", "em", *["fine_tuned"] * (final == "fine-tuned")]
    assert list(clf.histories_) == stages
    assert clf.history_ == clf.net_.history == clf.histories_[stages[-1]]


def test_fine_tuning_goes_on_from_the_network_and_leaves_T_alone():
    _, _, meta, _ = problem(worthless=True)
    clf, plain = under_trained(), under_trained(fine_tune=False)
    assert (clf.selected_classifier_, len(clf.history_)) == ("fine-tuned", 50)
    np.testing.assert_array_equal(clf.transition_matrix_, plain.transition_matrix_)
    start = plain.predict_proba(meta[0])[np.arange(45), meta[1]]
    first = clf.history_[0, "train_loss"]  # one batch: the loss before its step
    assert first == pytest.approx(-np.log(start).mean(), rel=1e-4)
    assert plain.selected_classifier_ == "own"


def test_held_out_clean_rows_are_not_trained_on():
    """Each clean sample has its own feature and all weights start at 0, so held-out samples have uniform outputs."""
    module = nn.Linear(60, 3, bias=False)
    nn.init.zeros_(module.weight)
    X, y = np.eye(60), np.arange(60) % 3
    clf = EMTransitionClassifier(module, transition_init="diagonal", **FAST).fit(X[:42], y[:42], meta=(X[42:], y[42:]))
    assert list(clf.selection_losses_.values()) == pytest.approx([np.log(3)] * 2)
    assert clf.predict_proba(X).std() > 1e-5


@pytest.mark.parametrize("n", [3, 5, 6])
def test_with_few_clean_rows_there_is_no_choice(n):
    clf = fit(*problem(60, n))
    assert bool(clf.selection_losses_) == (n == 6)


def test_no_choice_with_a_class_that_no_clean_row_has():
    X, y, (X_meta, y_meta), _ = problem()
    some = y_meta != 2
    assert not fit(X, y, (X_meta[some], y_meta[some]), None).selection_losses_


def test_without_folds_half_of_the_clean_rows_decide():
    assert fit(*problem(), cv=None, lr=0.001).selected_classifier_ == "fine-tuned"


def test_a_flag_is_a_flag():
    with refused("fine_tune", TypeError):
        fit(*problem(60), fine_tune="no")


# ---------------------------------------------------------------------------- saved fits
@cache
def not_interrupted():
    """A fit, and a count of its epochs."""
    count = StopAfter(-1)
    return under_trained(callbacks=[count], max_epochs=2), count


@pytest.mark.parametrize("before_the_end", [1, 60])
def test_an_interrupted_choice_goes_on_to_the_same_bits(before_the_end, tmp_path):
    X, y, meta, _ = problem(worthless=True)
    whole, count = not_interrupted()
    stopped = EMTransitionClassifier(
        **whole.get_params() | {"callbacks": [StopAfter(len(count.ended) - before_the_end)]}
    )
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, y, meta=meta, state=tmp_path / "fit")
    resumed = EMTransitionClassifier(**whole.get_params() | {"callbacks": None})
    resumed.fit(X, y, meta=meta, state=tmp_path / "fit")
    assert (resumed.selected_classifier_, resumed.selection_losses_) == (
        whole.selected_classifier_,
        whole.selection_losses_,
    )
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))


def test_a_choice_is_saved(tmp_path):
    clf = under_trained()
    clf.save(tmp_path / "clf")
    again = load(tmp_path / "clf")
    assert (again.selected_classifier_, again.selection_losses_) == (clf.selected_classifier_, clf.selection_losses_)
    X, *_ = problem()
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


# ---------------------------------------------------------------------------- what the user gives for the noisy rows
@pytest.mark.parametrize(
    "params",
    [
        {"callbacks": [EarlyStopping("valid_noisy_loss")], "train_split": ValidSplit(5)},
        {"callbacks": [("early", EarlyStopping("valid_noisy_loss"))], "train_split": ValidSplit(5)}
        | {"callbacks__early__patience": 2},
        {"callbacks": [LRScheduler(torch.optim.lr_scheduler.OneCycleLR, max_lr=0.1, total_steps=4)]},
        {"train_split": ValidSplit(5)},
        {"iterator_train__drop_last": True, "batch_size": 16},
        {"module": nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)), "batch_size": 3},
    ],
    ids=["stopping", "named", "schedule", "split", "drop_last", "normalised"],
)
def test_settings_for_many_rows_do_not_fail_on_few(params):
    clf = fit(*problem(60, 7), **params)
    assert np.isfinite(list(clf.selection_losses_.values())).all()


def test_fine_tuning_has_a_low_learning_rate_instead_of_a_schedule():
    rates, halved = [], LRScheduler(torch.optim.lr_scheduler.StepLR, step_size=1, gamma=0.5)

    class Rates(Callback):
        def on_train_begin(self, net, **kwargs):
            rates.append(net.lr)

    fit(*problem(60, 7), lr=0.2, callbacks=[halved, Rates()], cv=2)
    assert rates.count(0.2) == 4  # warm-up, folds, last network
    assert rates.count(0.002) == len(rates) - 4 >= 2  # fine-tuning of each fold


def test_a_checkpoint_is_of_the_method_s_own_training(tmp_path):
    saved = Checkpoint(dirname=tmp_path, monitor="train_loss_best", f_history=None, f_optimizer=None, f_criterion=None)
    assert under_trained(callbacks=[saved]).selected_classifier_ == "fine-tuned"
    before = torch.load(tmp_path / "params.pt")
    under_trained(callbacks=[saved], fine_tune=False)
    after = torch.load(tmp_path / "params.pt")
    assert all(torch.equal(before[name], after[name]) for name in after)


def test_nets_on_clean_rows_are_the_user_s():
    """Frozen layers stay frozen, and inputs are augmented."""
    module, sizes = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3)), []
    module[0].requires_grad_(False)
    clf = under_trained(module=module, batch_transform=lambda x: sizes.append(len(x)) or x)
    assert sizes[-len(clf.history_) :] == [45] * len(clf.history_)  # the clean rows, in the last training
    assert (clf.net_.module_[0].weight == module[0].weight).all()


def test_fine_tuning_that_diverges_is_dropped(monkeypatch):
    """A large step with momentum: 50 epochs on the clean rows make weights that are not finite."""
    diverged, init = [], DivergenceError.__init__
    monkeypatch.setattr(DivergenceError, "__init__", lambda self, *args: diverged.append(args) or init(self, *args))
    X, y, meta, _ = problem()
    own = {"lr": 300.0, "optimizer__momentum": 0.99, "max_epochs": 1, "transition_init": "diagonal"}
    clf = fit(X, y, meta, None, **own)
    assert diverged
    assert clf.selected_classifier_ == "own"
    np.testing.assert_array_equal(clf.predict_proba(X), fit(X, y, meta, None, fine_tune=False, **own).predict_proba(X))
