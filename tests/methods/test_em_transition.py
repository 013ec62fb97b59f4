"""Classifier and T by joint likelihood: held-out samples, selection, results, posteriors of the last training."""

import functools

import joblib
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from skorch.callbacks import EarlyStopping, LRScheduler
from skorch.dataset import Dataset, ValidSplit
from skorch.helper import predefined_split
from strategies import labels
from torch import nn
from training import Batches, On, StopAfter, floored

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, GLCClassifier, transition_error
from noisytransition.fitting._cross_fitting import fold_of_rows
from noisytransition.fitting._run import FitContext
from noisytransition.likelihood import _fit
from noisytransition.likelihood._shrinkage import shrunk_to_symmetric
from noisytransition.nets._net import DivergenceError
from noisytransition.transition import flip_labels, gold_transition_matrix, pair_noise, symmetric_noise

SGD = {"optimizer": "sgd", "lr": 0.1, "optimizer__momentum": 0.9}
FAST = SGD | {"max_epochs": 8, "batch_size": 64, "random_state": 0, "cv": 2}
PAIR, SYMMETRIC = pair_noise(3, 0.4), symmetric_noise(3, 0.5)


def overlapping(T=PAIR, n=750, n_clean=90):
    """Noisy samples of classes that overlap, where GLC's estimate is biased; clean ones; true labels of all."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n + n_clean)
    X = rng.normal(size=(len(y), 2)) + 2.2 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    y_noisy = flip_labels(y, T, random_state=0)
    return X[n_clean:], y_noisy[n_clean:], (X[:n_clean], y[:n_clean]), y


def fit(n=750, T=PAIR, n_clean=90, **params):
    X, y, meta, _ = overlapping(T, n, n_clean)
    return EMTransitionClassifier(**FAST | params).fit(X, y, meta=meta)


fitted = functools.cache(fit)  # tests must not change its fits


@pytest.mark.parametrize(("T", "own"), [(PAIR, [{}, {"clean_weight": 0.2}]), (SYMMETRIC, [{"cv": 2}])])
def test_finds_T_where_classes_overlap(T, own):
    X, y, meta, _ = overlapping(T)
    glc = GLCClassifier(**SGD, max_epochs=8, batch_size=64, random_state=0).fit(X, y, meta=meta)
    for params in own:
        clf = fit(T=T, **params) if params else fitted()
        error = transition_error(T, clf.transition_matrix_)
        assert error < 0.5 * transition_error(T, glc.transition_matrix_)


def test_posteriors_behind_T_are_of_samples_that_the_net_has_not_seen(monkeypatch):
    """Each sample has its own feature and all weights start at 0, so unused samples have uniform outputs."""
    seen = []
    whole = _fit.first_maximum
    monkeypatch.setattr(
        _fit, "first_maximum", lambda *args, **kw: seen.append((args[0], args[2])) or whole(*args, **kw)
    )
    module = nn.Linear(60, 3, bias=False)
    nn.init.zeros_(module.weight)
    rows, y = np.eye(60), np.arange(60) % 3
    clf = EMTransitionClassifier(module, transition_init="diagonal", **FAST | {"cv": 4})
    clf.fit(rows[:40], y[:40], meta=(rows[40:], y[40:]))
    assert seen
    for posteriors in seen:
        assert tuple(map(len, posteriors)) == (40, 20)
        for proba in posteriors:
            np.testing.assert_allclose(proba, 1 / 3, rtol=1e-6)
    assert clf.posterior_weights_["clean"] == pytest.approx(0)  # uniform outputs say nothing
    assert clf.predict_proba(rows).std() > 1e-5  # the last net has learned from all samples


def test_the_number_of_epochs_with_the_highest_evidence_is_taken():
    clf = fitted()
    results = clf.cv_results_
    np.testing.assert_array_equal(results["epochs"], np.arange(1, 9))
    assert clf.n_epochs_ == results["epochs"][results["log_evidence"].argmax()] < 8
    assert len(clf.history_) == clf.n_epochs_


@pytest.mark.parametrize(
    ("n", "n_clean", "ratio"),
    [(120, 90, 120 / 90), (750, 90, 600 / 90), (300, 10, 20), (80, 90, 1)],
    ids=["all", "200 of each class", "20 at most", "1 at least"],
)
def test_the_weight_of_a_clean_sample_is_a_root_of_a_ratio_with_limits(n, n_clean, ratio):
    X, y, (X_clean, y_clean), _ = overlapping(n=n)
    proba = []
    for weight in ("auto", ratio**0.5, 1.01 * ratio**0.5):
        em = EMTransitionClassifier("linear", clean_weight=weight, max_epochs=1, cv=2, random_state=0)
        proba.append(em.fit(X, y, meta=(X_clean[:n_clean], y_clean[:n_clean])).predict_proba(X))
    np.testing.assert_array_equal(proba[0], proba[1])
    assert (proba[0] != proba[2]).any()


@pytest.mark.parametrize(("n", "largest", "steps"), [(1500, 68, 24), (180, 96, 3), (45, 128, 2)])
def test_clean_samples_enlarge_the_batches_up_to_twice(n, largest, steps):
    """With at most as many clean as noisy samples, an epoch has as many steps as on the noisy samples."""
    batches = Batches()
    fit(n, max_epochs=1, callbacks=[batches], cv=2)
    warm_up, *_, last = ([batch["train_batch_size"] for batch in epoch] for epoch in batches.of_epochs)
    assert (max(last), len(last), sum(last)) == (largest, steps, n + 90)
    assert len(warm_up) == -(-n // 64)


def test_folds_in_parallel_give_the_same_bits():
    with joblib.parallel_config("multiprocessing"):  # a fork starts at once
        one, two = (fit(120, max_epochs=4, n_jobs=n) for n in (None, 2))
    for name in ("transition_matrix_", "oof_proba_"):
        np.testing.assert_array_equal(getattr(two, name), getattr(one, name))
    np.testing.assert_array_equal(two.predict_proba(np.eye(2)), one.predict_proba(np.eye(2)))
    assert list(two.histories_) == list(one.histories_)
    for choice in ("posterior_weights_", "diagnostics_"):
        assert getattr(two, choice) == getattr(one, choice)


def test_the_fitted_T_has_the_prior_in_it():
    clf = fit(300, prior=PAIR)
    assert clf.noise_model_.prior_strength_ > 0
    assert transition_error(PAIR, clf.transition_matrix_) < 0.02
    plain = fitted()
    assert plain.noise_model_.prior_strength_ == 0
    counts = plain.noise_model_.transition_counts_
    np.testing.assert_allclose(plain.transition_matrix_, counts / counts.sum(1, keepdims=True), atol=1e-3)


def test_folds_of_another_seed_are_not_taken_up(tmp_path):
    """Without a seed of the user's, a file of a fold alone does not tell which samples it held out."""
    X, y, meta, _ = overlapping(n=90)
    params = FAST | {"transition_init": "diagonal", "random_state": None, "max_epochs": 3}
    torch.manual_seed(0)
    with pytest.raises(KeyboardInterrupt):
        EMTransitionClassifier(**params, callbacks=[StopAfter(4)]).fit(X, y, meta=meta, state=tmp_path / "fit")
    torch.manual_seed(1)
    resumed = EMTransitionClassifier(**params).fit(X, y, meta=meta, state=tmp_path / "fit")
    torch.manual_seed(0)
    whole = EMTransitionClassifier(**params).fit(X, y, meta=meta)
    np.testing.assert_array_equal(resumed.oof_proba_, whole.oof_proba_)
    np.testing.assert_array_equal(resumed.transition_matrix_, whole.transition_matrix_)


@given(st.data(), st.integers(2, 5), st.integers(1, 4))
def test_folds_are_even_in_size_and_classes(data, n_folds, c):
    y = data.draw(labels(data.draw(st.integers(n_folds, 40)), c))
    folds = fold_of_rows(y, n_folds, np.random.default_rng(0))
    assert np.ptp(np.bincount(folds, minlength=n_folds)) <= 1
    for k in range(c):
        assert np.ptp(np.bincount(folds[y == k], minlength=n_folds)) <= 1


def test_T_starts_from_shrunk_mean_posteriors():
    X, y, (X_clean, y_clean), _ = overlapping()
    warm_up = CrossEntropyClassifier(**SGD, max_epochs=2, batch_size=64, random_state=0)
    proba = warm_up.fit(X, y).predict_proba(X_clean)
    gold = gold_transition_matrix(proba, y_clean)
    shrunk = floored(shrunk_to_symmetric(gold, proba, y_clean))
    np.testing.assert_allclose(fitted().transition_init_, shrunk, atol=1e-6)
    assert np.abs(shrunk - gold).max() > 1e-3


# ---------------------------------------------------------------------------- posteriors of the last training
def test_worthless_labels_do_no_harm():
    X, _, meta, true = overlapping(n=600, n_clean=60)
    clean = CrossEntropyClassifier(**SGD, max_epochs=20, batch_size=64, random_state=0).fit(*meta)
    worthless = np.random.default_rng(0).permutation(true[60:])
    clf = EMTransitionClassifier(**FAST | {"max_epochs": 20}).fit(X, worthless, meta=meta)
    assert clf.score(X, true[60:]) > clean.score(X, true[60:]) - 0.05


def test_labels_of_one_T_have_the_weight_of_bayes_rule():
    X, y, (X_clean, y_clean), _ = overlapping(n=900, n_clean=120)
    noisy = flip_labels(y_clean, PAIR, random_state=1)
    clf = EMTransitionClassifier(**FAST).fit(X, y, meta=(X_clean, y_clean), y_clean_noisy=noisy)
    assert clf.posterior_weights_["label"] == pytest.approx(1, abs=0.4)
    assert list(clf.histories_) == ["warm_up", "fold_0", "fold_0_clean", "fold_1", "fold_1_clean", "clean", "em"]
    assert clf.history_ == clf.net_.history == clf.histories_["em"]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_the_network_of_clean_samples_needs_two_of_each_class(n):
    X, y, (X_clean, y_clean), _ = overlapping(n=100)
    kept = np.concatenate([np.flatnonzero(y_clean == i)[: n if i == 2 else 9] for i in range(3)])
    clf = EMTransitionClassifier(**FAST).fit(X, y, meta=(X_clean[kept], y_clean[kept]))
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
    clf = fit(60, n_clean=12, max_epochs=4, **params)
    assert np.isfinite(list(clf.posterior_weights_.values())).all()


def test_trainings_on_clean_samples_have_no_schedule():
    rates, halved = [], LRScheduler(torch.optim.lr_scheduler.StepLR, step_size=1, gamma=0.5)
    note = On(epoch_end=lambda net, **kwargs: rates.append((net.labels, net.optimizer_.param_groups[0]["lr"])))
    fit(60, n_clean=12, max_epochs=4, lr=0.2, callbacks=[halved, note])
    assert {rate for labels, rate in rates if labels == "clean"} == {0.2}
    assert len({rate for labels, rate in rates if labels == "noisy"}) > 1


def test_nets_on_clean_samples_are_the_user_s():
    """Frozen layers stay frozen, and inputs are augmented."""
    module, sizes = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3)), []
    module[0].requires_grad_(False)
    clf = fit(100, n_clean=45, max_epochs=4, module=module, batch_transform=lambda x: sizes.append(len(x)) or x)
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
    clf = fit(100)
    assert list(clf.posterior_weights_) == ["features", "label"]
    assert np.isfinite(clf.predict_proba(overlapping(n=100)[0])).all()


# ---------------------------------------------------------------------------- clean samples stratified by class
T2 = [[0.9, 0.1], [0.3, 0.7]]


@functools.cache
def imbalanced(*, at_random=False, n=1000):
    """Two clouds that overlap, a tenth of the samples in one of them; 60 clean samples of each class, or 120 of all."""
    rng = np.random.default_rng(0)
    y = (rng.random(4 * n) < 0.1).astype(int)
    X = np.float32(rng.normal(size=(len(y), 2)) + 2.2 * y[:, None])
    of_classes = [np.flatnonzero(y == k)[:60] for k in range(2)]
    clean = np.arange(120) if at_random else np.concatenate(of_classes)
    rest = np.setdiff1d(np.arange(len(y)), clean)
    train, test = rest[:n], rest[n:]
    noisy = flip_labels(y, T2, random_state=1)
    return (X[train], noisy[train], X[clean], y[clean], noisy[clean]), (X[test], y[test]), y[train]


@functools.cache
def sampled(sampling="stratified", *, at_random=False, pairs=False, **params):
    (X, noisy, X_clean, y_clean, noisy_meta), *_ = imbalanced(at_random=at_random)
    clf = EMTransitionClassifier(**FAST | params, verified_sampling=sampling)
    return clf.fit(X, noisy, meta=(X_clean, y_clean), y_clean_noisy=noisy_meta if pairs else None)


@pytest.mark.parametrize("pairs", [False, True])
def test_T_and_shares_are_those_of_the_noisy_samples(pairs):
    *_, y = imbalanced()
    clf, share = sampled(pairs=pairs), y.mean()
    np.testing.assert_allclose(clf.noise_model_.log_prior_ratio_, np.log([0.5 / (1 - share), 0.5 / share]), atol=0.3)
    assert transition_error(T2, clf.transition_matrix_) < 0.15
    assert clf.noisy_class_counts_[1] / clf.noisy_class_counts_.sum() == pytest.approx(share, rel=0.25)
    assert "unknown_shares" not in clf.diagnostics_
    low, high = clf.transition_interval(0.95)
    assert ((low <= T2) & (high >= T2)).all()


def test_without_it_they_are_not_and_the_fit_asks():
    *_, y = imbalanced()
    plain = sampled("random")
    assert not plain.noise_model_.log_prior_ratio_.any()
    assert transition_error(T2, plain.transition_matrix_) > transition_error(T2, sampled().transition_matrix_) + 0.1
    assert plain.noisy_class_counts_[1] / plain.noisy_class_counts_.sum() > 1.3 * y.mean()
    assert "stratified" in plain.diagnostics_["unknown_shares"]
    assert "unknown_shares" not in sampled("random", at_random=True).diagnostics_


def test_the_classifier_is_as_good_as_with_random_samples():
    _, (X, y), _ = imbalanced()
    stratified, at_random = sampled(), sampled("random", at_random=True)
    assert stratified.score(X, y) > at_random.score(X, y) - 0.02
    assert stratified.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.05)


def test_a_validation_set_of_the_user_s_is_evaluated():
    X, y, meta, _ = overlapping(n=200)
    X = np.float32(X)
    held_out = predefined_split(Dataset(X[:50], y[:50]))
    clf = EMTransitionClassifier(**FAST | {"max_epochs": 2}, train_split=held_out)
    clf.fit(X[50:], y[50:], meta=meta)
    of_labels = -np.log(clf.predict_proba(X[:50])[np.arange(50), y[:50]]).mean()
    assert clf.history_[-1]["valid_loss"] == pytest.approx(of_labels, rel=1e-4)
