"""Safetensors files with tensors, and with other values as JSON in the header. Reading a file runs no code."""

import json
import os
from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save
from skorch.history import History
from torch import Tensor, nn

_FORMAT, _VERSION = "noisytransition", "3"
_SCALARS = (bool, int, float, str, type(None))
# key of a JSON object that encodes a tagged value; other JSON objects are dictionaries
_TAG = "$"
_LISTS: dict[str, Callable] = {kind.__name__: kind for kind in (tuple, set, frozenset, History)}
_MAPPINGS: dict[str, Callable] = {kind.__name__: kind for kind in (dict, OrderedDict, Counter)}

# named tuples of fitted attributes, by name
NAMED: dict[str, Callable] = {}


def write(path: Path, kind: str, value: Any, about: Any = None) -> None:
    """Write a file atomically: a killed process leaves the previous file intact.

    `kind` is "fit" or "classifier". `value` consists of tensors, numpy arrays, scalars, and lists, tuples, sets and
    dictionaries of these (otherwise TypeError). `about` has information that can be read without the value.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {str(path.parent)!r} does not exist. Create it, or use another path.")
    tensors: dict[str, Tensor] = {}
    content = json.dumps(_encoded(value, tensors))
    head = {"format": _FORMAT, "kind": kind, "version": _VERSION, "about": json.dumps(about), "content": content}
    whole = save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}, head)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(whole)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def about(path: Path, kind: str) -> Any:
    """Read the information about the value; ValueError if the file is of another kind or version."""
    return json.loads(_head(path, kind)["about"])


def read(path: Path, kind: str) -> Any:
    """Read the value; ValueError if the file is damaged or of another kind or version."""
    head = _head(path, kind)
    try:
        return _decoded(json.loads(head["content"]), load(path.read_bytes()))
    except Exception as error:  # a crafted file can raise any error
        raise ValueError(f"{str(path)!r} is damaged and cannot be read: {error}") from error


def _head(path: Path, kind: str) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            text = file.read(min(size, 10**8))  # safetensors' own limit
        head: dict[str, str] = json.loads(text)["__metadata__"]
        is_ours = head["format"] == _FORMAT and head["kind"] == kind
        version = head["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        is_ours = False
    if not is_ours:
        raise ValueError(f"{str(path)!r} is not a saved {kind}, or is damaged. Use another path.")
    if version != _VERSION:
        raise ValueError(
            f"{str(path)!r} has format version {version}, not {_VERSION}. Save it again with this release."
        )
    return head


def is_plain(value: Any) -> bool:
    """Whether a value can be written to a file."""
    try:
        _encoded(value, {})
    except (TypeError, RecursionError):
        return False
    return True


def plain_history(history: History) -> History:
    """History of epochs, without batches and without values that cannot be written."""
    return History({k: v for k, v in row.items() if is_plain(v)} | {"batches": []} for row in history)


# ---------------------------------------------------------------------------- values as JSON
def _encoded(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Value as JSON; its tensors are added to `tensors` and referred to by name."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is list:
        return [_encoded(item, tensors) for item in value]
    if kind is dict and _TAG not in value and set(map(type, value)) <= {str}:
        return {name: _encoded(item, tensors) for name, item in value.items()}
    return {_TAG: _tagged(kind, value, tensors)}


def _tagged(kind: type, value: Any, tensors: dict[str, Tensor]) -> list:
    """Tag, and arguments of its function in `_MAKERS`."""
    name = kind.__name__
    if kind in (Tensor, nn.Parameter):
        tensors[place := str(len(tensors))] = value
        return ["tensor", place]
    if kind is np.ndarray and value.ndim and value.dtype.kind in "biuf":
        return ["array", _encoded(torch.from_numpy(np.array(value, order="C")), tensors)]
    if kind is np.ndarray and value.dtype.kind in "OUbiuf":
        return ["values", _encoded(value.ravel().tolist(), tensors), value.dtype.str, list(value.shape)]
    if isinstance(value, np.generic) and type(value.item()) in _SCALARS:
        return ["scalar", value.item(), value.dtype.str]
    if kind in _LISTS.values() or kind is NAMED.get(name):
        return [name, _encoded(list(value), tensors)]
    if kind in _MAPPINGS.values():
        return [name, _encoded([list(pair) for pair in value.items()], tensors)]
    if kind in (torch.dtype, torch.device):
        return [name, str(value).removeprefix("torch.")]
    raise TypeError(f"{name} is not plain data")


def _decoded(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_decoded(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if _TAG not in value:
        return {name: _decoded(item, tensors) for name, item in value.items()}
    tag, *items = _decoded(value[_TAG], tensors)
    if tag in NAMED:
        return NAMED[tag](*items[0])
    return tensors[items[0]] if tag == "tensor" else _MAKERS[tag](*items)


def _dtype(name: str) -> torch.dtype:
    if not isinstance(found := getattr(torch, name), torch.dtype):
        raise ValueError(f"{name!r} is not a torch.dtype")
    return found


_MAKERS: dict[str, Callable] = _LISTS | {
    "dict": dict,
    "OrderedDict": OrderedDict,
    "Counter": lambda pairs: Counter(dict(pairs)),
    "array": lambda tensor: tensor.numpy(),
    "values": lambda items, dtype, shape: np.array(items, np.dtype(dtype)).reshape(shape),
    "scalar": lambda item, dtype: np.dtype(dtype).type(item),
    "dtype": _dtype,
    "device": torch.device,
}
