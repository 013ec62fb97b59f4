import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from noisytransition.losses import ForwardLoss, GoldCorrectionLoss

seeds = st.integers(0, 2**31)


def problem(seed, n=9, c=4):
    rng = np.random.default_rng(seed)
    z = torch.tensor(rng.normal(size=(n, c)) * 2)
    return z, torch.tensor(rng.integers(c, size=n)), torch.tensor(rng.random(n) < 0.5), rng.dirichlet(np.ones(c), c)


def gold_loss(T):
    loss = GoldCorrectionLoss(T).double()
    loss.transition_logits = torch.log(torch.tensor(T))
    return loss


@given(seeds)
def test_the_loss_is_the_sum_of_both_losses_over_the_batch(seed):
    z, y, gold, T = problem(seed)
    total = 0.0
    for n in range(len(y)):  # the algorithm box of the paper, row by row
        p = F.softmax(z[n], 0)
        total -= torch.log(p[y[n]]) if gold[n] else torch.log((p @ torch.tensor(T))[y[n]])
    torch.testing.assert_close(gold_loss(T)(z, y + 4 * gold), total / len(y))


@given(seeds)
def test_a_batch_of_gold_rows_is_cross_entropy_and_one_without_is_the_forward_loss(seed):
    z, y, _, T = problem(seed)
    torch.testing.assert_close(gold_loss(T)(z, y + 4), F.cross_entropy(z, y))
    forward = ForwardLoss(T).double()
    forward.transition_logits = torch.log(torch.tensor(T))
    torch.testing.assert_close(gold_loss(T)(z, y), forward(z, y))


@given(seeds)
def test_no_T_is_in_the_gradient_of_gold_rows(seed):
    z, y, gold, T = problem(seed)
    other = np.roll(T, 1, axis=0)
    gradients = []
    for matrix in (T, other):
        leaf = z.clone().requires_grad_()
        gradients.append(torch.autograd.grad(gold_loss(matrix)(leaf, y + 4 * gold), leaf)[0])
    assert all(torch.isfinite(g).all() for g in gradients)
    torch.testing.assert_close(gradients[0][gold], gradients[1][gold])
    if (~gold).any():
        assert not torch.equal(gradients[0][~gold], gradients[1][~gold])


@given(seeds)
def test_duplicating_a_batch_changes_no_mean(seed):
    z, y, gold, T = problem(seed)
    loss, labels = gold_loss(T), y + 4 * gold
    torch.testing.assert_close(loss(z.repeat(2, 1), labels.repeat(2)), loss(z, labels))


def test_an_empty_column_and_extreme_logits_cost_a_finite_loss():
    z = torch.tensor([[200.0, -200.0], [-200.0, 200.0]], requires_grad=True)
    loss = GoldCorrectionLoss([[1, 0], [1, 0]])(z, torch.tensor([1, 2]))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(z.grad).all()
