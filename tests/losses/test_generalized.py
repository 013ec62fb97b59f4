import pytest
import torch
from hypothesis import given
from strategies import batches, floats
from torch.nn import functional as F

from noisytransition.losses import GeneralizedCrossEntropyLoss


def value_and_gradient(loss, z, y, **columns):
    z = z.clone().requires_grad_()
    value = loss(z, y, **columns)
    return value.detach(), torch.autograd.grad(value, z)[0]


def absolute_error(z, y):
    return (1 - F.softmax(z, 1)[torch.arange(len(y)), y]).mean()


@pytest.mark.parametrize(("q", "limit"), [(0.0, F.cross_entropy), (1e-6, F.cross_entropy), (1.0, absolute_error)])
@given(batches(scale=4.0))
def test_the_limits_are_cross_entropy_and_absolute_error(q, limit, batch):
    found, expected = (value_and_gradient(loss, *batch) for loss in (GeneralizedCrossEntropyLoss(q), limit))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 if q == 1e-6 else 1e-12)


@given(batches(), floats(0.05, 1), floats(0.05, 0.95))
def test_the_loss_is_the_formula_and_a_row_of_weight_0_costs_a_constant(batch, q, k):
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
