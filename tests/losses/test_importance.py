import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import batches, floats, transition_matrices
from torch.nn import functional as F

from noisytransition.losses import ImportanceReweightedLoss

pytestmark = pytest.mark.usefixtures("float64")


@st.composite
def problems(draw):
    """Logits, labels, T and dT."""
    z, y = draw(batches())
    dT = draw(hnp.arrays(np.float64, (4, 4), elements=floats(-0.02, 0.05)))
    return z.requires_grad_(), y, draw(transition_matrices(4, least=0.3)), torch.tensor(dT)


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
    loss = ImportanceReweightedLoss(T).requires_grad_(revised)
    loss.revision.data.copy_(dT)
    return loss


@pytest.mark.parametrize("revised", [False, True])
@given(problem=problems())
def test_the_loss_is_that_of_a_loop_over_samples(revised, problem):
    z, y, T, dT = problem
    loss, leaf = loss_of(T, dT, revised), dT.clone().requires_grad_()
    slow, fast = by_sample(z, y, T, leaf, constant=not revised), loss(z, y)
    torch.testing.assert_close(fast, slow)
    torch.testing.assert_close(
        torch.autograd.grad(fast, z, retain_graph=True)[0], torch.autograd.grad(slow, z, retain_graph=True)[0]
    )
    if revised:
        torch.testing.assert_close(torch.autograd.grad(fast, loss.revision), torch.autograd.grad(slow, leaf))
    far = z.detach() * 20  # improbable labels too
    torch.testing.assert_close(loss_of(np.eye(4), 0 * dT, revised)(far, y), F.cross_entropy(far, y))


@given(problems())
def test_T_is_a_transition_matrix_for_any_dT(problem):
    z, y, T, dT = problem
    loss = loss_of(T, 20 * (dT - 0.02), revised=True)
    assert (loss.transition_matrix >= 0).all()
    np.testing.assert_allclose(loss.transition_matrix.sum(1), 1)
    assert torch.isfinite(loss(z * 100, y))
    fixed = loss_of(T, 0 * dT, revised=False)
    np.testing.assert_allclose(fixed.transition_matrix, T)
    assert [name for name, _ in fixed.named_parameters()] == ["revision"]
