"""Samples are drawn in proportion to their weights, with the same draws as torch's loader."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import Subset

from noisytransition.nets import Rows
from noisytransition.nets._rows import BatchLoader, ProportionalSampler

WEIGHTS = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30)


def counts(sampler):
    return np.bincount(list(sampler), minlength=len(sampler))


@given(WEIGHTS, st.integers(0, 100))
def test_each_row_comes_as_often_as_its_share_rounded_down_or_up(weights, seed):
    torch.manual_seed(seed)
    drawn, share = counts(ProportionalSampler(weights)), len(weights) * np.array(weights) / sum(weights)
    assert drawn.sum() == len(weights)
    assert ((drawn >= np.floor(share - 1e-9)) & (drawn <= np.ceil(share + 1e-9))).all()


def test_the_mean_over_epochs_is_the_share():
    torch.manual_seed(0)
    sampler = ProportionalSampler([0.3, 1.2, 2.5, 1.0])
    mean = np.mean([counts(sampler) for _ in range(1000)], axis=0)
    np.testing.assert_allclose(mean, 4 * sampler.weights / sampler.weights.sum(), atol=0.06)


def test_whole_shares_are_met_in_every_epoch_in_another_order():
    torch.manual_seed(0)
    sampler = ProportionalSampler(np.repeat([2.0, 0.5, 0.5], 20))
    epochs = [list(sampler) for _ in range(5)]
    for epoch in epochs:
        assert (np.bincount(epoch, minlength=60)[:20] == 2).all()
    assert len({tuple(epoch) for epoch in epochs}) == 5


def rows(**columns):
    return Rows(np.arange(40.0)[:, None], np.arange(40) % 3, **columns)


def labels_of(loader):
    torch.manual_seed(0)
    return [batch.columns["sample_weight"].tolist() for _ in range(2) for batch in loader]


def test_the_loader_draws_alike_with_and_without_workers():
    part = Subset(rows(sample_weight=np.linspace(0.5, 1.5, 40)), np.arange(5, 35))
    plain, workers = (BatchLoader(part, batch_size=8, shuffle=True, num_workers=n) for n in (0, 1))
    assert labels_of(plain) == labels_of(workers)
    assert len(plain) == len(labels_of(plain)) // 2


def test_without_shuffling_each_row_comes_once():
    loader = BatchLoader(rows(sample_weight=np.linspace(0.5, 1.5, 40)), batch_size=8)
    assert torch.cat([batch.x for batch in loader]).ravel().tolist() == list(range(40))
