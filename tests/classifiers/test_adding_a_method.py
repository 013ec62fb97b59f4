"""The methods that docs/adding_a_method.rst builds: what each does, and that each goes on after an interruption."""

import ast

import numpy as np
import page_methods
import pytest
import sklearn
import torch
from estimators import small
from page_methods import CoTeachingClassifier, CoTeachingNet, GroupClassifier
from sklearn.model_selection import GridSearchCV
from torch import nn
from torch.nn import functional as F
from training import StopAfter

from noisytransition import CrossEntropyClassifier
from noisytransition.nets import MLP, Batch
from noisytransition.transition import flip_labels, pair_noise, symmetric_noise, transition_error

NAMES = {"Symmetric": 2, "CoTeaching": 2, "Group": 3}


@pytest.mark.parametrize(("name", "n_classes"), NAMES.items())
def test_a_method_takes_forty_lines(name, n_classes):
    bodies = [source for source in page_methods.definitions() if isinstance(ast.parse(source).body[0], ast.ClassDef)]
    own = [body for body in bodies if body.startswith(f"class {name}")]
    assert len(own) == n_classes
    assert sum(bool(line.strip()) for body in own for line in body.splitlines()) <= 40


def whole_and_resumed(make, *data, path, **given):
    """A classifier that was fitted at once, and one that was killed and went on."""
    with pytest.raises(KeyboardInterrupt):
        make().set_params(callbacks=[StopAfter(2)]).fit(*data, state=path, **given)
    return make().fit(*data, **given), make().fit(*data, state=path, **given)


# ---------------------------------------------------------------------------- co-teaching
def net_of(module, **params):
    return CoTeachingNet(module, **({"forget_rate": 0.5, "n_gradual": 2} | params)).initialize()


@pytest.mark.parametrize("module", [MLP(4, 3), MLP], ids=["instance", "class"])
def test_the_peer_starts_from_other_weights(module):
    net = net_of(module, **({"module__n_in": 4, "module__n_out": 3} if module is MLP else {}))
    for one, other in zip(net.module_.parameters(), net.peer_.parameters(), strict=True):
        assert one.shape == other.shape
        assert not torch.equal(one, other)


def test_each_network_learns_from_the_rows_of_smallest_loss_of_the_other():
    torch.manual_seed(0)
    net = net_of(nn.Linear(2, 3))
    x, y = torch.randn(8, 2), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    net.history.new_epoch()
    net.train_step_single(Batch(x, {"label": y}))
    for learner, teacher in ((net.module_, net.peer_), (net.peer_, net.module_)):
        losses = [F.cross_entropy(teacher(x[i : i + 1]), y[i : i + 1]).item() for i in range(8)]
        picked = sorted(range(8), key=lambda i: losses[i])[:6]  # a quarter is left out in the first of two epochs
        expected = torch.autograd.grad(F.cross_entropy(learner(x[picked]), y[picked]), list(learner.parameters()))
        for parameter, gradient in zip(learner.parameters(), expected, strict=True):
            torch.testing.assert_close(parameter.grad, gradient)


def test_the_share_that_is_picked_falls_to_one_less_the_forget_rate():
    net, picked = net_of(nn.Linear(2, 3), forget_rate=0.4, n_gradual=4), []
    for _ in range(6):
        net.history.new_epoch()
        picked.append(len(net.small_losses(torch.arange(100.0))))
    assert picked == [90, 80, 70, 60, 60, 60]


def test_without_forgetting_it_is_cross_entropy(blobs):
    X, y, *_ = blobs
    module, own = nn.Linear(4, 3), {"batch_size": -1, "max_epochs": 5}
    plain = CrossEntropyClassifier(module, random_state=0, **own).fit(X, y)
    ours = CoTeachingClassifier(module, forget_rate=0.0, random_state=0, **own).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), plain.predict_proba(X), rtol=1e-5)


def test_both_networks_go_on(blobs, tmp_path):
    X, y, *_ = blobs
    whole, resumed = whole_and_resumed(
        lambda: small(CoTeachingClassifier, max_epochs=5, n_gradual=4, optimizer=torch.optim.Adam, lr=0.01),
        X,
        y,
        path=tmp_path / "fit.pt",
    )
    assert whole.history_[:, "train_loss"] == resumed.history_[:, "train_loss"]
    for part in ("module_", "peer_"):
        states = (getattr(clf.net_, part).state_dict().values() for clf in (whole, resumed))
        assert all(torch.equal(one, other) for one, other in zip(*states, strict=True))


# ---------------------------------------------------------------------------- a T for each group
MATRICES = {"Ann": pair_noise(3, 0.4), "Kim": symmetric_noise(3, 0.1)}


@pytest.fixture
def labelled():
    """Rows of three Gaussian classes, labelled by two annotators with a T of each, and clean rows."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=460)
    X = rng.normal(size=(460, 4)) + 5 * np.eye(3, 4)[y]
    annotator = rng.choice(["Ann", "Kim"], size=400)
    y_noisy = y[:400].copy()
    for name, T in MATRICES.items():
        y_noisy[annotator == name] = flip_labels(y[:400][annotator == name], T, random_state=0)
    return X[:400], y_noisy, annotator, (X[400:], y[400:])


def test_the_T_of_a_group_is_nearer_to_the_truth_than_the_common_one(labelled):
    X, y, annotator, meta = labelled
    clf = GroupClassifier(random_state=0).fit(X, y, groups=annotator, meta=meta)
    assert clf.groups_.tolist() == ["Ann", "Kim"]
    assert clf.transition_matrices_.shape == (2, 3, 3)
    for T, of_group in zip(MATRICES.values(), clf.transition_matrices_, strict=True):
        assert transition_error(T, of_group) < 0.7 * transition_error(T, clf.transition_matrix_)


def test_an_epoch_moves_T_to_the_shrunken_posterior_counts(labelled):
    """With a network that stays as it is: row by row."""
    X, y, annotator, _ = labelled
    start, strength = np.full((3, 3), 0.1) + 0.7 * np.eye(3), 7.0
    params = {"max_epochs": 1, "lr": 0.0, "transition_init": start, "prior_strength": strength, "random_state": 0}
    clf = GroupClassifier(**params).fit(X, y, groups=annotator)
    counts = np.zeros((2, 3, 3))
    for proba, label, name in zip(clf.predict_proba(X), y, annotator, strict=True):
        posterior = proba * start[:, label]
        counts[["Ann", "Kim"].index(name), :, label] += posterior / posterior.sum()
    common = counts.sum(0) + strength * start
    common /= common.sum(1, keepdims=True)
    of_groups = counts + strength * common
    np.testing.assert_allclose(clf.transition_matrix_, common, rtol=1e-5)
    np.testing.assert_allclose(clf.transition_matrices_, of_groups / of_groups.sum(2, keepdims=True), rtol=1e-5)


def test_many_pseudo_rows_keep_every_T_at_the_start(labelled):
    X, y, annotator, _ = labelled
    start = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    clf = small(GroupClassifier, transition_init=start, prior_strength=1e9).fit(X, y, groups=annotator)
    for T in (clf.transition_matrix_, *clf.transition_matrices_):
        np.testing.assert_allclose(T, start, rtol=1e-5)


def test_a_group_without_noisy_rows_has_the_common_T(labelled):
    X, y, annotator, _ = labelled
    clf = small(GroupClassifier).fit(X, y, groups=annotator, trusted=annotator == "Ann")
    np.testing.assert_allclose(clf.transition_matrices_[0], clf.transition_matrix_, rtol=1e-5)
    assert not np.allclose(clf.transition_matrices_[1], clf.transition_matrix_, rtol=1e-2)


def test_without_groups_there_is_one(blobs):
    X, y, *_ = blobs
    clf, one_name = small(GroupClassifier).fit(X, y), small(GroupClassifier).fit(X, y, groups=["all"] * len(X))
    assert (clf.groups_.tolist(), one_name.groups_.tolist()) == ([0], ["all"])
    np.testing.assert_array_equal(clf.transition_matrices_, one_name.transition_matrices_)
    np.testing.assert_array_equal(clf.predict_proba(X), one_name.predict_proba(X))


@pytest.mark.parametrize("cls", [CrossEntropyClassifier, CoTeachingClassifier])
def test_groups_are_refused_where_there_is_one_T(cls, blobs):
    with pytest.raises(ValueError, match="has no use for groups"):
        small(cls).fit(*blobs[:2], groups=np.zeros(300))


def test_one_group_per_row_is_asked_for(blobs):
    with pytest.raises(ValueError, match="groups has 2 entries for 300 rows"):
        small(GroupClassifier).fit(*blobs[:2], groups=[0, 1])


def test_the_T_of_every_group_goes_on(labelled, tmp_path):
    X, y, annotator, _ = labelled
    own = {"max_epochs": 5, "transition_init": "diagonal"}
    whole, resumed = whole_and_resumed(
        lambda: small(GroupClassifier, **own), X, y, path=tmp_path / "fit.pt", groups=annotator
    )
    assert whole.history_[:, "train_loss"] == resumed.history_[:, "train_loss"]
    for name in ("transition_matrix_", "transition_matrices_", "transition_history_"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(resumed, name))


def test_other_groups_are_another_fit(labelled, tmp_path):
    X, y, annotator, _ = labelled
    clf = small(GroupClassifier, transition_init="diagonal")
    clf.fit(X, y, groups=annotator, state=tmp_path / "fit.pt")
    with pytest.raises(ValueError, match="X, y"):
        clf.fit(X, y, groups=annotator[::-1], state=tmp_path / "fit.pt")


def test_a_search_hands_groups_over_on_request(labelled):
    X, y, annotator, meta = labelled
    with sklearn.config_context(enable_metadata_routing=True):
        clf = small(GroupClassifier).set_fit_request(groups=True)
        search = GridSearchCV(clf, {"prior_strength": [5.0]}, cv=2, error_score="raise")
        search.fit(X, y, groups=annotator, meta=meta)
    assert search.best_estimator_.groups_.tolist() == ["Ann", "Kim"]
    assert search.best_estimator_.transition_matrices_.shape == (2, 3, 3)
