"""T as a running statistic of the posterior: against loops, and at rest where it should be."""

import numpy as np
import pytest
import torch

from noisytransition.losses import EMLoss, ForwardLoss
from noisytransition.transition import label_posterior, pair_noise

START = pair_noise(3, 0.3) * 0.85 + 0.05


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def batches(n_batches, n=8):
    generator = torch.Generator().manual_seed(0)
    for _ in range(n_batches):
        yield torch.randn(n, 3, generator=generator), torch.randint(3, (n,), generator=generator)


def by_hand(rate, hold, n_batches):
    """Counts of posteriors, one batch after the other, with numpy."""
    T, counts = START, START / 3
    for k, (z, y) in enumerate(batches(n_batches)):
        q = label_posterior(torch.softmax(z, 1).numpy(), y.numpy(), T)
        batch = sum(np.outer(q_n, np.eye(3)[j]) for q_n, j in zip(q, y.numpy(), strict=True)) / len(y)
        counts = (1 - rate) * counts + rate * batch
        if k >= hold:
            T = counts / counts.sum(axis=1, keepdims=True)
    return T


@pytest.mark.parametrize(("rate", "hold"), [(0.2, 0), (0.2, 3), (1.0, 0), (0.05, 10)])
def test_follows_the_counts(rate, hold):
    loss = EMLoss(START, rate=rate, hold=hold)
    for z, y in batches(7):
        loss(z, y)
    np.testing.assert_allclose(loss.transition_matrix, by_hand(rate, hold, 7), atol=1e-9)


def test_the_loss_is_the_corrected_one_before_the_move():
    loss, plain = EMLoss(START, rate=0.5), ForwardLoss(START)
    ((z, y),) = batches(1)
    z.requires_grad_()
    torch.testing.assert_close(loss.eval()(z, y), plain(z, y))
    values = [f(z, y) for f in (loss.train(), plain)]
    torch.testing.assert_close(*values)
    torch.testing.assert_close(*(torch.autograd.grad(3 * value, z)[0] for value in values))


def test_rests_in_evaluation_mode_and_takes_no_gradient():
    loss = EMLoss(START, rate=0.5).eval()
    for z, y in batches(3):
        loss(z, y)
    np.testing.assert_allclose(loss.transition_matrix, START)
    assert not list(loss.parameters())


def test_a_doubled_batch_counts_once():
    single, double = EMLoss(START, rate=0.5), EMLoss(START, rate=0.5)
    for z, y in batches(3):
        single(z, y)
        double(torch.cat([z, z]), torch.cat([y, y]))
    np.testing.assert_allclose(double.transition_matrix, single.transition_matrix, rtol=1e-12)


def test_a_class_without_posterior_keeps_its_row():
    loss = EMLoss(START, rate=0.5)
    for _ in range(200):
        loss(torch.tensor([[0.0, 0.0, -200.0]]), torch.tensor([0]))
    np.testing.assert_allclose(loss.transition_matrix[2], START[2], atol=0.02)


def test_state_brings_counts_and_T_back():
    loss, other = EMLoss(START, rate=0.5), EMLoss(np.full((3, 3), 1 / 3), rate=0.5)
    (first, second) = batches(2)
    loss(*first)
    other.load_state_dict(loss.state_dict())
    for copy in (loss, other):
        copy(*second)
    np.testing.assert_array_equal(other.transition_matrix, loss.transition_matrix)
