"""Parameter names of a classifier, from its constructors and from skorch."""

import inspect
from functools import cache
from typing import TypeVar

from skorch import NeuralNet, NeuralNetClassifier

Class = TypeVar("Class", bound=type)

# prefixes of nested skorch parameters that users can set
_PREFIXES = ("module", "optimizer", "iterator_train", "iterator_valid", "callbacks", "compile")
# skorch parameters that the classifiers set themselves
_RESERVED = {"criterion", "predict_nonlinearity", "classes", "warm_start", "dataset", "torch_load_kwargs"}
# skorch parameters that users can set
NET_NAMES = {name for net in (NeuralNet, NeuralNetClassifier) for name in inspect.signature(net).parameters}
NET_NAMES -= {"args", "kwargs", *_RESERVED}

# attribute of a constructor with its own signature, without the parameters of parents
_WRITTEN = "__written_signature__"


@cache
def is_net_name(name: str) -> bool:
    """Whether a name is a skorch parameter that users can set."""
    head, dunder, tail = name.partition("__")
    return (head in _PREFIXES and bool(tail)) if dunder else name in NET_NAMES


def with_merged_signature(cls: Class) -> Class:
    """Add the parameters of parent classes to the signature of a constructor."""
    if (init := vars(cls).get("__init__")) is not None:
        setattr(init, _WRITTEN, inspect.signature(init))
        init.__signature__ = merged_signature(cls)
    return cls


@cache
def merged_signature(cls: type) -> inspect.Signature:
    """Replace each ``**net_params`` in the signature of a class by the parameters of its parents.

    Like Python, this stops at a constructor without ``**``, which passes no parameters to its parents.
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
