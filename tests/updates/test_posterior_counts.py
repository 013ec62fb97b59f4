"""T as a running statistic of posteriors: compared with loops, and its fixed point."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import batches

from noisytransition.losses import ForwardLoss
from noisytransition.nets._rows import Batch
from noisytransition.transition import label_posterior, pair_noise
from noisytransition.updates import PosteriorCounts

pytestmark = pytest.mark.usefixtures("float64")

START = pair_noise(3, 0.3) * 0.85 + 0.05
several = st.lists(batches(c=3, scale=4.0), min_size=1, max_size=5)


def begun(rate, burn_in=0, dtype=torch.float64):
    """An update at the beginning of a training, and the net with its loss."""
    net = SimpleNamespace(criterion_=ForwardLoss(START).to(dtype), classes=None, classes_=range(3))
    update = PosteriorCounts(rate, burn_in)
    update.on_train_begin(net)
    return update, net


def feed(update, net, *batches):
    for z, y in batches:
        update.after_step(net, Batch(z, {"label": y}), z)
    return net.criterion_.transition_matrix


def by_hand(rate, burn_in, several, share=1.0):
    """Count posteriors batch by batch with numpy, over all of T; a share of each batch is noisy."""
    T, counts = START, START / 3
    for k, (z, y) in enumerate(several):
        q = label_posterior(torch.softmax(z, 1).numpy(), y.numpy(), T)
        batch = sum(np.outer(q_n, np.eye(3)[j]) for q_n, j in zip(q, y.numpy(), strict=True)) / len(y)
        counts = (1 - rate) * counts + rate * share * batch
        if k >= burn_in:
            T = counts / counts.sum(axis=1, keepdims=True)
    return T


@given(several)
def test_clean_rows_are_not_counted(several):
    update, net = begun(0.5)
    for z, y in several:
        is_clean = torch.tensor([False] * len(y) + [True] * len(y))
        update.after_step(net, Batch(z, {"label": torch.cat([y, y]), "is_clean": is_clean}), torch.cat([z, z]))
    T = by_hand(0.5, 0, several, share=0.5)
    np.testing.assert_allclose(net.criterion_.transition_matrix, T, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_class_without_posterior_keeps_its_row(dtype):
    update, net = begun(0.5, dtype=dtype)
    for k in range(400):
        feed(update, net, (torch.tensor([[0.0, 0.0, -200.0]] * 2, dtype=dtype), torch.tensor([k % 2, 2])))
    np.testing.assert_allclose(net.criterion_.transition_matrix[2], START[2], atol=0.02)


@pytest.mark.parametrize("batches_of_epoch", [400, 4])
def test_a_label_that_was_long_absent_can_come_again(batches_of_epoch):
    update, net = begun(0.5, dtype=torch.float32)
    z = torch.zeros(2, 3, dtype=torch.float32)
    for k, labels in enumerate((*[[0, 1]] * 400, [2, 2])):
        if k % batches_of_epoch == 0:
            update.on_epoch_begin(net)
        feed(update, net, (z, torch.tensor(labels)))
    assert net.criterion_.transition_logits.isfinite().all()
    assert net.criterion_(z, torch.tensor([2, 2])).isfinite()


def test_counts_are_of_single_precision_where_the_logits_are_of_half():
    update, net = begun(0.5, dtype=torch.float32)
    T = feed(update, net, (torch.zeros(4, 3, dtype=torch.bfloat16), torch.tensor([0, 1, 2, 0])))
    assert update.counts_.dtype == torch.float32
    np.testing.assert_allclose(T.sum(axis=1), 1)


@pytest.mark.parametrize("rate", [0.004, 0.6, 0.99])
@pytest.mark.parametrize(("burn_in", "n"), [(0, 3), (7, 2)])  # of two rows, the columns of their labels are written
def test_columns_of_the_labels_alone_are_as_good_as_all(rate, burn_in, n):
    g = torch.Generator().manual_seed(0)
    draw = lambda: (torch.randn(n, 3, generator=g).double(), torch.randint(3, (n,), generator=g))  # noqa: E731
    several = [draw() for _ in range(150)]
    update, net = begun(rate, burn_in)
    for k, batch in enumerate(several):
        if k % 40 == 0:
            update.on_epoch_begin(net)
        feed(update, net, batch)
    np.testing.assert_allclose(net.criterion_.transition_matrix, by_hand(rate, burn_in, several), rtol=1e-9)
    counts = update.share_ * update.counts_
    np.testing.assert_allclose(counts.sum().item(), 1, rtol=1e-10)
