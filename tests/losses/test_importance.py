import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from noisytransition.losses import ImportanceReweightedLoss

seeds = st.integers(0, 2**31)


@pytest.fixture(autouse=True, scope="module")
def _double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def problem(seed, n=6, c=4):
    rng = np.random.default_rng(seed)
    z = torch.tensor(rng.normal(size=(n, c)) * 2, requires_grad=True)
    dT = torch.tensor(rng.uniform(-0.02, 0.05, size=(c, c)))
    return z, torch.tensor(rng.integers(c, size=n)), rng.dirichlet(np.full(c, 5.0), c), dT


def by_sample(z, y, T, dT, constant):
    """Row by row, with dT added once."""
    total = 0.0
    for n in range(len(y)):
        p = F.softmax(z[n], 0)
        beta = p[y[n]] / ((torch.tensor(T) + dT).clamp_min(0).T @ p)[y[n]]
        beta = beta.detach() if constant else beta
        total = total - beta * torch.log(p[y[n]])
    return total / len(y)


def loss_of(T, dT, revised):
    loss = ImportanceReweightedLoss(T, revised=revised)
    loss.revision.data.copy_(dT)
    return loss


@pytest.mark.parametrize("revised", [False, True])
@given(seeds)
def test_the_loss_is_that_of_a_loop_over_samples(revised, seed):
    z, y, T, dT = problem(seed)
    loss, leaf = loss_of(T, dT, revised), dT.clone().requires_grad_()
    slow, fast = by_sample(z, y, T, leaf, constant=not revised), loss(z, y)
    torch.testing.assert_close(fast, slow)
    torch.testing.assert_close(
        torch.autograd.grad(fast, z, retain_graph=True)[0], torch.autograd.grad(slow, z, retain_graph=True)[0]
    )
    if revised:
        got, expected = torch.autograd.grad(fast, loss.revision)[0], torch.autograd.grad(slow, leaf)[0]
        torch.testing.assert_close(got, expected)
        assert (got != 0).any()


@given(seeds)
def test_the_gradient_of_dT_does_not_depend_on_the_size_of_the_batch(seed):
    z, y, T, dT = problem(seed)
    loss = loss_of(T, dT, revised=True)
    once = torch.autograd.grad(loss(z, y), loss.revision)[0]
    thrice = torch.autograd.grad(loss(z.repeat(3, 1), y.repeat(3)), loss.revision)[0]
    torch.testing.assert_close(once, thrice)


def test_the_weights_are_constants_in_stage_two():
    z, y, T, dT = problem(0)
    loss = loss_of(T, 0 * dT, revised=False)
    p, weighted = F.softmax(z, 1).detach(), torch.autograd.grad(loss(z, y), z)[0]
    beta = p[range(6), y] / (p @ torch.tensor(T))[range(6), y]
    torch.testing.assert_close(weighted, beta[:, None] * (p - F.one_hot(y, 4)) / 6)
    assert list(loss.parameters()) == []
    assert [name for name, _ in loss_of(T, dT, revised=True).named_parameters()] == ["revision"]


@pytest.mark.parametrize("revised", [False, True])
@given(seeds)
def test_the_identity_gives_cross_entropy(revised, seed):
    z, y, _, dT = problem(seed)
    z = z.detach() * 20  # improbable labels too
    torch.testing.assert_close(loss_of(np.eye(4), 0 * dT, revised)(z, y), F.cross_entropy(z, y))


@given(seeds, st.permutations(range(4)))
def test_permuting_the_classes_changes_nothing(seed, order):
    z, y, T, dT = problem(seed)
    p = torch.tensor(order)
    other = loss_of(T[np.ix_(order, order)], dT[p][:, p], revised=True)
    torch.testing.assert_close(other(z[:, p], torch.argsort(p)[y]), loss_of(T, dT, revised=True)(z, y))


@given(seeds)
def test_T_is_a_transition_matrix_wherever_dT_leads(seed):
    _, _, T, dT = problem(seed)
    loss = loss_of(T, 20 * (dT - 0.02), revised=True)
    assert (loss.transition_matrix >= 0).all()
    np.testing.assert_allclose(loss.transition_matrix.sum(1), 1)
    z, y, *_ = problem(seed + 1)
    assert torch.isfinite(loss(z * 100, y))
    np.testing.assert_allclose(loss_of(T, 0 * dT, revised=True).transition_matrix, T)
