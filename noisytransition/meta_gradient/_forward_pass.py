"""Forward passes of a network: in half precision, and with other weights in the places of its own."""

from collections.abc import Callable, Mapping
from itertools import chain

import torch
from torch import Tensor, nn
from torch.func import functional_call

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


def places_of(module: nn.Module, tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Which of a module's parameters and buffers, by their names, stands in each of its places.

    Weights that are tied have several places. A submodule that occurs twice has one: `functional_call` with
    ``tie_weights=True`` replaces its weights twice, and then cannot put them back.
    """
    names = {id(tensor): name for name, tensor in tensors.items()}
    return {
        f"{prefix}.{key}" if prefix else key: names[id(tensor)]
        for prefix, part in module.named_modules()
        for key, tensor in chain(part._parameters.items(), part._buffers.items())
        if id(tensor) in names
    }


def called_with(module: nn.Module, places: Mapping[str, str], tensors: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """Output of a module whose parameters and buffers of these names are replaced."""
    replaced = {place: tensors[name] for place, name in places.items() if name in tensors}
    return functional_call(module, replaced, (x,), tie_weights=False)
