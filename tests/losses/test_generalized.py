import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from noisytransition.losses import GeneralizedCrossEntropyLoss

seeds = st.integers(0, 2**31)


def problem(seed, n=7, c=4):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, c, generator=g, dtype=torch.float64) * 2, torch.randint(c, (n,), generator=g)


def value_and_gradient(loss, z, y):
    z = z.clone().requires_grad_()
    value = loss(z, y)
    return value.detach(), torch.autograd.grad(value, z)[0]


def absolute_error(z, y):
    return (1 - F.softmax(z, 1)[torch.arange(len(y)), y]).mean()


@pytest.mark.parametrize(("q", "limit"), [(0.0, F.cross_entropy), (1e-6, F.cross_entropy), (1.0, absolute_error)])
@given(seeds)
def test_the_limits_are_cross_entropy_and_absolute_error(q, limit, seed):
    z, y = problem(seed)
    got, expected = (value_and_gradient(loss, z, y) for loss in (GeneralizedCrossEntropyLoss(q), limit))
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4 if q == 1e-6 else 1e-12)


@given(seeds, st.floats(0.05, 1))
def test_the_loss_is_the_formula_and_its_gradient_cross_entropy_s_times_p_to_the_q(seed, q):
    z, y = problem(seed)
    p = F.softmax(z, 1)[torch.arange(len(y)), y]
    value, gradient = value_and_gradient(GeneralizedCrossEntropyLoss(q), z, y)
    torch.testing.assert_close(value, ((1 - p**q) / q).mean())
    plain = F.softmax(z, 1) - F.one_hot(y, 4)
    torch.testing.assert_close(gradient, plain * p[:, None] ** q / len(y))


def test_a_hopeless_label_has_a_finite_gradient():
    z, y = torch.tensor([[-200.0, 200.0], [200.0, -200.0]]), torch.tensor([0, 0])
    for q in (0.0, 0.1, 0.7, 1.0):
        assert all(torch.isfinite(t).all() for t in value_and_gradient(GeneralizedCrossEntropyLoss(q), z, y))


@given(seeds, st.floats(0.05, 1), st.floats(0.05, 0.95))
def test_a_marked_row_costs_a_constant_and_pulls_no_more(seed, q, k):
    z, y = problem(seed)
    marked = torch.arange(len(y)) % 2 == 0
    loss = GeneralizedCrossEntropyLoss(q, truncation=k)
    value, gradient = value_and_gradient(loss, z, y + 4 * marked)
    kept = GeneralizedCrossEntropyLoss(q)(z[~marked], y[~marked])
    share = float(marked.double().mean())
    torch.testing.assert_close(value, share * (1 - k**q) / q + (1 - share) * kept)
    assert (gradient[marked] == 0).all()
    assert (gradient[~marked] != 0).any()


@given(seeds)
def test_duplicating_a_batch_and_permuting_the_classes_change_nothing(seed):
    z, y = problem(seed)
    loss, order = GeneralizedCrossEntropyLoss(), torch.tensor(np.random.default_rng(seed).permutation(4))
    torch.testing.assert_close(loss(z.repeat(2, 1), y.repeat(2)), loss(z, y))
    torch.testing.assert_close(loss(z[:, order], torch.argsort(order)[y]), loss(z, y))
