"""Losses of noisy and clean samples: through T, and of posteriors."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import batches, transition_matrices
from torch import nn
from torch.nn import functional as F

from noisytransition.losses import GoldCorrectionLoss, PosteriorLoss


@st.composite
def problems(draw):
    """Logits, labels, marks of clean rows, and T."""
    z, y = draw(batches())
    return z, y, torch.tensor(draw(hnp.arrays(bool, len(y)))), draw(transition_matrices(4, least=0.05))


def twin(z, y, is_clean, T, weight=1.0):
    """The algorithm box of the paper, row by row."""
    total = 0.0
    for n in range(len(y)):
        p = F.softmax(z[n], 0)
        total -= weight * torch.log(p[y[n]]) if is_clean[n] else torch.log((p @ T)[y[n]])
    return total / len(y)


def exact(loss, T):
    """The loss with T in double precision."""
    loss.transition_logits = nn.Parameter(torch.log(torch.tensor(T)), requires_grad=False)
    return loss


@given(problems(), st.floats(0, 3), st.booleans())
def test_the_loss_is_the_sum_of_both_losses_over_the_batch(problem, weight, learned):
    z, y, is_clean, T = problem
    loss, theta = exact(GoldCorrectionLoss(T, weight), T), torch.log(torch.tensor(T)).requires_grad_(learned)
    loss.requires_grad_(learned)
    z.requires_grad_()
    found, expected = loss(z, y, is_clean=is_clean), twin(z, y, is_clean, torch.softmax(theta, 1), weight)
    torch.testing.assert_close(found, expected)
    leaves = [(z, z), (loss.transition_logits, theta)][: 1 + learned]
    for ours, theirs in leaves:
        (gradient,) = torch.autograd.grad(found, ours, retain_graph=True)
        (of_twin,) = torch.autograd.grad(expected, theirs, retain_graph=True, materialize_grads=True)
        torch.testing.assert_close(gradient, of_twin)


def test_the_loss_of_posteriors_is_the_cross_entropy_of_these_and_of_clean_labels():
    z = torch.tensor(np.random.default_rng(0).normal(size=(6, 3)), dtype=torch.float32, requires_grad=True)
    posterior = np.random.default_rng(1).dirichlet(np.ones(3), 4)
    row, y, is_clean = torch.tensor([2, 0, 0, 3, 0, 0]), torch.tensor([0, 0, 0, 0, 1, 2]), torch.arange(6) > 3
    loss = PosteriorLoss(posterior, 0.7)(z, y, is_clean=is_clean, row=row)
    log_f = torch.log(torch.softmax(z, 1))
    noisy = (log_f[:4] * torch.tensor(posterior[row[:4]], dtype=torch.float32)).sum()
    twin = -(noisy + 0.7 * (log_f[4, 1] + log_f[5, 2])) / 6
    torch.testing.assert_close(loss, twin)
    torch.testing.assert_close(torch.autograd.grad(loss, z), torch.autograd.grad(twin, z))
