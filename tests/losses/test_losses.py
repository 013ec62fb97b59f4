"""Losses of posteriors and of weighted samples, against formulas and autograd; test_own_loop.py has clean samples."""

import numpy as np
import pytest
import torch
from hypothesis import given
from reference.meta_weight_net import weighted_loss
from strategies import batches, floats
from torch.nn import functional as F

from noisytransition.losses import GeneralizedCrossEntropyLoss, PosteriorLoss, WeightedLoss

CLOSE = {"rtol": 1e-9, "atol": 1e-12}


def value_and_gradient(loss, z, y, **columns):
    z = z.clone().requires_grad_()
    value = loss(z, y, **columns)
    return value.detach(), torch.autograd.grad(value, z)[0]


# ---------------------------------------------------------------------------- posteriors
def test_the_loss_of_posteriors_is_their_cross_entropy_and_that_of_weighted_clean_labels():
    z = torch.tensor(np.random.default_rng(0).normal(size=(6, 3)), dtype=torch.float32, requires_grad=True)
    posterior = np.random.default_rng(1).dirichlet(np.ones(3), 4)
    row = torch.tensor([2, 0, 0, 3, 4, 5])
    loss = PosteriorLoss(np.concatenate([posterior, 0.7 * np.eye(3)[1:]]))(z, row, row=row)
    log_f = torch.log(torch.softmax(z, 1))
    noisy = (log_f[:4] * torch.tensor(posterior[row[:4]], dtype=torch.float32)).sum()
    twin = -(noisy + 0.7 * (log_f[4, 1] + log_f[5, 2])) / 6
    torch.testing.assert_close(loss, twin)
    torch.testing.assert_close(torch.autograd.grad(loss, z), torch.autograd.grad(twin, z))


# ---------------------------------------------------------------------------- generalized cross-entropy
@given(batches(scale=4.0))
def test_generalized_cross_entropy_of_q_0_is_cross_entropy(batch):
    found, expected = (value_and_gradient(loss, *batch) for loss in (GeneralizedCrossEntropyLoss(0.0), F.cross_entropy))
    torch.testing.assert_close(found, expected, **CLOSE)


@given(batches(), floats(0.05, 1), floats(0.05, 0.95))
def test_generalized_cross_entropy_is_the_formula_and_a_row_of_weight_0_costs_a_constant(batch, q, k):
    z, y = batch
    plain, truncated = GeneralizedCrossEntropyLoss(q), GeneralizedCrossEntropyLoss(q, truncation=k)
    p = F.softmax(z, 1)[torch.arange(len(y)), y]
    value, gradient = value_and_gradient(plain, z, y)
    torch.testing.assert_close(value, ((1 - p**q) / q).mean())
    torch.testing.assert_close(gradient, (F.softmax(z, 1) - F.one_hot(y, 4)) * p[:, None] ** q / len(y))
    left_out = torch.arange(len(y)) % 2 == 0
    found, of_truncated = value_and_gradient(truncated, z, y, weight=(~left_out).double())
    losses = torch.where(left_out, torch.full_like(p, (1 - k**q) / q), (1 - p**q) / q)
    torch.testing.assert_close(found, losses.mean())
    assert (of_truncated[left_out] == 0).all()
    torch.testing.assert_close(of_truncated[~left_out], gradient[~left_out])


def test_a_label_of_probability_0_has_a_finite_gradient():
    z, y = torch.tensor([[-200.0, 200.0], [200.0, -200.0]]), torch.tensor([0, 0])
    for q in (0.0, 0.1, 0.7, 1.0):
        assert all(torch.isfinite(t).all() for t in value_and_gradient(GeneralizedCrossEntropyLoss(q), z, y))


# ---------------------------------------------------------------------------- weights
@given(batches())
def test_weighted_loss_and_cotangent_are_those_of_the_twin(batch):
    """tests/methods/test_mw_net.py compares the look-ahead."""
    torch.manual_seed(0)
    (z, y), loss = batch, WeightedLoss().double()
    z.requires_grad_()
    twin = weighted_loss(z, y, loss.weight_net)
    torch.testing.assert_close(loss(z, y), twin, **CLOSE)
    expected = torch.autograd.grad(twin, z)[0]
    torch.testing.assert_close(torch.autograd.grad(loss(z, y), z)[0], expected, **CLOSE)
    torch.testing.assert_close(loss.cotangent(z.detach(), y), expected, **CLOSE)
    loss.weight_net[2].weight.data.zero_()  # all weights are one
    loss.weight_net[2].bias.data.fill_(100.0)
    torch.testing.assert_close(loss(z, y), F.cross_entropy(z, y), **CLOSE)
    assert loss.shares(torch.ones(5)).sum().item() == pytest.approx(1)


def test_logits_may_have_another_precision_than_the_weights():
    loss = WeightedLoss()
    z, y = torch.zeros(2, 3, dtype=torch.float64), torch.tensor([0, 1])
    assert loss(z, y).dtype is torch.float64
    assert loss.meta_gradients(z, y, torch.ones_like(z))[0].dtype is torch.float32
