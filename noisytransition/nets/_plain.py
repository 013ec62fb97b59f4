"""Values as tensors and plain data, which can be read from a file without running code of that file."""

from collections import OrderedDict, deque
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

# kept as they are
_SCALARS = (bool, int, float, str, type(None))
_TENSORS = (Tensor, nn.Parameter)
# containers whose items are encoded one by one, by their tags
_CONTAINERS: dict[str, type] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "size": torch.Size,
}
_TAGS = {kind: tag for tag, kind in _CONTAINERS.items()}


def encode(value: Any, *, tensors: bool = True) -> Any:
    """Encode a value in tensors, numbers, text, lists, dictionaries, and tuples ``(tag, ...)`` for all else.

    Parameters
    ----------
    value : object
    tensors : bool, default=True
        Whether a tensor is allowed.

    Raises
    ------
    TypeError
        For a value that is, or has inside, something else than tensors, numpy arrays, scalars and generators, and
        lists, tuples, sets and dictionaries of these.
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind in _TENSORS and tensors:
        return value
    if kind is list:
        return [encode(v, tensors=tensors) for v in value]
    if kind in (dict, OrderedDict):
        return _with_metadata(kind((encode(k), encode(v, tensors=tensors)) for k, v in value.items()), value)
    if kind in _TAGS:
        return (_TAGS[kind], *(encode(v, tensors=tensors) for v in value))
    if kind is deque:
        return ("deque", value.maxlen, *(encode(v, tensors=tensors) for v in value))
    return _encode_other(value)


def _with_metadata(copy: dict, original: dict) -> dict:
    """Give the copy of a ``state_dict`` the versions of its modules."""
    if hasattr(original, "_metadata"):
        copy._metadata = original._metadata  # type: ignore[attr-defined]
    return copy


def _encode_other(value: Any) -> tuple:
    """Encode what Python, numpy and torch have beside these."""
    if type(value) is complex:
        return ("complex", value.real, value.imag)
    if type(value) is np.ndarray or isinstance(value, np.generic):
        return ("array" if type(value) is np.ndarray else "scalar", *_encode_array(np.asarray(value)))
    if isinstance(value, torch.dtype | torch.device):
        return (type(value).__name__, str(value).removeprefix("torch."))
    if type(value) is np.random.RandomState:
        return ("RandomState", encode(value.get_state(legacy=False)))
    if type(value) is np.random.Generator:
        return ("Generator", encode(value.bit_generator.state))
    raise TypeError(f"{type(value).__name__} is neither a tensor nor plain data")


def _encode_array(array: np.ndarray) -> tuple[str, tuple[int, ...], Tensor]:
    """Type, shape and bytes: torch has fewer types."""
    if array.dtype.hasobject or array.dtype.names is not None:
        raise TypeError(f"an array of {array.dtype} is not plain data")
    return array.dtype.str, array.shape, torch.from_numpy(np.frombuffer(bytearray(array.tobytes()), np.uint8))


def decode(value: Any) -> Any:
    """Value that was encoded."""
    if isinstance(value, list):
        return [decode(v) for v in value]
    if isinstance(value, dict):
        return _with_metadata(type(value)((decode(k), decode(v)) for k, v in value.items()), value)
    return _decode_tagged(*value) if isinstance(value, tuple) else value


def _decode_tagged(tag: str, *items: Any) -> Any:
    if tag in _CONTAINERS:
        return _CONTAINERS[tag]([decode(item) for item in items])
    if tag == "deque":
        return deque([decode(item) for item in items[1:]], items[0])
    if tag == "complex":
        return complex(*items)
    if tag in ("array", "scalar"):
        array = np.ndarray(items[1], items[0], bytearray(items[2].numpy().tobytes()))
        return array if tag == "array" else array[()]
    if tag in ("dtype", "device"):
        return torch.device(items[0]) if tag == "device" else _named(torch, items[0], torch.dtype)
    return _generator(tag, decode(items[0]))


def _generator(kind: str, state: dict[str, Any]) -> np.random.Generator | np.random.RandomState:
    bits = _named(np.random, state["bit_generator"], type)()
    if kind == "Generator":
        bits.state = state
        return np.random.Generator(bits)
    generator = np.random.RandomState(bits)
    generator.set_state(state)
    return generator


def _named(module: Any, name: str, kind: type) -> Any:
    """Attribute of a module, of the kind that is expected: a file must not name any other."""
    found: Any = getattr(module, name)
    if not isinstance(found, kind) or (isinstance(found, type) and not issubclass(found, np.random.BitGenerator)):
        raise ValueError(f"{name!r} is no {kind.__name__}.")
    return found
