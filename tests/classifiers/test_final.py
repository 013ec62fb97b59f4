"""The last classifier: which candidates there are, which one is taken, and what the choice leaves alone."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from skorch.callbacks import Checkpoint, EarlyStopping, LRScheduler
from skorch.dataset import ValidSplit
from torch import nn
from training import StopAfter, refused, stages_of_the_choice

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, load
from noisytransition.classifiers import _final
from noisytransition.classifiers._final import CLEAN_ROWS, LEAST_CLEAN_ROWS, OWN, Step, candidates_of
from noisytransition.nets import NoisyLabelNet, Rows
from noisytransition.transition import flip_labels, pair_noise

FAST = {"max_epochs": 4, "batch_size": 64, "optimizer": "sgd", "lr": 0.1, "optimizer__momentum": 0.9, "random_state": 0}
both = pytest.mark.parametrize("cls", [EMTransitionClassifier])


def problem(n=300, n_clean=45, *, worthless=False, seed=0):
    """Three classes that overlap; pair noise, or labels in any order. Noisy rows, clean ones, true labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n + n_clean)
    X = rng.normal(size=(len(y), 2)) + 2.2 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    noisy = rng.permutation(y) if worthless else flip_labels(y, pair_noise(3, 0.3), random_state=seed)
    return X[n_clean:], noisy[n_clean:], (X[:n_clean], y[:n_clean]), y[n_clean:]


def fit(cls, X, y, meta, _, **params):
    return cls(**(FAST | {"cv": 2} if cls is EMTransitionClassifier else FAST) | params).fit(X, y, meta=meta)


# ---------------------------------------------------------------------------- the choice
@both
def test_worthless_labels_do_no_harm(cls):
    X, _, meta, true = rows = problem(1000, 60, worthless=True)
    clean = CrossEntropyClassifier(**FAST | {"max_epochs": 50}).fit(*meta)
    assert fit(cls, *rows).score(X, true) > clean.score(X, true) - 0.03


@both
@pytest.mark.parametrize("worthless", [False, True])
def test_the_candidate_with_the_lowest_loss_is_taken(cls, worthless):
    clf = fit(cls, *problem(worthless=worthless))
    names, losses = clf.final_scores_["classifier"], clf.final_scores_["log_loss"]
    is_kept = cls is EMTransitionClassifier and not worthless  # another one is better by less than a standard error
    assert clf.final_ == ("own" if is_kept else names[np.argmin(losses)])
    assert len(set(names)) == len(names) == len(losses) == 23
    assert names[0] == "own"
    stages = ["em", *stages_of_the_choice(clf)]
    assert list(clf.histories_)[-len(stages) :] == stages
    assert clf.history_ == clf.net_.history
    assert not any(stage.startswith("clean_fold") or "fold_0_" in stage for stage in clf.histories_)


@both
@pytest.mark.parametrize("margin", [0.1, 0.9, 1.1, 1.4, 1.6])
def test_em_leaves_its_choice_by_margins(cls, margin, few_epochs, monkeypatch):
    """For what clean rows train by a standard error, for what goes on from the warm-up by 1.5; meta-transition by 0."""
    gain = np.tile([1.0, -1.0], 15)
    gain += margin * gain.std(ddof=1) / 30**0.5
    is_em = cls is EMTransitionClassifier
    for better, least in (("clean rows, 5 epochs", 1), ("continued warm-up" if is_em else "warm-up", 1.5)):
        scored({"own": np.full(30, 2.0), better: 2.0 - gain}, monkeypatch)
        assert fit(cls, *problem(120, 30)).final_ == (better if margin > least or not is_em else "own")


@pytest.mark.parametrize(("loss", "better"), [(1.5, "clean rows, 5 epochs"), (0.9, "continued warm-up")])
def test_em_compares_what_goes_on_from_the_warm_up_with_its_first_choice(loss, better, few_epochs, monkeypatch):
    losses = {"own": 2.0, "clean rows, 5 epochs": 1.0, "continued warm-up": loss}
    scored({name: np.full(30, value) for name, value in losses.items()}, monkeypatch)
    assert fit(EMTransitionClassifier, *problem(120, 30)).final_ == better


def scored(losses, monkeypatch):
    """Give candidates these losses of clean rows, and the others high ones."""

    def names(run, starts):
        return [str(candidate) for candidate in candidates_of(list(starts))], np.arange(30)

    monkeypatch.setattr(_final, "cross_validated_posteriors", names)
    monkeypatch.setattr(_final, "tempered_log_loss", lambda name, y, weights: losses.get(name, np.full(30, 3.0)))


@pytest.mark.parametrize(("weights", "best"), [(None, "own"), ([0.2, 1.8], "fine-tuned, 1 epoch")])
def test_rows_count_by_their_weights(weights, best, monkeypatch):
    """One network is better in the first class, by more; the other one in the second, which weighs more."""
    y = np.repeat([0, 1], 20)
    own, other = (np.where(y == 0, good, bad) for good, bad in ((0.9, 0.3), (0.25, 0.8)))
    posteriors = [np.where(np.eye(2)[y] == 1, p[:, None], 1 - p[:, None]) for p in (own, other, *[1 - own] * 13)]
    columns = {} if weights is None else {"sample_weight": np.array(weights)[y]}
    run = SimpleNamespace(clean=Rows(np.zeros((40, 1)), y, **columns))
    monkeypatch.setattr(_final, "cross_validated_posteriors", lambda run, starts: (posteriors, np.arange(40)))
    clf = EMTransitionClassifier()
    assert str(clf._choose_final(run, {OWN: None}, [Step((OWN, CLEAN_ROWS))])) == clf.final_ == best


@pytest.mark.parametrize("name", ["continued warm-up", "fine-tuned continued warm-up, 2 epochs"])
def test_em_may_go_on_from_the_warm_up(name, few_epochs, monkeypatch):
    """Then it is trained as the own network, but from other weights; and the own network is not wanted."""
    X, *_ = rows = problem(120, 30)
    choose_always(name, monkeypatch)
    clf, plain = (fit(EMTransitionClassifier, *rows, **p) for p in ({}, {"select_classifier": False}))
    assert clf.final_ == name
    np.testing.assert_array_equal(clf.transition_matrix_, plain.transition_matrix_)
    assert clf.history_ == clf.histories_["fine_tuned_continued_warm_up" if "," in name else "continued"]
    first = {stage: clf.histories_[stage][0, "train_loss"] for stage in ("em", "continued")}
    assert first["continued"] < first["em"], "it starts from trained weights"
    assert np.abs(clf.predict_proba(X) - plain.predict_proba(X)).max() > 1e-3


def test_em_has_no_warm_up_among_its_candidates_where_its_start_has_none(few_epochs):
    names = fit(EMTransitionClassifier, *problem(60), transition_init="diagonal").final_scores_["classifier"]
    assert len(names) == 7
    assert not any("warm-up" in name for name in names)


def choose_always(name, monkeypatch):
    """Posteriors that are right make this candidate the best."""

    def posteriors(run, starts):
        candidates = [str(candidate) for candidate in candidates_of(list(starts))]
        assert name in candidates
        right = np.eye(3)[run.clean.label]
        return [right if c == name else np.full_like(right, 1 / 3) for c in candidates], np.arange(len(right))

    monkeypatch.setattr(_final, "cross_validated_posteriors", posteriors)


@both
@pytest.mark.parametrize("name", ["own", "fine-tuned, 1 epoch", "fine-tuned, 5 epochs", "clean rows, 2 epochs"])
def test_the_net_is_that_of_the_choice(cls, name, few_epochs, monkeypatch):
    """The net is then trained as its name says."""
    X, _, meta, _ = rows = problem(120, 30)
    choose_always(name, monkeypatch)

    clf, plain = fit(cls, *rows), fit(cls, *rows, select_classifier=False)
    assert clf.final_ == name
    kind, epochs = name.split(",")[0], int(name.split()[-2]) if "," in name else 0
    assert not epochs or len(clf.history_) == epochs
    np.testing.assert_array_equal(clf.transition_matrix_, plain.transition_matrix_)
    if kind == "own":
        np.testing.assert_array_equal(clf.predict_proba(X), plain.predict_proba(X))
        return
    first = clf.history_[0, "train_loss"]
    if kind == "fine-tuned":
        start = plain.predict_proba(meta[0])[np.arange(30), meta[1]]
    else:
        start = CrossEntropyClassifier(**FAST | {"lr": 0.0, "max_epochs": 1}).fit(*meta)
        start = start.predict_proba(meta[0])[np.arange(30), meta[1]]
    assert first == pytest.approx(-np.log(start).mean(), rel=1e-4)  # one batch: the loss before its step


@both
def test_held_out_clean_rows_are_not_trained_on(cls, monkeypatch):
    """Each clean row is its own feature and all weights start at 0: of a row held out, a net knows nothing."""
    seen, whole = [], _final.cross_validated_posteriors
    monkeypatch.setattr(_final, "cross_validated_posteriors", lambda *given: seen.append(whole(*given)) or seen[-1])
    module = nn.Linear(60, 3, bias=False)
    nn.init.zeros_(module.weight)
    X, y = np.eye(60), np.arange(60) % 3
    clf = cls(module, transition_init="diagonal", **FAST).fit(X[:42], y[:42], meta=(X[42:], y[42:]))
    ((posteriors, rows),) = seen
    assert sorted(rows) == list(range(18))
    for proba in posteriors:
        np.testing.assert_allclose(proba, 1 / 3, rtol=1e-6)
    assert clf.predict_proba(X).std() > 1e-5


@pytest.mark.parametrize("n", [3, LEAST_CLEAN_ROWS - 1, LEAST_CLEAN_ROWS])
@both
def test_with_few_clean_rows_there_is_no_choice(cls, n, few_epochs):
    clf = fit(cls, *problem(60, n))
    assert hasattr(clf, "final_") == hasattr(clf, "final_scores_") == (n >= LEAST_CLEAN_ROWS)


@both
def test_no_choice_with_a_class_that_no_clean_row_has(cls, few_epochs):
    X, y, (X_meta, y_meta), _ = problem()
    some = y_meta != 2
    clf = fit(cls, X, y, (X_meta[some], y_meta[some]), None)
    assert not hasattr(clf, "final_")


@both
def test_the_order_of_clean_rows_changes_little(cls):
    X, y, (X_meta, y_meta), true = problem()
    order = np.random.default_rng(1).permutation(len(y_meta))
    accuracies = [fit(cls, X, y, (X_meta[at], y_meta[at]), true).score(X, true) for at in (slice(None), order)]
    assert abs(accuracies[0] - accuracies[1]) < 0.1


def test_without_folds_half_of_the_clean_rows_decide():
    clf = fit(EMTransitionClassifier, *problem(), cv=None)
    assert clf.final_ == clf.final_scores_["classifier"][clf.final_scores_["log_loss"].argmin()]
    assert list(clf.histories_)[:2] == ["fold_0", "em"]


# ---------------------------------------------------------------------------- saved fits
@cache
def not_interrupted(cls):
    """A fit, and a count of its epochs."""
    count = StopAfter(-1)
    whole = fit(cls, *problem(60, 12, worthless=True), callbacks=[count], max_epochs=2, batch_size=32)
    return whole, count


@both
@pytest.mark.parametrize("before_the_end", [1, 20])
def test_an_interrupted_choice_goes_on_to_the_same_bits(cls, before_the_end, tmp_path, few_epochs):
    X, y, meta, _ = problem(60, 12, worthless=True)
    whole, count = not_interrupted(cls)
    assert whole.final_ != "own"
    stopped = cls(**whole.get_params() | {"callbacks": [StopAfter(len(count.ended) - before_the_end)]})
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, y, meta=meta, state=tmp_path / "fit")
    resumed = cls(**whole.get_params() | {"callbacks": None}).fit(X, y, meta=meta, state=tmp_path / "fit")
    assert resumed.final_ == whole.final_
    np.testing.assert_array_equal(resumed.final_scores_["log_loss"], whole.final_scores_["log_loss"])
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))


@both
def test_a_choice_is_saved(cls, tmp_path):
    X, *_ = rows = problem(worthless=True)
    clf = fit(cls, *rows)
    assert clf.final_ != "own"
    clf.save(tmp_path / "clf")
    again = load(tmp_path / "clf")
    assert again.final_ == clf.final_
    for name, values in clf.final_scores_.items():
        np.testing.assert_array_equal(again.final_scores_[name], values)
        assert again.final_scores_[name].dtype == values.dtype
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(again.label_quality(X, rows[1]), clf.label_quality(X, rows[1]))
    assert again.history_ == clf.history_


# ---------------------------------------------------------------------------- what the user gives for the noisy rows
@both
@pytest.mark.parametrize(
    "params",
    [
        {"callbacks": [EarlyStopping("valid_noisy_loss")], "train_split": ValidSplit(5)},
        {"callbacks": [("early", EarlyStopping("valid_noisy_loss"))], "train_split": ValidSplit(5)}
        | {"callbacks__early__patience": 2},
        {"callbacks": [LRScheduler(torch.optim.lr_scheduler.OneCycleLR, max_lr=0.1, total_steps=4)]},
        {"callbacks": [EarlyStopping], "train_split": ValidSplit(5), "callbacks__EarlyStopping__monitor": "valid_acc"},
        {"train_split": ValidSplit(5)},
        {"iterator_train__drop_last": True, "batch_size": 16},
        {"module": nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)), "batch_size": 3},
        {"module": nn.Linear(2, 3).bfloat16()},
    ],
    ids=["stopping", "named", "schedule", "class", "split", "drop_last", "normalised", "bfloat16"],
)
def test_settings_for_many_rows_do_not_fail_on_few(cls, params, few_epochs):
    clf = fit(cls, *problem(60, 7), **params)
    assert np.isfinite(clf.final_scores_["log_loss"]).all()


@both
def test_a_checkpoint_is_of_the_method_s_own_training(cls, tmp_path, few_epochs):
    saved = Checkpoint(dirname=tmp_path, monitor="train_loss_best", f_history=None, f_optimizer=None, f_criterion=None)
    clf = fit(cls, *problem(60, worthless=True), callbacks=[saved])
    assert clf.final_ != "own"
    plain = fit(cls, *problem(60, worthless=True), callbacks=[saved], select_classifier=False)
    assert torch.load(tmp_path / "params.pt").keys() == plain.net_.module_.state_dict().keys()


@both
def test_trainings_on_clean_rows_that_only_judge_print_nothing(cls, capsys, few_epochs):
    fit(cls, *problem(60), verbose=2, select_classifier=False)
    plain = capsys.readouterr().out.count("train_loss")
    clf = fit(cls, *problem(60), verbose=2)
    own = 0 if clf.final_ == "own" else 1 + (clf.final_.startswith("fine-tuned continued"))
    judged = 2 if cls is EMTransitionClassifier else 0  # by trainings on the noisy rows, which take their time
    assert capsys.readouterr().out.count("train_loss") == plain + judged + own


@both
def test_a_flag_is_a_flag(cls):
    with refused("'select_classifier' parameter"):
        fit(cls, *problem(60), select_classifier="no")


def test_nets_of_the_choice_are_the_user_s(monkeypatch):
    """Frozen layers stay frozen, and inputs are augmented, also where clean rows alone train."""
    module, seen = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3)), []
    module[0].requires_grad_(False)
    step = NoisyLabelNet.train_step
    monkeypatch.setattr(
        NoisyLabelNet, "train_step", lambda net, *a, **kw: seen.append(net.labels) or step(net, *a, **kw)
    )
    clf = fit(
        EMTransitionClassifier,
        *problem(60, worthless=True),
        module=module,
        batch_transform=lambda x: seen.append("augmented") or x,
    )
    assert "clean" in seen
    assert seen.count("augmented") >= seen.count("clean")
    assert (clf.net_.module_[0].weight == module[0].weight).all()
