"""The last training of EM: posteriors from features, label, and a network of the clean samples."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from skorch.callbacks import EarlyStopping, LRScheduler
from skorch.dataset import ValidSplit
from torch import nn
from training import On

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier
from noisytransition.fitting._run import FitContext
from noisytransition.nets._net import DivergenceError
from noisytransition.transition import flip_labels, pair_noise

SGD = {"optimizer": "sgd", "lr": 0.1, "optimizer__momentum": 0.9}
FAST = SGD | {"max_epochs": 4, "batch_size": 64, "random_state": 0, "cv": 2}


def problem(n=200, n_clean=45, *, worthless=False):
    """Three classes that overlap; pair noise, or labels in any order. Noisy samples, clean ones, true labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n + n_clean)
    X = rng.normal(size=(len(y), 2)) + 2.2 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    noisy = rng.permutation(y) if worthless else flip_labels(y, pair_noise(3, 0.3), random_state=0)
    return X[n_clean:], noisy[n_clean:], (X[:n_clean], y[:n_clean]), y[n_clean:]


def fit(X, y, meta, _, **params):
    return EMTransitionClassifier(**FAST | params).fit(X, y, meta=meta)


# ---------------------------------------------------------------------------- the weights
def test_worthless_labels_do_no_harm():
    X, _, meta, true = rows = problem(600, 60, worthless=True)
    clean = CrossEntropyClassifier(**SGD, max_epochs=20, batch_size=64, random_state=0).fit(*meta)
    assert fit(*rows, max_epochs=20).score(X, true) > clean.score(X, true) - 0.05


def test_labels_of_one_T_have_the_weight_of_bayes_rule():
    X, y, (X_clean, y_clean), _ = problem(900, 120)
    noisy = flip_labels(y_clean, pair_noise(3, 0.3), random_state=1)
    clf = EMTransitionClassifier(**FAST | {"max_epochs": 8}).fit(X, y, meta=(X_clean, y_clean), y_clean_noisy=noisy)
    assert clf.posterior_weights_["label"] == pytest.approx(1, abs=0.4)
    assert list(clf.histories_) == ["warm_up", "fold_0", "fold_0_clean", "fold_1", "fold_1_clean", "clean", "em"]
    assert clf.history_ == clf.net_.history == clf.histories_["em"]


def test_a_labeller_that_repeats_the_features_has_a_lower_weight():
    """Labels of a classifier of the features: they say little beyond these."""
    X, _, (X_clean, y_clean), true = problem(900, 150)
    labeller = LogisticRegression().fit(X[:40, :1], true[:40])
    y, noisy = labeller.predict(X[:, :1]), labeller.predict(X_clean[:, :1])
    clf = EMTransitionClassifier(**FAST | {"max_epochs": 8}).fit(X, y, meta=(X_clean, y_clean), y_clean_noisy=noisy)
    assert clf.posterior_weights_["label"] < 0.7
    assert clf.posterior_weights_["clean"] > 0.1


@pytest.mark.parametrize("n", [0, 1, 2])
def test_the_network_of_clean_samples_needs_two_of_each_class(n):
    X, y, (X_clean, y_clean), _ = problem(100)
    kept = np.concatenate([np.flatnonzero(y_clean == i)[: n if i == 2 else 9] for i in range(3)])
    clf = fit(X, y, (X_clean[kept], y_clean[kept]), None)
    assert ("clean" in clf.posterior_weights_) == ("clean" in clf.histories_) == (n == 2)


# ---------------------------------------------------------------------------- what the user gives for the noisy rows
@pytest.mark.parametrize(
    "params",
    [
        {"callbacks": [("early", EarlyStopping("valid_noisy_loss"))], "train_split": ValidSplit(5)}
        | {"callbacks__early__patience": 2},
        {"callbacks": [LRScheduler(torch.optim.lr_scheduler.OneCycleLR, max_lr=0.1, total_steps=4)]},
        {"iterator_train__drop_last": True, "batch_size": 16},
        {"module": nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)), "batch_size": 3},
    ],
    ids=["stopping", "schedule", "drop_last", "normalised"],
)
def test_settings_for_many_samples_do_not_fail_on_few(params):
    clf = fit(*problem(60, 12), **params)
    assert np.isfinite(list(clf.posterior_weights_.values())).all()


def test_trainings_on_clean_samples_have_no_schedule():
    rates, halved = [], LRScheduler(torch.optim.lr_scheduler.StepLR, step_size=1, gamma=0.5)

    note = On(epoch_end=lambda net, **kwargs: rates.append((net.labels, net.optimizer_.param_groups[0]["lr"])))
    fit(*problem(60, 12), lr=0.2, callbacks=[halved, note])
    assert {rate for labels, rate in rates if labels == "clean"} == {0.2}
    assert len({rate for labels, rate in rates if labels == "noisy"}) > 1


def test_nets_on_clean_samples_are_the_user_s():
    """Frozen layers stay frozen, and inputs are augmented."""
    module, sizes = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3)), []
    module[0].requires_grad_(False)
    clf = fit(*problem(100), module=module, batch_transform=lambda x: sizes.append(len(x)) or x)
    assert 45 in sizes  # all clean samples alone
    assert (clf.net_.module_[0].weight == module[0].weight).all()


def test_a_network_of_clean_samples_that_diverges_is_dropped(monkeypatch):
    """The network of all clean samples diverges, those of the folds do not."""
    train = FitContext.train

    def diverging(run, stage, *args, **params):
        if stage == "clean":
            raise DivergenceError("not finite")
        return train(run, stage, *args, **params)

    monkeypatch.setattr(FitContext, "train", diverging)
    clf = fit(*problem(100))
    assert list(clf.posterior_weights_) == ["features", "label"]
    assert np.isfinite(clf.predict_proba(problem(100)[0])).all()
