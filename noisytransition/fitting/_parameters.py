"""Parameters of a classifier: those that its constructor names, and those of skorch, under skorch's names."""

import copy
import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np
import torch
from skorch import NeuralNet, NeuralNetClassifier
from skorch.callbacks import Callback
from torch import nn

Module = type[nn.Module] | nn.Module | str
Optimizer = Callable[..., torch.optim.Optimizer] | str
Callbacks = Sequence[Callback | type[Callback] | tuple[str, Callback]] | None
RandomState = int | np.random.RandomState | None
Class = TypeVar("Class", bound=type)

# skorch's prefixes of nested parameters that the user may set
_PREFIXES = ("module", "optimizer", "iterator_train", "iterator_valid", "callbacks", "compile")
# parameters of skorch that the classifiers set themselves
_RESERVED = {"criterion", "predict_nonlinearity", "classes", "warm_start", "dataset", "torch_load_kwargs"}
# parameters of skorch that the user may set
NET_NAMES = {name for net in (NeuralNet, NeuralNetClassifier) for name in inspect.signature(net).parameters}
NET_NAMES -= {"args", "kwargs", *_RESERVED}

# optimisers of torch by their names in small letters
OPTIMIZERS = {
    name.lower(): value
    for name, value in vars(torch.optim).items()
    if isinstance(value, type) and issubclass(value, torch.optim.Optimizer) and value is not torch.optim.Optimizer
}
# the default network by its names, and what each sets of it
MODULES: dict[str, dict[str, Any]] = {"mlp": {}, "linear": {"module__hidden": ()}}

# attribute of a constructor: its signature as written, without the parameters of parents
_WRITTEN = "__written_signature__"


def as_python(value: Any) -> Any:
    """Convert a number of numpy's, as grids of arrays give them: torch's loaders take no other integers than int."""
    return value.item() if isinstance(value, np.generic) else value


def as_optimizer(given: Optimizer) -> Callable[..., torch.optim.Optimizer]:
    """Class of an optimiser that may be named, such as "adamw"."""
    return OPTIMIZERS[given.lower()] if isinstance(given, str) else given


@cache
def is_net_name(name: str) -> bool:
    """Whether a name is a parameter of skorch that the user may set."""
    head, dunder, tail = name.partition("__")
    return (head in _PREFIXES and bool(tail)) if dunder else name in NET_NAMES


def with_merged_signature(cls: Class) -> Class:
    """Show in the signature of a class's constructor the parameters of its parents."""
    if (init := vars(cls).get("__init__")) is not None:
        setattr(init, _WRITTEN, inspect.signature(init))
        init.__signature__ = merged_signature(cls)
    return cls


@cache
def merged_signature(cls: type) -> inspect.Signature:
    """Parameters of the constructors of a class and of all its parents, in place of each ``**net_params``.

    The constructors are those that Python calls, in the order of calls: one without ``**`` passes nothing on.
    """
    found: dict[str, inspect.Parameter] = {}
    for init in (vars(base)["__init__"] for base in cls.__mro__ if base is not object and "__init__" in vars(base)):
        own = (getattr(init, _WRITTEN, None) or inspect.signature(init)).parameters
        kept = [
            p for p in own.values() if p.kind is p.KEYWORD_ONLY or (not found and p.kind is p.POSITIONAL_OR_KEYWORD)
        ]
        found = found | {p.name: p for p in kept if p.name not in found}
        if all(p.kind is not p.VAR_KEYWORD for p in own.values()):
            break
    return inspect.Signature(list(found.values()))


def net_params_of(shared: dict[str, Any], module: nn.Module | None, own: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a net.

    Parameters
    ----------
    shared : dict
        Those of the fit.
    module : nn.Module or None
        Trained module to continue from; None: that of the fit.
    own : dict
        Those of the stage, which override.
    """
    params = {name: value for name, value in shared.items() if name != "callbacks"}
    if "optimizer" in own:
        params = {name: value for name, value in params.items() if not name.startswith("optimizer__")}
    given = params["module"] if module is None else module
    if isinstance(given, nn.Module):
        params = {name: value for name, value in params.items() if not name.startswith("module__")}
        params["module"] = copy.deepcopy(given)
    params |= own
    return params | {"optimizer": as_optimizer(params["optimizer"])}
