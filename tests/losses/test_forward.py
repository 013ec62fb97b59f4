import copy
import pickle

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reference.algorithm_1 import corrected_loss
from strategies import batches, floats
from torch import nn
from torch.nn import functional as F

from noisytransition.losses import ForwardLoss

CLOSE = {"rtol": 1e-10, "atol": 1e-12}


@st.composite
def problems(draw):
    """Logits, labels, logits of T, and a tangent of the logits."""
    z, y = draw(batches())
    theta = draw(hnp.arrays(np.float64, (4, 4), elements=floats(-4, 4)))
    u = draw(hnp.arrays(np.float64, z.shape, elements=floats(-4, 4)))
    return z, y, torch.tensor(theta), torch.tensor(u)


def loss_of(theta):
    loss = ForwardLoss(np.eye(len(theta))).double()
    loss.transition_logits = nn.Parameter(theta.clone(), requires_grad=False)
    return loss


@given(problems())
def test_loss_gradients_and_meta_gradient_are_those_of_autograd(problem):
    z, y, theta, u = problem
    loss = loss_of(theta)
    z.requires_grad_()
    theta.requires_grad_()
    value = loss(z, y)
    joint = F.softmax(z, 1) * F.softmax(theta, 1)[:, y].T
    torch.testing.assert_close(loss.posterior(z, y).detach(), (joint / joint.sum(1, keepdim=True)).detach(), **CLOSE)
    twin = corrected_loss(z, y, theta)
    by_z, by_theta = torch.autograd.grad(twin, (z, theta), create_graph=True)
    torch.testing.assert_close(value, twin, **CLOSE)
    (gradient,) = torch.autograd.grad(value, z, create_graph=True)
    torch.testing.assert_close(gradient, by_z, **CLOSE)
    second, expected = (torch.autograd.grad((by * u).sum(), z, retain_graph=True)[0] for by in (gradient, by_z))
    torch.testing.assert_close(second, expected, **CLOSE)
    torch.testing.assert_close(loss.cotangent(z.detach(), y), by_z, **CLOSE)
    (expected,) = torch.autograd.grad(-(by_z * u).sum(), theta)
    (found,) = loss.meta_gradients(z.detach(), y, u)
    torch.testing.assert_close(found, expected, **CLOSE)
    torch.testing.assert_close(found.sum(1), torch.zeros(4, dtype=torch.float64), rtol=0, atol=1e-12)  # rows sum to 1
    assert torch.equal(loss.state_dict()["transition_logits"], theta)
    learned = loss_of(theta.detach()).requires_grad_(True)
    learned(z, y).backward()
    torch.testing.assert_close(learned.transition_logits.grad, by_theta, **CLOSE)


def test_extreme_logits_and_an_empty_column_cost_a_finite_loss():
    z = torch.tensor([[200.0, -200.0], [-200.0, 200.0]], requires_grad=True)
    loss = ForwardLoss([[1, 0], [1, 0]])(z, torch.tensor([1, 1]))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(z.grad).all()


def test_T_is_saved_with_the_loss_and_takes_no_gradient_by_itself():
    T = [[0.7, 0.3], [0.1, 0.9]]
    loss = ForwardLoss(T)
    saved = safetensors.torch.load(safetensors.torch.save(loss.state_dict()))  # as Hugging Face does
    assert list(saved) == ["transition_logits"]
    np.testing.assert_allclose(saved["transition_logits"].exp(), T, rtol=1e-6)
    assert not any(parameter.requires_grad for parameter in loss.parameters())
    np.testing.assert_allclose(loss.transition_matrix, T, rtol=1e-6)
    assert loss.transition_matrix.dtype == np.float64


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_loss_has_the_type_of_the_logits(dtype):
    loss = ForwardLoss([[0.7, 0.3], [0.1, 0.9]])
    z, u = torch.zeros(1, 2, dtype=dtype), torch.ones(1, 2, dtype=dtype)
    assert loss(z, torch.tensor([0])).dtype is dtype
    assert loss.meta_gradients(z, torch.tensor([0]), u)[0].dtype == torch.float32  # that of T's logits
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = ForwardLoss(np.full((3, 3), 1 / 3))(torch.randn(64, 3), torch.arange(64) % 3)
    torch.testing.assert_close(found, torch.tensor(3.0).log())


# ---------------------------------------------------------------------------- T, normalised once
def by_copy(loss, theta):
    with torch.no_grad():
        loss.transition_logits.copy_(theta)
    return loss


def by_replacement(loss, theta):
    loss.transition_logits = nn.Parameter(theta.clone(), requires_grad=False)
    return loss


def by_data(loss, theta):
    loss.transition_logits.data = theta.clone()
    return loss


def by_optimizer(foreach):
    def changed(loss, theta):
        optimizer = torch.optim.SGD(loss.parameters(), lr=1.0, foreach=foreach)
        loss.transition_logits.grad = loss.transition_logits.detach() - theta
        optimizer.step()
        return loss

    return changed


def by_copied_loss(loss, theta):
    other = copy.deepcopy(loss)
    by_copy(loss, torch.zeros_like(theta))
    return by_copy(other, theta)


def by_set_counts(loss, theta):
    counts = theta.exp().T.contiguous()
    loss.set_counts(counts, counts.sum(0))
    return loss


CHANGES = [by_copy, by_replacement, by_data, by_copied_loss, by_set_counts]
CHANGES += [by_optimizer(foreach) for foreach in (False, True)]


@pytest.mark.parametrize("change", CHANGES)
def test_a_loss_notices_that_T_has_changed(change):
    g = torch.Generator().manual_seed(0)
    theta, z, u = (torch.randn(5, 5, generator=g, dtype=torch.float64) for _ in range(3))
    y = torch.tensor([0, 3, 3, 1, 0])
    loss = ForwardLoss(np.full((5, 5), 0.2)).double()
    for _ in range(2):
        loss(z, y), loss.meta_gradients(z, y, u), loss(z, y)
        loss, expected = change(loss, theta), loss_of(theta)
        torch.testing.assert_close(loss(z, y), corrected_loss(z, y, theta), **CLOSE)
        torch.testing.assert_close(loss.cotangent(z, y), expected.cotangent(z, y), **CLOSE)
        torch.testing.assert_close(loss.meta_gradients(z, y, u), expected.meta_gradients(z, y, u), **CLOSE)
        theta = theta.flip(0)


def test_a_pickle_holds_no_rows():
    loss = ForwardLoss(np.eye(3))
    loss(torch.zeros(500, 3), torch.arange(500) % 3)
    assert len(pickle.dumps(loss)) < 3000


def test_a_resumed_training_has_the_gradients_of_one_that_goes_on():
    """The cached T of a loss must not change results, bitwise."""
    g = torch.Generator().manual_seed(0)
    used = ForwardLoss(np.full((5, 5), 0.2))
    for _ in range(30):
        theta, z, u = (torch.randn(5, 5, generator=g) for _ in range(3))
        y = torch.randint(5, (5,), generator=g)
        (gradient,) = by_copy(used, theta).meta_gradients(z, y, u)
        (other,) = by_copy(ForwardLoss(np.full((5, 5), 0.2)), theta).meta_gradients(z, y, u)
        assert torch.equal(gradient, other)
