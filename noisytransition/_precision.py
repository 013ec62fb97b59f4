"""Half precision: networks compute in it, and losses, T and probabilities in float32."""

from collections.abc import Callable

import torch
from torch import Tensor

#: types that `torch.autocast` computes in, by the values of the parameter `precision`
PRECISIONS = {"float32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


def full_precision(logits: Tensor) -> Tensor:
    """Convert logits of half precision to float32: losses, T and probabilities need more than their digits."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def logits_of(forward: Callable[..., Tensor], x: Tensor, precision: str = "float32", **params: object) -> Tensor:
    """Logits in full precision, by a forward pass in the given one.

    Parameters
    ----------
    forward : callable
        A module, or what calls one.
    x : Tensor of shape (n_samples, ...)
    precision : {"float32", "bf16", "fp16"}, default="float32"
        "float32": the module's own types.
    **params
        Of the forward pass.
    """
    if (dtype := PRECISIONS[precision]) is None:
        return full_precision(forward(x, **params))
    with torch.autocast(x.device.type, dtype=dtype):
        return full_precision(forward(x, **params))
