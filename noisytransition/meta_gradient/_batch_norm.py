"""Forward-mode rule of batch normalisation in training mode, by its backward kernel.

PyTorch's rule is made of about fifteen operations. But the derivative of the normalised rows for their inputs is a
symmetric matrix, so that the product with a tangent is what the backward kernel computes of a gradient:
``gamma / sigma * (t - mean(t) - x_hat * mean(x_hat * t))``.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode

_FOR_INPUTS = [True, False, False]  # gradients for inputs, weight and bias


class FusedBatchNorm(TorchFunctionMode):
    """Inside of it, `torch.nn.functional.batch_norm` has the rule of this module.

    For forward mode under ``no_grad``: the results have tangents, and no graph.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return (batch_norm if function is nn.functional.batch_norm else function)(*args, **(kwargs or {}))


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """As `torch.nn.functional.batch_norm`, for dual numbers."""
    if not training:
        return nn.functional.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    (x, of_x), (weight, of_weight), (bias, of_bias) = (_parts(dual) for dual in (input, weight, bias))
    kept = running_mean, running_var
    y, mean, inverse_std = torch.native_batch_norm(x, weight, bias, *kept, True, momentum, eps)
    if of_x is of_weight is of_bias is None:
        return y
    tangent = torch.zeros_like(y)
    if of_x is not None:
        rest = weight, *kept, mean, inverse_std, True, eps
        tangent = torch.ops.aten.native_batch_norm_backward(of_x, x, *rest, _FOR_INPUTS)[0]
    shape = [-1] + [1] * (x.ndim - 2)
    if of_weight is not None:
        scale = of_weight * inverse_std
        tangent.addcmul_(x, scale.view(shape)).sub_((scale * mean).view(shape))
    if of_bias is not None:
        tangent.add_(of_bias.view(shape))
    return forward_ad.make_dual(y, tangent)


def _parts(dual: Tensor | None) -> tuple[Any, Tensor | None]:
    return (None, None) if dual is None else tuple(forward_ad.unpack_dual(dual))
