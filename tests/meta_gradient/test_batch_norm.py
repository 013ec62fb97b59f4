"""Tests of the forward-mode rule of batch normalisation, against PyTorch's."""

from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad

from noisytransition.meta_gradient._batch_norm import fused_batch_norms
from noisytransition.meta_gradient._methods import _load_forward_rules

NORMS = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
SIZES = 5, 3, 4, 2, 6


def drawn(x):
    """Random numbers of the same shape and layout."""
    return torch.empty_like(x).copy_(torch.randn(x.shape, dtype=x.dtype))


def product(module, x, moved):
    """Output of a module and its tangent; `moved` have random tangents."""
    _load_forward_rules()
    torch.manual_seed(1)
    values = {"x": x, **dict(module.named_parameters())}
    tangents = {name: drawn(value) for name, value in values.items()}
    with torch.no_grad(), forward_ad.dual_level():
        duals = {
            name: forward_ad.make_dual(value.detach(), tangents[name]) if name in moved else value.detach()
            for name, value in values.items()
        }
        x = duals.pop("x")
        return forward_ad.unpack_dual(torch.func.functional_call(module, duals, (x,)))


def both(make, x, moved):
    """The product by PyTorch's rule and by ours."""
    found = []
    for rule in (nullcontext, fused_batch_norms):
        torch.manual_seed(0)
        module = make()
        with rule(module):
            found.append(product(module, x, moved))
    return found


@pytest.mark.parametrize("n_axes", NORMS)
@pytest.mark.parametrize("moved", [("x",), ("weight",), ("bias",), ("x", "bias"), ("x", "weight", "bias")])
def test_the_rule_is_that_of_pytorch(n_axes, moved):
    x = 2 + 3 * torch.randn(SIZES[:n_axes], dtype=torch.float64)
    theirs, ours = both(lambda: NORMS[n_axes](3, dtype=torch.float64), x, moved)
    for a, b in zip(theirs, ours, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "params", [{"affine": False}, {"track_running_stats": False}, {"momentum": None}, {"eps": 0.5}], ids=str
)
def test_the_rule_is_that_of_pytorch_with_other_parameters(params):
    x = torch.randn(SIZES[:4], dtype=torch.float64)
    theirs, ours = both(lambda: nn.BatchNorm2d(3, dtype=torch.float64, **params), x, ("x", "weight"))
    torch.testing.assert_close(theirs[1], ours[1], rtol=1e-10, atol=1e-10)


def test_the_rule_keeps_channels_last():
    x = torch.randn(SIZES[:4], dtype=torch.float64).to(memory_format=torch.channels_last)
    theirs, ours = both(lambda: nn.BatchNorm2d(3, dtype=torch.float64), x, ("x", "weight"))
    torch.testing.assert_close(theirs[1], ours[1], rtol=1e-10, atol=1e-10)
    assert ours[0].is_contiguous(memory_format=torch.channels_last)


def test_outputs_have_no_tangent_where_nothing_moves_them():
    theirs, ours = both(lambda: nn.BatchNorm1d(3), torch.randn(5, 3), ())
    assert theirs[1] is None
    torch.testing.assert_close(theirs[0], ours[0])
    assert ours[1] is None


def test_in_eval_mode_the_rule_is_pytorchs_own():
    x = torch.randn(SIZES[:4], dtype=torch.float64)
    theirs, ours = both(lambda: nn.BatchNorm2d(3, dtype=torch.float64).eval(), x, ("x", "weight", "bias"))
    torch.testing.assert_close(theirs[1], ours[1], rtol=0, atol=0)


def test_layers_are_as_before_after_the_with_block():
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.BatchNorm1d(3).eval())
    before = [dict(vars(layer)) for layer in module]
    with fused_batch_norms(module):
        assert ["forward" in vars(layer) for layer in module] == [False, True, True]
    assert [dict(vars(layer)) for layer in module] == before


def test_layers_are_as_before_after_an_error():
    module = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(2, 3))
    with pytest.raises(RuntimeError, match="shapes"), fused_batch_norms(module):
        module(torch.ones(5, 3))
    assert "forward" not in vars(module[0])


def test_layers_with_a_forward_pass_of_their_own_keep_it():
    class Half(nn.BatchNorm1d):
        def forward(self, x):
            return super().forward(x) / 2

    with fused_batch_norms(nn.Sequential(norm := Half(3), other := nn.InstanceNorm1d(3))):
        assert "forward" not in vars(norm)
        assert "forward" not in vars(other)


def test_a_forward_pass_that_a_layer_was_given_stays():
    norm = nn.BatchNorm1d(3)
    norm.forward = own = lambda x: 2 * x
    with fused_batch_norms(norm):
        assert norm.forward is own
    assert norm.forward is own


def test_a_layer_whose_mode_changes_in_the_pass_follows_it():
    torch.manual_seed(0)
    x = torch.randn(5, 3)
    norm = nn.BatchNorm1d(3)
    with fused_batch_norms(norm), torch.no_grad():
        of_batch = norm(x)
        norm.eval()
        torch.testing.assert_close(norm(x), x / (1 + norm.eps) ** 0.5)
    torch.testing.assert_close(of_batch.mean(0), torch.zeros(3), rtol=0, atol=1e-6)
