"""Forward passes of a network: inputs with several parts, half precision, replaced weights."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

#: types for `torch.autocast`, by the values of the parameter `precision`
PRECISIONS = {"float32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
ARRAYS = (np.ndarray, Tensor)
_WITH_PARTS = (Mapping, tuple, list)


def has_parts(x: Any) -> bool:
    """Whether an input is a mapping or sequence of arrays, not an array, a sparse matrix or a Dataset."""
    # arrays first, since a test for Mapping takes longer
    return not isinstance(x, ARRAYS) and isinstance(x, _WITH_PARTS) and not hasattr(x, "tocsr")


def each_part(function: Callable[..., Any], x: Any, *others: Any) -> Any:
    """Apply a function to an input or to each of its parts, together with the same parts of other inputs."""
    if not has_parts(x):
        return function(x, *others)
    if isinstance(x, Mapping):
        return {name: function(part, *(other[name] for other in others)) for name, part in x.items()}
    return tuple(map(function, x, *others))


def first_part(x: Any) -> Any:
    """Return the input or its first part; all parts have the same samples."""
    return next(iter(x.values() if isinstance(x, Mapping) else x)) if has_parts(x) else x


def logits_of(forward: Callable[..., Any], x: Any, precision: str = "float32", **params: object) -> Tensor:
    """Run a forward pass in the given precision and return the logits in at least float32.

    `forward` is a module or a function that calls one. It gets a mapping by keyword, a sequence by position. "float32"
    keeps the module's own types.
    """
    args, named = ((), x) if isinstance(x, Mapping) else (x if has_parts(x) else (x,), {})
    dtype = PRECISIONS[precision]
    with torch.autocast(first_part(x).device.type, dtype=dtype) if dtype else nullcontext():
        output = forward(*args, **named, **params)
    logits: Tensor = output if isinstance(output, Tensor) else getattr(output, "logits", output)
    return logits.float() if getattr(logits, "dtype", None) in (torch.float16, torch.bfloat16) else logits


def places_of(module: nn.Module, tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Map each path of a parameter or buffer in the module to its name in `tensors`.

    Tied weights have several paths, and a submodule that occurs twice has one. `functional_call` with
    ``tie_weights=True`` would replace the weights of such a submodule twice and could not restore them.
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
    """Call a module with its parameters and buffers replaced by `tensors`, by name."""
    replaced = {place: tensors[name] for place, name in places.items() if name in tensors}
    return functional_call(module, replaced, args, kwargs, tie_weights=False)
