"""Batches of one row are refused before a module with batch normalisation trains on them."""

import numpy as np
import pytest
import torch
from estimators import CLASSIFIERS, small
from skorch.callbacks import Callback
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from training import fit_noisy, refused

from noisytransition import (
    CrossEntropyClassifier,
    FineTuningClassifier,
    MetaTransitionClassifier,
    MWNetClassifier,
)
from noisytransition.nets import BatchLoader, Rows, has_batch_of_one

ON_CLEAN_BATCHES = [FineTuningClassifier, MWNetClassifier, MetaTransitionClassifier]
MESSAGE = "normalises batches and cannot train on one row, but of .* one batch has a single row.*drop_last"


def norm():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))


class Steps(Callback):
    """Fails at the first step."""

    def on_batch_begin(self, net, training=False, **kwargs):
        pytest.fail("a net was trained")


@pytest.mark.parametrize("cls", ON_CLEAN_BATCHES)
@pytest.mark.parametrize("params", [{}, {"transition_init": "diagonal"}])
def test_one_clean_row(cls, params, blobs):
    X, y, X_meta, y_meta, *_ = blobs
    if params and cls is not MetaTransitionClassifier:
        pytest.skip("it has no T")
    clf = small(cls, module=norm(), **params)
    with refused("of 1 clean row one batch"):
        clf.fit(X, y, meta=(X_meta[:1], y_meta[:1]))
    clf.fit(X, y, meta=(X_meta[:2], y_meta[:2]))


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_last_batch_of_one_row_joins_the_one_before(cls, blobs):
    X, y, X_meta, y_meta, *_ = blobs
    small(cls, module=norm(), batch_size=16).fit(X[:129], y[:129], meta=(X_meta[:33], y_meta[:33]))


@pytest.mark.parametrize(
    ("cls", "params"),
    [
        (MWNetClassifier, {"meta_batch_size": 1}),
        (MetaTransitionClassifier, {"meta_batch_size": 1}),
        *((cls, {"batch_size": 1}) for cls in CLASSIFIERS),
    ],
)
def test_batches_of_one_row(cls, params, blobs):
    X, y, X_meta, y_meta, *_ = blobs
    with pytest.raises(ValueError, match=MESSAGE):
        small(cls, module=norm(), callbacks=[Steps()], **params).fit(X, y, meta=(X_meta, y_meta))


def test_the_user_s_loader_joins_nothing(blobs):
    X, y = blobs[:2]
    params = {"module": norm(), "iterator_train": DataLoader, "batch_size": 50}
    with pytest.raises(ValueError, match=r"101 noisy rows in batches of batch_size=50 .*drop_last"):
        small(CrossEntropyClassifier, callbacks=[Steps()], **params).fit(X[:101], y[:101])
    small(CrossEntropyClassifier, iterator_train__drop_last=True, **params).fit(X[:101], y[:101])
    dataset = TensorDataset(torch.from_numpy(X[:101]))
    with pytest.raises(ValueError, match=MESSAGE):
        small(CrossEntropyClassifier, callbacks=[Steps()], **params).fit(dataset, y[:101])


@pytest.mark.parametrize("module", [nn.Sequential(nn.Linear(4, 3)), None])
def test_other_modules_train_on_one_row(module, blobs):
    X, y, X_meta, y_meta, *_ = blobs
    small(FineTuningClassifier, module=module, batch_size=1).fit(X[:9], y[:9], meta=(X_meta[:1], y_meta[:1]))


def test_images_have_many_values_in_a_row():
    X, y = np.random.default_rng(0).normal(size=(8, 1, 4, 4)), np.arange(8) % 3
    module = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(16, 3))
    before = module[0].running_mean.clone()
    clf = small(FineTuningClassifier, module=module, batch_size=1).fit(X, y, meta=(X[:1], y[:1]))
    assert clf.net_.module_[0].num_batches_tracked == 3 * 8 + 2
    assert torch.equal(before, module[0].running_mean)


def test_looking_changes_no_training(blobs):
    """Batches of one row through dropout: the look draws masks, the training must not notice."""
    module = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    batches = {"batch_size": 1, "module": module, "lr": 1e-3}
    whole = fit_noisy(CrossEntropyClassifier, blobs, **batches)
    unlooked = fit_noisy(CrossEntropyClassifier, blobs, iterator_train=Unknown, **batches)
    np.testing.assert_array_equal(whole.predict_proba(blobs[0]), unlooked.predict_proba(blobs[0]))


class Unknown:
    """A loader that is no DataLoader."""

    def __init__(self, dataset, **kwargs):
        self.loader = BatchLoader(dataset, **kwargs)

    def __iter__(self):
        return iter(self.loader)


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_of_one_row_are_those_of_the_loader(joined, drop_last):
    for n in range(1, 12):
        rows = Rows(np.zeros((n, 1)))
        for size in range(1, 7):
            loader = (BatchLoader if joined else DataLoader)(rows, size, drop_last=drop_last, collate_fn=None)
            found = 1 in [len(batch) for batch in loader.batch_sampler]
            assert has_batch_of_one(n, size, drop_last=drop_last, joined=joined) == found, (n, size)
        assert has_batch_of_one(n, -1) == (n == 1)
