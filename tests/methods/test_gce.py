import copy
from functools import partial

import numpy as np
import pytest
import torch
from estimators import small
from skorch.callbacks import Callback
from skorch.helper import predefined_split
from torch import nn
from torch.utils.data import TensorDataset
from training import StopAfter, fit_noisy

from noisytransition import CrossEntropyClassifier, GCEClassifier
from noisytransition.losses import GeneralizedCrossEntropyLoss
from noisytransition.methods import _gce
from noisytransition.nets import Rows

fit = partial(fit_noisy, GCEClassifier)


def test_q_of_zero_is_cross_entropy(blobs):
    X, y = blobs[:2]
    plain = small(CrossEntropyClassifier).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(fit(blobs, q=0.0).predict_proba(X), plain, atol=1e-5)
    assert np.abs(fit(blobs, q=0.7).predict_proba(X) - plain).max() > 1e-3


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


def test_it_is_the_formula_of_the_paper(blobs):
    X, y = blobs[0].astype(np.float64), blobs[1]
    torch.manual_seed(0)
    module = nn.Linear(4, 3).double()
    params = {"module": module, "max_epochs": 20, "batch_size": -1, "lr": 0.5, "optimizer": torch.optim.SGD}
    got = GCEClassifier(**params, q=0.7, random_state=0).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(got, published(X, y, module, 0.7, 0.5, 20), rtol=1e-10)


class Spy(Callback):
    """Callback that keeps the posteriors of all samples and the pruned samples at the beginning of each epoch."""

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
    whole = GeneralizedCrossEntropyLoss
    monkeypatch.setattr(_gce, "GeneralizedCrossEntropyLoss", lambda *a, **k: weights_of(whole(*a, **k), weights))
    clf = fit(blobs, callbacks=[("spy", Spy(X))], max_epochs=14, lr=0.5, **params)
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
    epochs = spied(blobs, monkeypatch, truncation=0.5, truncation_start=2, **workers)
    for epoch, (_, seen) in enumerate(epochs):
        assert sorted(seen) == list(range(len(y)))
        look = None if epoch < 2 else epochs[2 if epoch < 12 else 12][0]
        for n, weight in seen.items():
            assert weight == (look is None or look[n, y[n]] > 0.5)
    out = [{n for n, weight in seen.items() if not weight} for _, seen in epochs]
    assert out[2] == out[11] != out[12]
    assert out[2] - out[12]  # rows that came back


def test_the_default_start_is_a_third_of_the_epochs(blobs, monkeypatch):
    epochs = spied(blobs, monkeypatch, truncation=0.5)
    assert [all(seen.values()) for _, seen in epochs] == [True] * 4 + [False] * 10


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
    own = {"truncation": 0.5, "truncation_start": 1, "module": nn.Linear(4, 3)}
    by_dataset = small(GCEClassifier, **own).fit(data, y)
    np.testing.assert_allclose(by_dataset.predict_proba(X), fit(blobs, **own).predict_proba(X), atol=1e-5)


def test_an_interrupted_fit_remembers_which_rows_are_left_out(blobs, tmp_path):
    X, y = blobs[:2]
    params = {"max_epochs": 5, "truncation": 0.5, "truncation_start": 1}
    path = tmp_path / "fit.pt"
    with pytest.raises(KeyboardInterrupt):
        small(GCEClassifier, callbacks=[StopAfter(3)], **params).fit(X, y, state=path)
    resumed = small(GCEClassifier, **params).fit(X, y, state=path)
    np.testing.assert_array_equal(resumed.predict_proba(X), fit(blobs, **params).predict_proba(X))


def test_leaving_out_all_rows_is_warned_of(blobs):
    with pytest.warns(UserWarning, match="leaves no sample to train on"):
        fit(blobs, truncation=0.999, truncation_start=0)
