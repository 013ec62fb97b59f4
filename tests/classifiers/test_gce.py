import copy
from functools import partial

import numpy as np
import pytest
import torch
from estimators import small
from sklearn.datasets import load_digits
from skorch.callbacks import Callback
from skorch.helper import predefined_split
from torch import nn
from torch.utils.data import TensorDataset
from training import StopAfter, fit_noisy

from noisytransition import CrossEntropyClassifier, FitState, GCEClassifier
from noisytransition.classifiers import _gce
from noisytransition.losses import BalancedGeneralizedCrossEntropyLoss
from noisytransition.nets import Rows
from noisytransition.transition import flip_labels, symmetric_noise

fit = partial(fit_noisy, GCEClassifier)


@pytest.mark.parametrize("balanced", [True, False])
def test_q_of_zero_is_cross_entropy(blobs, balanced):
    X, y = blobs[:2]
    plain = small(CrossEntropyClassifier).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(fit(blobs, q=0.0, balanced=balanced).predict_proba(X), plain, atol=1e-5)
    assert np.abs(fit(blobs, q=0.7, balanced=balanced).predict_proba(X) - plain).max() > 1e-3


def published(X, y, module, q, lr, n_steps):
    """Train a module in whole batches by the formula of the paper."""
    module, label = copy.deepcopy(module), torch.as_tensor(y)[:, None]
    optimizer = torch.optim.SGD(module.parameters(), lr=lr)
    for _ in range(n_steps):
        optimizer.zero_grad()
        p = torch.softmax(module(torch.as_tensor(X)), 1).gather(1, label)
        ((1 - p**q) / q).mean().backward()
        optimizer.step()
    with torch.no_grad():
        return torch.softmax(module(torch.as_tensor(X)), 1).numpy()


def test_not_balanced_is_the_published_method(blobs):
    X, y = blobs[0].astype(np.float64), blobs[1]
    torch.manual_seed(0)
    module = nn.Linear(4, 3).double()
    params = {"module": module, "max_epochs": 20, "batch_size": -1, "lr": 0.5, "q": 0.7, "random_state": 0}
    expected = published(X, y, module, 0.7, 0.5, 20)
    got = [GCEClassifier(**params, balanced=balanced).fit(X, y).predict_proba(X) for balanced in (False, True)]
    np.testing.assert_allclose(got[0], expected, rtol=1e-10)
    assert np.abs(got[1] - expected).max() > 1e-3


def test_balanced_learns_classes_that_the_published_loss_does_not():
    X, y = load_digits(return_X_y=True)
    y_noisy = flip_labels(y, symmetric_noise(10, 0.2), random_state=0)
    params = {"lr": 0.1, "max_epochs": 15, "batch_size": 64, "random_state": 0}
    plain, balanced, as_published = (
        clf.fit(X / 16, y_noisy).score(X / 16, y)
        for clf in (CrossEntropyClassifier(**params), GCEClassifier(**params), GCEClassifier(**params, balanced=False))
    )
    assert balanced > plain - 0.05
    assert as_published < plain - 0.15


class Spy(Callback):
    """Keeps what the net thinks of all rows when an epoch begins, and which rows are left out of it."""

    def __init__(self, X):
        self.X = X

    def on_train_begin(self, net, **kwargs):
        self.epochs_ = []

    def on_epoch_begin(self, net, **kwargs):
        with torch.random.fork_rng():
            proba = net.predict_proba(self.X)
        self.epochs_.append((proba, []))

    def on_batch_end(self, net, batch=None, training=False, **kwargs):
        if training:
            self.epochs_[-1][1].append((batch.columns["index"], batch.label))


def weights_of(loss, kept):
    """Note the weights that the loss is given."""
    forward = loss.forward

    def noting(logits, y, weight=None):
        kept.append(weight)
        return forward(logits, y, weight)

    loss.forward = noting
    return loss


def spied(blobs, monkeypatch, **params):
    """For each epoch: posteriors at its beginning, and the weight of each row by its index."""
    X, weights = blobs[0].astype(np.float32), []
    whole = BalancedGeneralizedCrossEntropyLoss
    monkeypatch.setattr(
        _gce, "BalancedGeneralizedCrossEntropyLoss", lambda *a, **k: weights_of(whole(*a, **k), weights)
    )
    clf = fit(blobs, callbacks=[("spy", Spy(X))], max_epochs=7, lr=0.5, **params)
    epochs, given = [], iter(weights)
    for proba, batches in dict(clf.net_.callbacks_)["spy"].epochs_:
        seen = {}
        for index, label in batches:
            np.testing.assert_array_equal(label, blobs[1][index])
            seen |= dict(zip(index.tolist(), next(given).tolist(), strict=True))
        epochs.append((proba, seen))
    return epochs


@pytest.mark.parametrize(
    "workers", [{}, {"iterator_train__num_workers": 1, "iterator_train__persistent_workers": True}], ids=["", "workers"]
)
def test_a_row_stays_left_out_under_shuffling_until_the_next_look(blobs, monkeypatch, workers):
    y = blobs[1]
    epochs = spied(blobs, monkeypatch, truncation=0.5, truncation_start=2, truncation_every=3, **workers)
    for epoch, (_, seen) in enumerate(epochs):
        assert sorted(seen) == list(range(len(y)))
        look = None if epoch < 2 else epochs[2 if epoch < 5 else 5][0]
        for n, weight in seen.items():
            assert weight == (look is None or look[n, y[n]] > 0.5)
    out = [{n for n, weight in seen.items() if not weight} for _, seen in epochs]
    assert out[2] == out[4] != out[5]
    assert out[2] - out[5]  # rows that came back


def test_the_default_start_is_a_third_of_the_epochs(blobs, monkeypatch):
    epochs = spied(blobs, monkeypatch, truncation=0.5)
    assert [all(seen.values()) for _, seen in epochs] == [True] * 2 + [False] * 5


def test_all_rows_of_a_validation_set_count(blobs):
    X, y = blobs[0].astype(np.float32), blobs[1]
    split = predefined_split(Rows(X[:100], y[:100], weight=np.ones(100)))
    clf = fit(blobs, truncation=0.5, truncation_start=1, train_split=split, max_epochs=4)
    p = clf.predict_proba(X[:100])[np.arange(100), y[:100]]
    assert (p < 0.5).any()  # rows that a training would leave out
    assert clf.history_[-1, "valid_noisy_loss"] == pytest.approx(((1 - p**0.7) / 0.7).mean(), rel=1e-4)


def test_the_user_s_labels_stay_as_they_are(blobs):
    X, y = blobs[:2]
    before = y.copy()
    fit(blobs, truncation=0.5, truncation_start=0)
    np.testing.assert_array_equal(y, before)
    data = TensorDataset(torch.tensor(X, dtype=torch.float32))
    by_dataset = small(GCEClassifier, truncation=0.5, truncation_start=1).fit(data, y)
    np.testing.assert_allclose(
        by_dataset.predict_proba(X), fit(blobs, truncation=0.5, truncation_start=1).predict_proba(X), atol=1e-5
    )


@pytest.mark.parametrize("own", [{}, {"truncation": 0.5, "truncation_start": 1}], ids=["means", "rows"])
def test_an_interrupted_fit_remembers_running_means_and_which_rows_are_left_out(blobs, tmp_path, own):
    X, y = blobs[:2]
    params = {"max_epochs": 5} | own
    path = tmp_path / "fit.pt"
    with pytest.raises(KeyboardInterrupt):
        small(GCEClassifier, callbacks=[StopAfter(3)], **params).fit(X, y, state=path)
    resumed = small(GCEClassifier, **params).fit(X, y, state=FitState(path))
    np.testing.assert_array_equal(resumed.predict_proba(X), fit(blobs, **params).predict_proba(X))


def test_leaving_out_all_rows_is_warned_of(blobs):
    with pytest.warns(UserWarning, match="leaves no row to train on"):
        fit(blobs, truncation=0.999, truncation_start=0)
