from functools import partial

import numpy as np
import pytest
import torch
from estimators import small
from skorch.helper import predefined_split
from torch import nn
from torch.utils.data import TensorDataset
from training import On, StopAfter, fit_noisy

from noisytransition import GCEClassifier
from noisytransition.losses import GeneralizedCrossEntropyLoss
from noisytransition.nets import Rows

fit = partial(fit_noisy, GCEClassifier)
HALF = {"truncation": 0.5, "truncation_start": 1}


def spied(blobs, monkeypatch, **params):
    """For each epoch: posteriors at its beginning, and the weight of each sample by its index."""
    seen, weights, forward = [], [], GeneralizedCrossEntropyLoss.forward

    def epoch_begin(net, **kwargs):
        with torch.random.fork_rng():
            seen.append((net.predict_proba(blobs[0].astype(np.float32)), []))

    def batch_end(net, batch=None, training=False, **kwargs):
        if training:
            seen[-1][1].append((batch.columns["index"], batch.label))

    def noting(self, logits, y, weight=None):
        weights.append(weight)
        return forward(self, logits, y, weight)

    monkeypatch.setattr(GeneralizedCrossEntropyLoss, "forward", noting)
    note = On(epoch_begin=epoch_begin, batch_end=batch_end)
    fit(blobs, callbacks=[note], max_epochs=14, lr=0.5, truncation=0.5, **params)
    given, epochs = iter(weights), []
    for proba, batches in seen:
        of_samples = {}
        for index, label in batches:
            np.testing.assert_array_equal(label, blobs[1][index])
            of_samples |= dict(zip(index.tolist(), next(given).tolist(), strict=True))
        epochs.append((proba, of_samples))
    return epochs


@pytest.mark.parametrize(
    "workers", [{}, {"iterator_train__num_workers": 1, "iterator_train__persistent_workers": True}], ids=["", "workers"]
)
def test_a_sample_stays_left_out_under_shuffling_until_the_next_look(blobs, monkeypatch, workers):
    y = blobs[1]
    epochs = spied(blobs, monkeypatch, truncation_start=2, **workers)
    for epoch, (_, seen) in enumerate(epochs):
        assert sorted(seen) == list(range(len(y)))
        look = None if epoch < 2 else epochs[2 if epoch < 12 else 12][0]
        for n, weight in seen.items():
            assert weight == (look is None or look[n, y[n]] > 0.5)
    out = [{n for n, weight in seen.items() if not weight} for _, seen in epochs]
    assert out[2] == out[11] != out[12]
    assert out[2] - out[12]  # samples that came back


def test_the_default_start_is_a_third_of_the_epochs(blobs, monkeypatch):
    assert [all(seen.values()) for _, seen in spied(blobs, monkeypatch)] == [True] * 4 + [False] * 10


def test_all_samples_of_a_validation_set_count(blobs):
    X, y = blobs[0].astype(np.float32), blobs[1]
    split = predefined_split(Rows(X[:100], y[:100], weight=np.ones(100)))
    clf = fit(blobs, **HALF, q=0.4, train_split=split, max_epochs=4)
    p = clf.predict_proba(X[:100])[np.arange(100), y[:100]]
    assert (p < 0.5).any()  # samples that a training would leave out
    assert clf.history_[-1, "valid_noisy_loss"] == pytest.approx(((1 - p**0.4) / 0.4).mean(), rel=1e-4)


def test_an_interrupted_fit_remembers_which_samples_are_left_out_and_labels_stay_as_they_are(blobs, tmp_path):
    X, y = blobs[:2]
    before, params = y.copy(), HALF | {"max_epochs": 5, "module": nn.Linear(4, 3)}
    with pytest.raises(KeyboardInterrupt):
        small(GCEClassifier, callbacks=[StopAfter(3)], **params).fit(X, y, state=tmp_path / "fit")
    resumed, whole = small(GCEClassifier, **params).fit(X, y, state=tmp_path / "fit"), fit(blobs, **params)
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    of_dataset = small(GCEClassifier, **params).fit(TensorDataset(torch.tensor(X, dtype=torch.float32)), y)
    np.testing.assert_allclose(of_dataset.predict_proba(X), whole.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(y, before)


def test_leaving_out_all_samples_is_warned_of(blobs):
    with pytest.warns(UserWarning, match="leaves no sample to train on"):
        fit(blobs, truncation=0.999, truncation_start=0)
