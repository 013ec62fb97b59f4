import pytest
import torch
from hypothesis import given
from strategies import batches, floats, permutations
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
    z, y = batch
    got, expected = (value_and_gradient(loss, z, y) for loss in (GeneralizedCrossEntropyLoss(q), limit))
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4 if q == 1e-6 else 1e-12)


@given(batches(), floats(0.05, 1))
def test_the_loss_is_the_formula_and_its_gradient_cross_entropy_s_times_p_to_the_q(batch, q):
    z, y = batch
    p = F.softmax(z, 1)[torch.arange(len(y)), y]
    value, gradient = value_and_gradient(GeneralizedCrossEntropyLoss(q), z, y)
    torch.testing.assert_close(value, ((1 - p**q) / q).mean())
    plain = F.softmax(z, 1) - F.one_hot(y, 4)
    torch.testing.assert_close(gradient, plain * p[:, None] ** q / len(y))


def test_a_label_of_probability_0_has_a_finite_gradient():
    z, y = torch.tensor([[-200.0, 200.0], [200.0, -200.0]]), torch.tensor([0, 0])
    for q in (0.0, 0.1, 0.7, 1.0):
        assert all(torch.isfinite(t).all() for t in value_and_gradient(GeneralizedCrossEntropyLoss(q), z, y))


@given(batches(), floats(0.05, 1), floats(0.05, 0.95))
def test_a_row_of_weight_0_costs_a_constant_and_has_no_gradient(batch, q, k):
    z, y = batch
    left_out = torch.arange(len(y)) % 2 == 0
    loss = GeneralizedCrossEntropyLoss(q, truncation=k)
    value, gradient = value_and_gradient(loss, z, y, weight=(~left_out).double())
    plain, kept = GeneralizedCrossEntropyLoss(q), int((~left_out).sum())
    expected = len(y[left_out]) * (1 - k**q) / q + (kept * plain(z[~left_out], y[~left_out]) if kept else 0)
    torch.testing.assert_close(value, torch.as_tensor(expected / len(y), dtype=value.dtype))
    assert (gradient[left_out] == 0).all()
    _, whole = value_and_gradient(plain, z, y)
    torch.testing.assert_close(gradient[~left_out], whole[~left_out])


def test_the_weight_is_a_column_of_the_truncated_loss_only():
    assert GeneralizedCrossEntropyLoss().columns == ()
    assert GeneralizedCrossEntropyLoss(truncation=0.5).columns == ("weight",)


@given(batches(), permutations(4))
def test_duplicating_a_batch_and_permuting_the_classes_change_nothing(batch, order):
    z, y = batch
    loss, order = GeneralizedCrossEntropyLoss(), torch.tensor(order)
    torch.testing.assert_close(loss(z.repeat(2, 1), y.repeat(2)), loss(z, y))
    torch.testing.assert_close(loss(z[:, order], torch.argsort(order)[y]), loss(z, y))
