"""Methods for the tangent ``u = J_W z . (rate * g)``, with g the gradient of the clean loss at W_hat.

They differ in cost and in the modules that they can differentiate. Except for "difference", results agree up to
rounding errors (1e-10 in float64, see tests/meta_gradient/test_look_ahead.py).
"""

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel

from .._precision import PRECISIONS
from ._batch_norm import fused_batch_norms
from ._factored import factored, is_relu_mlp
from ._point import Point, length_of

# (point, cotangent of its logits, clean batch) -> (clean loss at W_hat, tangent of the logits)
Method = Callable[[Point, Tensor, tuple[Tensor, Tensor]], tuple[Tensor, Tensor]]


def clean_gradient(
    point: Point, weights: Sequence[Tensor], meta: tuple[Tensor, Tensor]
) -> tuple[Tensor, Sequence[Tensor]]:
    """Cross-entropy of the clean batch at `weights`, and its gradient there."""
    loss = nn.functional.cross_entropy(point(weights, meta[0]), meta[1])
    gradient = torch.autograd.grad(point.up(loss), weights, allow_unused=True, materialize_grads=True)
    return loss.detach(), point.down(gradient)


@cache
def _load_forward_rules() -> None:
    """Import torch's forward-mode rules without the FutureWarning that torch gives about them on first use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        with suppress(ImportError):
            import_module("torch._decomp.decompositions_for_jvp")


def dual_tangent(point: Point, direction: Sequence[Tensor]) -> Tensor:
    """One forward-mode pass, under ``no_grad``: autograd would record the tangents otherwise."""
    _load_forward_rules()
    with point.replayed(), torch.no_grad(), forward_ad.dual_level(), fused_batch_norms(point.module):
        weights = [forward_ad.make_dual(w.detach(), d) for w, d in zip(point.weights, direction, strict=True)]
        tangent = forward_ad.unpack_dual(point(weights, point.x)).tangent
    return torch.zeros_like(point.logits) if tangent is None else tangent


def math_tangent(point: Point, direction: Sequence[Tensor]) -> Tensor:
    """As `dual_tangent`, with attention by its definition: the fused kernels have no forward-mode rule."""
    with sdpa_kernel(SDPBackend.MATH):
        return dual_tangent(point, direction)


def difference_tangent(point: Point, direction: Sequence[Tensor]) -> Tensor:
    """Forward difference along the direction: approximate, for modules without second derivatives in autograd."""
    length = length_of(direction)
    eps = torch.finfo(PRECISIONS[point.precision] or point.logits.dtype).eps
    step = eps**0.5 / length.clamp_min(torch.finfo(length.dtype).tiny)  # without a direction, nothing moves
    with point.replayed(), torch.no_grad():
        moved = torch._foreach_add(point.weights, torch._foreach_mul(list(direction), step))
        return (point(moved, point.x) - point.logits) / step


def _by_tangent(tangent: Callable[[Point, Sequence[Tensor]], Tensor]) -> Method:
    def method(point: Point, cotangent: Tensor, meta: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        loss, g = clean_gradient(point, point.stepped(point.gradient(cotangent)), meta)
        direction, length = point.normalized(point.scaled(g))
        return loss, tangent(point, direction) * length

    return method


def double_vjp(point: Point, cotangent: Tensor, meta: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Reverse mode twice: the gradient is linear in the cotangent, and the transpose of this map gives the tangent."""
    cotangent = cotangent.detach().requires_grad_()
    v = point.gradient(cotangent, create_graph=True)
    loss, g = clean_gradient(point, point.stepped(v), meta)
    direction, length = point.normalized(point.scaled(g))
    pairs = [(a, b) for a, b in zip(v, direction, strict=True) if a.requires_grad]
    (u,) = torch.autograd.grad([a for a, _ in pairs], cotangent, [b for _, b in pairs], retain_graph=True)
    return loss, u * length


METHODS: dict[str, Method] = {
    "factored": factored,
    "dual": _by_tangent(dual_tangent),
    "dual-math": _by_tangent(math_tangent),
    "double-vjp": double_vjp,
    "difference": _by_tangent(difference_tangent),
}


def candidate_methods(module: nn.Module) -> tuple[str, ...]:
    """Methods to try for this module, the fastest first; the next one is used where autograd lacks a rule.

    The order is fixed, not timed: methods differ by rounding errors, and a fit must be reproducible bit by bit. Batch
    normalisation is slow to differentiate twice in reverse mode, so that forward mode comes first with it (see
    examples/benchmarks/results/cost.md).

    Parameters
    ----------
    module : nn.Module
        The network that looks ahead.

    Returns
    -------
    tuple of str
        Names in `METHODS`. All are exact but the last, "difference".
    """
    if is_relu_mlp(module):
        return ("factored", "double-vjp", "dual")
    if any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in module.modules()):
        return ("dual", "dual-math", "double-vjp", "difference")
    return ("double-vjp", "dual", "dual-math", "difference")
