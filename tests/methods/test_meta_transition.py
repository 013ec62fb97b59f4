import numpy as np
import pytest
import torch
from estimators import small
from skorch.callbacks import Callback
from skorch.dataset import ValidSplit
from torch import nn
from training import floored, refused

from noisytransition import (
    CrossEntropyClassifier,
    MetaTransitionClassifier,
    count_transition_matrix,
    gold_transition_matrix,
    transition_error,
)
from noisytransition.transition import pair_noise, symmetric_noise
from noisytransition.updates import MetaGradient


def fit(blobs, y_meta_noisy=None, **params):
    X, y, X_meta, y_meta, *_ = blobs
    clf = small(MetaTransitionClassifier, **params)
    return clf.fit(X, y, meta=(X_meta, y_meta), y_meta_noisy=y_meta_noisy)


def started(blobs, **params):
    return fit(blobs, transition_lr=0.0, **params).transition_init_


def close(T, expected):
    np.testing.assert_allclose(T, floored(expected), rtol=1e-4, atol=1e-6)


# ---------------------------------------------------------------------------- starts of T
def test_gold_is_the_mean_posterior_of_the_clean_rows_under_plain_cross_entropy(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    warm_up = small(CrossEntropyClassifier, max_epochs=5).fit(X, y)
    close(
        started(blobs, warm_up_epochs=5, validation_fraction=0),
        gold_transition_matrix(warm_up.predict_proba(X_meta), y_meta),
    )


def test_the_warm_up_is_as_long_as_the_fit_unless_said_otherwise(blobs):
    assert len(fit(blobs, warm_up_epochs=None, max_epochs=4).histories_["warm_up"]) == 4


def test_starts_without_a_warm_up(blobs):
    given = [[0.5, 0.25, 0.25], [0, 1, 0], [0.1, 0, 0.9]]
    y_meta = blobs[3]
    y_meta_noisy = (y_meta + (np.arange(60) % 3 == 0)) % 3
    counted = count_transition_matrix(y_meta, y_meta_noisy, 3, smoothing=1 / 3)
    for init, expected in (("diagonal", symmetric_noise(3, 0.2)), (given, given), ("count", counted)):
        clf = fit(blobs, transition_init=init, transition_lr=0.0, y_meta_noisy=y_meta_noisy, from_warm_up=False)
        close(clf.transition_init_, expected)
        assert list(clf.histories_) == ["meta_transition"]


class Stages(Callback):
    """Parameters at the beginning and at the end of each stage, and the rows it held out."""

    def __init__(self):
        self.begin, self.end, self.held_out = [], [], []  # the copies of the stages share them

    def weights(self, net):
        return torch.nn.utils.parameters_to_vector(net.module_.parameters()).detach().clone()

    def on_train_begin(self, net, **kwargs):
        self.begin.append(self.weights(net))
        self.held_out.append(None)

    def on_epoch_end(self, net, dataset_valid=None, **kwargs):
        self.held_out[-1] = None if dataset_valid is None else set(dataset_valid.indices)

    def on_train_end(self, net, **kwargs):
        self.end.append(self.weights(net))


def test_it_is_two_trainings_from_the_same_weights_without_the_rows_that_select_T(blobs):
    stages = Stages()
    clf = fit(blobs, callbacks=[stages])
    assert list(clf.histories_) == ["warm_up", "meta_transition"]
    assert torch.equal(stages.end[0], stages.begin[1])
    assert not torch.equal(stages.begin[1], stages.end[1])
    assert len(stages.held_out[0]) == 30
    assert stages.held_out[0] == stages.held_out[1]


def test_as_published_a_new_network_is_trained_on_all_rows(blobs):
    stages = Stages()
    X, y, X_meta, y_meta, *_ = blobs
    MetaTransitionClassifier.as_published(max_epochs=2, callbacks=[stages]).fit(X, y, meta=(X_meta, y_meta))
    assert torch.equal(stages.begin[0], stages.begin[1])
    assert stages.held_out == [None, None]


# ---------------------------------------------------------------------------- what is learned
def test_permuting_the_classes_permutes_T(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    place = np.array([2, 0, 1])  # class k sorts at place[k]
    T = np.array([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])

    def linear(order):
        module = nn.Linear(4, 3)
        nn.init.zeros_(module.bias)
        nn.init.zeros_(module.weight)
        return small(MetaTransitionClassifier, module=module, transition_init=order, transition_lr=20.0)

    plain = linear(T).fit(X, y, meta=(X_meta, y_meta))
    T_moved = np.empty_like(T)
    T_moved[np.ix_(place, place)] = T
    moved = linear(T_moved).fit(X, place[y], meta=(X_meta, place[y_meta]))
    np.testing.assert_allclose(moved.transition_matrix_[np.ix_(place, place)], plain.transition_matrix_, rtol=1e-4)


def test_a_wrong_start_is_mended_where_classes_overlap():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=4000)
    X = rng.normal(size=(4000, 2)) + 1.5 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    T = np.array([[0.6, 0.4, 0.0], [0.0, 0.6, 0.4], [0.4, 0.0, 0.6]])
    y_noisy = np.array([rng.choice(3, p=T[i]) for i in y])
    sgd = {"optimizer": "sgd", "lr": 0.1}
    linear = {"module": nn.Linear, "module__in_features": 2, "module__out_features": 3, "random_state": 0}
    clf = MetaTransitionClassifier(**linear, transition_init="diagonal", from_warm_up=False, max_epochs=8, **sgd)
    clf.fit(X[300:], y_noisy[300:], meta=(X[:300], y[:300]))
    start, end = (transition_error(T, a) for a in (clf.transition_init_, clf.transition_matrix_))
    assert end < 0.7 * start
    assert end < transition_error(T, np.eye(3))


class Watch(Callback):
    """T of the training after each epoch, and posteriors and labels of the rows held out."""

    def __init__(self):
        self.seen = []

    def on_epoch_end(self, net, dataset_train=None, dataset_valid=None, **kwargs):
        if not isinstance(net.update, MetaGradient):
            return
        held_out = (None, None)
        if dataset_valid is not None:
            held_out = net.predict_proba(dataset_valid), dataset_valid.dataset.label[dataset_valid.indices]
        self.seen.append((net.criterion_.transition_matrix, *held_out))

    def __copy__(self):  # every stage would have its own
        return self


@pytest.mark.parametrize("max_epochs", [1, 4, 12])
@pytest.mark.parametrize(
    ("T", "moves_in"),
    [
        (np.full((3, 3), 1 / 3), {1, 4, 12}),
        ([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]], set()),
        (pair_noise(3, 0.3), set()),
    ],
)
def test_T_leaves_its_start_only_where_held_out_labels_speak_for_it(blobs, T, moves_in, max_epochs):
    """The rule once more, by a search on a grid."""
    watch = Watch()
    own = {"transition_init": T, "from_warm_up": False, "callbacks": [watch]}
    clf = fit(blobs, transition_lr=30.0, max_epochs=max_epochs, **own)
    start, kept, best = clf.transition_init_, clf.transition_init_, -np.inf
    for trained, proba, y in watch.seen:
        assert len(y) == 30  # a tenth of 300 rows
        candidates = [start + share * (trained - start) for share in (0.25, 0.5, 0.75, 1)]
        fits = [likeliest(proba, y, candidate) for candidate in candidates]
        which = int(np.argmax([f.sum() for f in fits]))
        if fits[which].sum() > best:
            best, gain = fits[which].sum(), fits[which] - likeliest(proba, y, start)
            kept = candidates[which] if gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(30) else start
    assert len(watch.seen) == max_epochs
    assert (kept is not start) == (max_epochs in moves_in)
    np.testing.assert_allclose(clf.transition_matrix_, kept, atol=1e-5)


def likeliest(proba, y, T):
    """Log-likelihood of each label, at the best of many temperatures."""
    heated = (proba ** (1 / t) for t in np.exp(np.linspace(-3, 3, 601)))
    found = [np.log((p / p.sum(1, keepdims=True) * T.T[y]).sum(1)) for p in heated]
    return max(found, key=np.sum)


def test_there_is_one_T_at_a_time(blobs):
    """During training, history and callbacks see the T of the training; afterwards T is the selected one."""
    watch = Watch()
    clf = fit(blobs, transition_lr=30.0, max_epochs=6, callbacks=[watch])
    np.testing.assert_array_equal(clf.transition_history_[1:], [trained for trained, *_ in watch.seen])
    for row, (trained, proba, y) in zip(clf.history_, watch.seen, strict=True):
        noisy = proba.astype(np.float64) @ trained
        assert row["valid_noisy_acc"] == pytest.approx(np.mean(noisy.argmax(axis=1) == y))
        assert row["valid_noisy_loss"] == pytest.approx(-np.log(noisy[np.arange(len(y)), y]).mean(), rel=1e-4)
    np.testing.assert_array_equal(clf.transition_matrix_, clf.net_.criterion_.transition_matrix)
    assert not np.array_equal(clf.transition_matrix_, clf.transition_history_[-1])


def test_the_selection_leaves_the_training_alone(blobs):
    """The selected T does not affect the network: it equals that of a training that keeps the last T."""
    X, y = blobs[:2]
    shared = {"transition_lr": 30.0, "max_epochs": 6}
    split = ValidSplit(0.1, random_state=7)
    selected = fit(blobs, train_split=split, **shared)
    last = Paper(**small(MetaTransitionClassifier, train_split=split, **shared).get_params()).fit(X, y, meta=blobs[2:4])
    np.testing.assert_array_equal(selected.predict_proba(X), last.predict_proba(X))
    np.testing.assert_array_equal(selected.transition_history_, last.transition_history_)
    np.testing.assert_array_equal(last.transition_matrix_, last.transition_history_[-1])
    assert not np.array_equal(selected.transition_matrix_, last.transition_matrix_)


class Paper(MetaTransitionClassifier):
    """The last T is kept, whatever is held out."""

    def _fit(self, run):
        train = run.train
        run.train = lambda *args, select=None, **params: train(*args, **params)
        super()._fit(run)


def test_without_held_out_rows_the_last_T_is_kept(blobs):
    clf = fit(blobs, transition_lr=30.0, max_epochs=6, validation_fraction=0)
    np.testing.assert_array_equal(clf.transition_matrix_, clf.transition_history_[-1])


def test_a_split_of_the_user_s_selects_in_place_of_the_fraction(blobs):
    watch = Watch()
    clf = fit(blobs, transition_lr=30.0, max_epochs=6, train_split=ValidSplit(3), callbacks=[watch])
    assert {len(y) for *_, y in watch.seen} == {100}
    assert not np.array_equal(clf.transition_matrix_, clf.transition_history_[-1])


# ---------------------------------------------------------------------------- predictions
def test_too_few_rows_to_hold_any_out_are_named():
    rows, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 0])
    clf = MetaTransitionClassifier(max_epochs=1, validation_fraction=0.9)
    with refused("validation_fraction"):
        clf.fit(rows, y, meta=(rows, y))


class Words(nn.Module):
    def __init__(self, n_words):
        super().__init__()
        self.embedding, self.body = nn.Embedding(n_words, 8), nn.LSTM(8, 8, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(self.embedding(x))[0][:, -1])


class Convolution(nn.Sequential):
    def __init__(self):
        super().__init__(nn.BatchNorm2d(2), nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))


LABELS = np.random.default_rng(0).integers(3, size=90)
IMAGES = (np.random.default_rng(1).integers(0, 50, (90, 2, 6, 6)) + 60 * LABELS[:, None, None, None]).astype(np.uint8)
TOKENS = np.random.default_rng(2).integers(0, 5, size=(90, 4)) + 5 * LABELS[:, None]


@pytest.mark.parametrize(
    ("X", "params"),
    [
        (IMAGES, {"module": Convolution, "lr": 0.01}),
        (IMAGES / 255, {"module": Convolution, "lr": 0.01}),
        (IMAGES / 255, {"lr": 0.05}),
        (TOKENS, {"module": Words, "module__n_words": 15, "lr": 0.1}),
    ],
    ids=["uint8", "float", "flattened", "tokens"],
)
def test_images_and_sequences(X, params):
    clf = small(MetaTransitionClassifier, max_epochs=10, warm_up_epochs=10, batch_size=16, **params)
    clf.fit(X, LABELS, meta=(X[:30], LABELS[:30]))
    assert clf.score(X, LABELS) > 0.8


def test_frozen_layers_stay(blobs):
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    module[0].requires_grad_(False)
    clf = fit(blobs, module=module)
    assert (clf.net_.module_[0].weight == module[0].weight).all()
    assert not (clf.net_.module_[2].weight == module[2].weight).all()


def test_many_classes_have_the_start_and_the_end_in_the_history(blobs, monkeypatch):
    whole = fit(blobs)
    monkeypatch.setattr("noisytransition.nets._update.MOST_CLASSES_IN_HISTORY", 2)
    clf = fit(blobs)
    assert clf.transition_history_.shape == (2, 3, 3)
    np.testing.assert_array_equal(clf.transition_matrix_, whole.transition_matrix_)
    np.testing.assert_array_equal(clf.transition_history_[-1], clf.transition_matrix_)
    np.testing.assert_allclose(clf.transition_init_, whole.transition_init_, rtol=1e-6)
