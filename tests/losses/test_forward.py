import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference.algorithm_1 import corrected_loss
from torch.nn import functional as F

from noisytransition.losses import ForwardLoss, clean_posterior, corrected_cross_entropy

CLOSE = {"rtol": 1e-10, "atol": 1e-12}


def problem(seed, n=7, c=4):
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(n, c, generator=g, dtype=torch.float64) * 2
    theta = torch.randn(c, c, generator=g, dtype=torch.float64)
    u = torch.randn(n, c, generator=g, dtype=torch.float64)
    return z, torch.randint(c, (n,), generator=g), theta, u


def loss_of(theta):
    loss = ForwardLoss(np.eye(len(theta))).double()
    loss.transition_logits = theta.clone()
    return loss


seeds = st.integers(0, 2**31)


@given(seeds)
def test_the_loss_is_that_of_the_whole_product(seed):
    z, y, theta, _ = problem(seed)
    torch.testing.assert_close(loss_of(theta)(z, y), corrected_loss(z, y, theta), **CLOSE)


@given(seeds)
def test_the_cotangent_is_the_gradient_of_the_loss(seed):
    z, y, theta, _ = problem(seed)
    z.requires_grad_()
    (expected,) = torch.autograd.grad(corrected_loss(z, y, theta), z)
    torch.testing.assert_close(loss_of(theta).cotangent(z.detach(), y), expected, **CLOSE)


@given(seeds)
def test_the_meta_gradient_is_that_of_autograd(seed):
    z, y, theta, u = problem(seed)
    z.requires_grad_()
    theta.requires_grad_()
    (r,) = torch.autograd.grad(corrected_loss(z, y, theta), z, create_graph=True)
    (expected,) = torch.autograd.grad(-(r * u).sum(), theta)
    (got,) = loss_of(theta.detach()).meta_gradients(z.detach(), y, u)
    torch.testing.assert_close(got, expected, **CLOSE)


@given(seeds)
def test_the_identity_gives_cross_entropy(seed):
    z, y, theta, _ = problem(seed)
    loss = ForwardLoss(np.eye(len(theta))).double()
    torch.testing.assert_close(loss(z, y), F.cross_entropy(z, y), rtol=1e-6, atol=1e-6)


@given(seeds)
def test_duplicating_a_batch_changes_no_mean(seed):
    z, y, theta, u = problem(seed)
    loss, twice = loss_of(theta), (z.repeat(2, 1), y.repeat(2))
    torch.testing.assert_close(loss(*twice), loss(z, y), **CLOSE)
    torch.testing.assert_close(loss.meta_gradients(*twice, u.repeat(2, 1)), loss.meta_gradients(z, y, u), **CLOSE)


@given(seeds, st.permutations(range(4)))
def test_permuting_the_classes_permutes_everything(seed, order):
    z, y, theta, u = problem(seed)
    p = torch.tensor(order)
    place = torch.argsort(p)  # class k stands at place[k]
    other, loss = loss_of(theta[p][:, p]), loss_of(theta)
    torch.testing.assert_close(other(z[:, p], place[y]), loss(z, y), **CLOSE)
    (gradient,) = loss.meta_gradients(z, y, u)
    torch.testing.assert_close(other.meta_gradients(z[:, p], place[y], u[:, p])[0], gradient[p][:, p], **CLOSE)


@given(seeds)
def test_the_posterior_is_bayes_rule_and_the_gradient_keeps_rows_of_T_summing_to_one(seed):
    z, y, theta, u = problem(seed)
    joint = F.softmax(z, 1) * F.softmax(theta, 1)[:, y].T
    q = clean_posterior(z, y, F.log_softmax(theta, 1))
    torch.testing.assert_close(q, joint / joint.sum(1, keepdim=True), **CLOSE)
    (gradient,) = loss_of(theta).meta_gradients(z, y, u)
    torch.testing.assert_close(gradient.sum(1), torch.zeros(4, dtype=torch.float64), rtol=0, atol=1e-12)


def test_extreme_logits_and_an_empty_column_cost_a_finite_loss():
    z = torch.tensor([[200.0, -200.0], [-200.0, 200.0]], requires_grad=True)
    loss = ForwardLoss([[1, 0], [1, 0]])(z, torch.tensor([1, 1]))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(z.grad).all()


def test_T_is_a_buffer_unless_it_is_to_be_learned_jointly():
    T = [[0.7, 0.3], [0.1, 0.9]]
    assert [name for name, _ in ForwardLoss(T).named_parameters()] == []
    assert [name for name, _ in ForwardLoss(T, trainable=True).named_parameters()] == ["transition_logits"]
    for loss in (ForwardLoss(T), ForwardLoss(T, trainable=True)):
        assert "transition_logits" in loss.state_dict()
        np.testing.assert_allclose(loss.transition_matrix, T, rtol=1e-6)
        assert loss.transition_matrix.dtype == np.float64


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_loss_has_the_type_of_the_logits(dtype):
    loss = ForwardLoss([[0.7, 0.3], [0.1, 0.9]])
    assert loss(torch.zeros(1, 2, dtype=dtype), torch.tensor([0])).dtype is dtype
    z, u = torch.zeros(1, 2, dtype=dtype), torch.ones(1, 2, dtype=dtype)
    assert loss.meta_gradients(z, torch.tensor([0]), u)[0].dtype == torch.float32  # that of T's logits


def test_a_function_of_its_own_for_log_T():
    z, y, theta, _ = problem(0)
    torch.testing.assert_close(
        corrected_cross_entropy(z, y, F.log_softmax(theta, 1)), corrected_loss(z, y, theta), **CLOSE
    )
