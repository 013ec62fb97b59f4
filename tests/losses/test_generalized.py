import numpy as np
import pytest
import torch
from hypothesis import given
from strategies import batches, floats, permutations
from torch.nn import functional as F

from noisytransition.losses import BalancedGeneralizedCrossEntropyLoss, GeneralizedCrossEntropyLoss


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


# ---------------------------------------------------------------------------- balanced
def of_cross_entropy(z, y, w):
    """Gradient of the mean of ``-w log p_y``."""
    return (F.softmax(z, 1) - F.one_hot(y, 4)) * w[:, None] / len(y)


@given(batches(), floats(0.05, 1))
def test_weights_of_a_first_batch_are_p_to_the_q_with_mean_1_for_each_label(batch, q):
    z, y = batch
    _, gradient = value_and_gradient(BalancedGeneralizedCrossEntropyLoss(4, q).double(), z, y)
    power = F.softmax(z, 1)[torch.arange(len(y)), y] ** q
    means = torch.stack([power[y == label].mean() for label in y])
    torch.testing.assert_close(gradient, of_cross_entropy(z, y, power / means))


def test_weights_follow_a_running_mean_of_the_batches_that_have_the_label():
    rng, loss = np.random.default_rng(0), BalancedGeneralizedCrossEntropyLoss(4, 0.7).double()
    sums, counts = np.zeros(4), np.zeros(4)
    for _ in range(20):
        z, y = rng.normal(size=(6, 4)), rng.integers(4, size=6)
        power = (np.exp(z) / np.exp(z).sum(axis=1, keepdims=True))[range(6), y] ** 0.7
        for k in set(y):
            sums[k] = 0.95 * sums[k] + power[y == k].sum()
            counts[k] = 0.95 * counts[k] + (y == k).sum()
        _, gradient = value_and_gradient(loss, torch.tensor(z), torch.tensor(y))
        expected = of_cross_entropy(torch.tensor(z), torch.tensor(y), torch.tensor(power * counts[y] / sums[y]))
        torch.testing.assert_close(gradient, expected)


def test_balanced_with_q_of_0_is_cross_entropy_to_the_bit():
    generator = torch.Generator().manual_seed(0)
    loss = BalancedGeneralizedCrossEntropyLoss(4, 0.0)
    for _ in range(200):
        z, y = torch.randn(32, 4, generator=generator), torch.randint(4, (32,), generator=generator)
        for got, expected in zip(*(value_and_gradient(f, z, y) for f in (loss, of_rows)), strict=True):
            assert torch.equal(got, expected)


def of_rows(z, y):
    """Mean of the cross-entropies of the rows."""
    return F.cross_entropy(z, y, reduction="none").mean()


@given(batches(), floats(0, 1))
def test_balanced_in_evaluation_is_the_plain_loss_and_counts_nothing(batch, q):
    z, y = batch
    loss = BalancedGeneralizedCrossEntropyLoss(4, q).eval()
    torch.testing.assert_close(value_and_gradient(loss, z, y), value_and_gradient(GeneralizedCrossEntropyLoss(q), z, y))
    assert not loss.counts.any()


@pytest.mark.parametrize("low", [-5.0, -40.0, -1e4])
def test_a_label_that_is_improbable_in_all_rows_keeps_its_share_of_the_gradient(low):
    z, y = torch.tensor([[0.0, low], [0.0, low], [9.0, 0.0]]), torch.tensor([1, 1, 0])
    _, gradient = value_and_gradient(BalancedGeneralizedCrossEntropyLoss(2), z, y)
    torch.testing.assert_close(gradient[:2], (F.softmax(z, 1) - F.one_hot(y, 2))[:2] / 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_keeps_labels_that_are_improbable_in_all_rows(dtype):
    z, y = torch.tensor([[0.0, -40.0], [0.0, -40.0], [9.0, 0.0]]), torch.tensor([1, 1, 0])
    loss = BalancedGeneralizedCrossEntropyLoss(2)
    value, gradient = value_and_gradient(loss, z.to(dtype), y)
    expected, of_single = value_and_gradient(BalancedGeneralizedCrossEntropyLoss(2), z, y)
    assert gradient.dtype == dtype
    torch.testing.assert_close(gradient.float(), of_single, rtol=0.01, atol=1e-3)
    torch.testing.assert_close(torch.as_tensor(value).float(), torch.as_tensor(expected).float(), rtol=0.01, atol=1e-3)


@given(batches(), floats(0.05, 0.95))
def test_balanced_does_not_count_rows_that_are_left_out(batch, k):
    z, y = batch
    kept = y > 0  # label 0 has no row
    loss, other = (BalancedGeneralizedCrossEntropyLoss(4, truncation=k).double() for _ in range(2))
    _, gradient = value_and_gradient(loss, z, y, weight=kept.double())
    assert (gradient[~kept] == 0).all()
    if kept.any():
        _, alone = value_and_gradient(other, z[kept], y[kept])
        torch.testing.assert_close(gradient[kept] * len(y), alone * int(kept.sum()))
