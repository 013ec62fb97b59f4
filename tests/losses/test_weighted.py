import pytest
import torch
from hypothesis import given
from reference.meta_weight_net import weight_gradient, weighted_loss
from strategies import batches
from torch import nn
from torch.nn import functional as F

from noisytransition.losses import WeightedLoss
from noisytransition.meta_gradient import look_ahead

CLOSE = {"rtol": 1e-9, "atol": 1e-12}


def small_loss():
    torch.manual_seed(0)
    return WeightedLoss().double()


@given(batches())
def test_loss_and_cotangent_are_those_of_the_twin(batch):
    (z, y), loss = batch, small_loss()
    z.requires_grad_()
    twin = weighted_loss(z, y, loss.weight_net)
    torch.testing.assert_close(loss(z, y), twin, **CLOSE)
    expected = torch.autograd.grad(twin, z)[0]
    torch.testing.assert_close(torch.autograd.grad(loss(z, y), z)[0], expected, **CLOSE)
    torch.testing.assert_close(loss.cotangent(z.detach(), y), expected, **CLOSE)
    loss.weight_net[2].weight.data.zero_()  # all weights are one
    loss.weight_net[2].bias.data.fill_(100.0)
    torch.testing.assert_close(loss(z, y), F.cross_entropy(z, y), **CLOSE)
    assert loss.shares(torch.ones(5)).sum().item() == pytest.approx(1)


@pytest.mark.parametrize(
    ("kind", "method"),
    [("mlp", "factored"), ("mlp", "dual"), ("mlp", "double-vjp"), ("batch-norm", "dual"), ("batch-norm", "double-vjp")],
)
def test_the_look_ahead_gives_the_gradient_of_the_double_backward(kind, method):
    torch.manual_seed(0)
    between = [nn.BatchNorm1d(6), nn.Tanh()] if kind == "batch-norm" else [nn.ReLU()]
    module = nn.Sequential(nn.Linear(4, 6), *between, nn.Linear(6, 3)).double()
    loss = WeightedLoss().double()
    noisy, meta = ((torch.randn(n, 4).double(), torch.randint(3, (n,))) for n in (12, 9))
    rates = {name: 0.3 for name, _ in module.named_parameters()}
    expected = weight_gradient(module, loss.weight_net, 0.3, noisy, meta)
    ahead = look_ahead(module, noisy[0], lambda z: loss.cotangent(z, noisy[1]), meta, rates, methods=(method,))
    got = loss.meta_gradients(ahead.logits.detach(), noisy[1], ahead.tangent)
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, theirs, **CLOSE)


def test_logits_in_another_precision_than_the_weights():
    loss = WeightedLoss()
    z, y = torch.zeros(2, 3, dtype=torch.float64), torch.tensor([0, 1])
    assert loss(z, y).dtype is torch.float64
    assert loss.meta_gradients(z, y, torch.ones_like(z))[0].dtype is torch.float32
