"""Forward passes with other parameters and buffers in the places of a module's own."""

from collections.abc import Mapping
from itertools import chain

from torch import Tensor, nn
from torch.func import functional_call


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
