"""Forward passes of a network: of one input or of several parts, in half precision, and with other weights."""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

#: types that `torch.autocast` computes in, by the values of the parameter `precision`
PRECISIONS = {"float32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
ARRAYS, _WITH_PARTS = (np.ndarray, Tensor), (Mapping, tuple, list)


def has_parts(x: Any) -> bool:
    """Whether an input is a mapping or a sequence of arrays; an array, a sparse matrix or a Dataset has no parts."""
    return not isinstance(x, ARRAYS) and isinstance(x, _WITH_PARTS) and not hasattr(x, "tocsr")


def each_part(function: Callable[..., Any], x: Any, *others: Any) -> Any:
    """Apply a function to an input, or to each of its parts, and to the same parts of others."""
    if not has_parts(x):
        return function(x, *others)
    if isinstance(x, Mapping):
        return {name: function(part, *(other[name] for other in others)) for name, part in x.items()}
    return tuple(map(function, x, *others))


def first_part(x: Any) -> Any:
    """An input, or the first of its parts: all have the same rows."""
    return next(iter(x.values() if isinstance(x, Mapping) else x)) if has_parts(x) else x


def _arguments(x: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by which a module takes a batch: parts of a mapping by name, of a sequence in their order."""
    return ((), dict(x)) if isinstance(x, Mapping) else (tuple(x), {}) if has_parts(x) else ((x,), {})


def full_precision(output: Any) -> Tensor:
    """Logits of an output, in float32: losses, T and probabilities need more than the digits of half precision."""
    logits: Tensor = output if isinstance(output, Tensor) else getattr(output, "logits", output)
    return logits.float() if getattr(logits, "dtype", None) in (torch.float16, torch.bfloat16) else logits


def logits_of(forward: Callable[..., Any], x: Any, precision: str = "float32", **params: object) -> Tensor:
    """Logits in full precision, by a forward pass in the given one.

    Parameters
    ----------
    forward : callable
        A module, or what calls one.
    x : Tensor of shape (n_samples, ...), or a mapping or sequence of them
    precision : {"float32", "bf16", "fp16"}, default="float32"
        "float32": the module's own types.
    **params
        Of the forward pass.
    """
    args, parts = _arguments(x)
    if (dtype := PRECISIONS[precision]) is None:
        return full_precision(forward(*args, **parts, **params))
    with torch.autocast(first_part(x).device.type, dtype=dtype):
        return full_precision(forward(*args, **parts, **params))


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


def called_with(
    module: nn.Module, places: Mapping[str, str], tensors: Mapping[str, Tensor], /, *args: Any, **kwargs: Any
) -> Any:
    """Output of a module whose parameters and buffers of these names are replaced."""
    replaced = {place: tensors[name] for place, name in places.items() if name in tensors}
    return functional_call(module, replaced, args, kwargs, tie_weights=False)
