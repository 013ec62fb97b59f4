"""The gradient in closed form, against autograd operation by operation."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import batches, floats
from torch.nn import functional as F

from noisytransition.losses import marginal_cross_entropy

CLOSE = {"rtol": 1e-10, "atol": 1e-12}


@st.composite
def problems(draw):
    """Logits, log-probabilities of observations (some -inf), and weights."""
    z, y = draw(batches())
    columns = torch.tensor(draw(hnp.arrays(float, z.shape, elements=floats(-8, 0))))
    columns = columns.masked_fill(torch.tensor(draw(hnp.arrays(bool, z.shape))), -torch.inf)
    columns[range(len(y)), y] = 0  # one entry is finite
    return z, y, columns, torch.tensor(draw(hnp.arrays(float, len(y), elements=floats(0, 3))))


@given(problems())
def test_value_gradient_and_posterior_are_those_of_autograd(problem):
    z, y, columns, weights = problem
    found, plain = ([tensor.clone().requires_grad_() for tensor in (z, columns)] for _ in range(2))
    loss, posterior = marginal_cross_entropy(found[0], found[1] * 1, weights)
    expected = -(weights * torch.logsumexp(F.log_softmax(plain[0], 1) + plain[1], 1)).sum()
    torch.testing.assert_close(loss, expected, **CLOSE)
    gradients, expected_gradients = torch.autograd.grad(2 * loss, found), torch.autograd.grad(2 * expected, plain)
    torch.testing.assert_close(gradients, expected_gradients, **CLOSE)
    torch.testing.assert_close(posterior, torch.softmax(z + columns, 1), **CLOSE)
    assert not posterior.requires_grad
    certain = torch.full_like(columns, -torch.inf).scatter_(1, y[:, None], 0)
    loss, posterior = marginal_cross_entropy(z, certain, weights)  # which are overwritten
    torch.testing.assert_close(loss, (weights * F.cross_entropy(z, y, reduction="none")).sum(), **CLOSE)
    assert torch.equal(posterior, F.one_hot(y, 4).to(z))
    z.requires_grad_()  # an observation that says nothing costs nothing
    loss, posterior = marginal_cross_entropy(z, torch.zeros_like(columns), weights)
    (gradient,) = torch.autograd.grad(loss, z)
    for found, expected in ((loss, loss * 0), (gradient, z * 0), (posterior, torch.softmax(z, 1))):
        torch.testing.assert_close(found, expected, **CLOSE)


def test_a_second_derivative_is_refused():
    z = torch.zeros(2, 3, requires_grad=True)
    loss, _ = marginal_cross_entropy(z, torch.zeros(2, 3), torch.ones(2))
    with pytest.raises(RuntimeError, match="corrected_cross_entropy"):
        torch.autograd.grad(loss, z, create_graph=True)
