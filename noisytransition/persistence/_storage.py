"""Safetensors files with tensors, and with other values as JSON.

Reading a file runs no code. A crafted file can run code in `torch.load(weights_only=True)` before torch 2.10.
"""

import json
import os
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from skorch.history import History
from torch import Tensor

# content of a file, and version of the format
_FORMAT = "noisytransition {}, version 4"
_SCALARS = (bool, int, float, str, type(None))


def _parts_of_array(array: NDArray) -> list[Any]:
    """Numbers as a tensor; text and objects as a list, with their type and shape."""
    if array.dtype.kind in "biuf":
        return [torch.from_numpy(np.array(array, order="C"))]
    if array.dtype.kind not in "OU":
        raise TypeError(f"an array of {array.dtype} is not plain data")
    return [array.ravel().tolist(), array.dtype.str, array.shape]


def _array(parts: Sequence[Any]) -> NDArray:
    return parts[0].numpy() if len(parts) == 1 else np.array(*parts[:2]).reshape(parts[2])


def _keys_and_values(mapping: dict[Any, Any]) -> list[list[Any]]:
    return [list(mapping), list(mapping.values())]


def _dict(parts: Sequence[Any]) -> dict[Any, Any]:
    return dict(zip(*parts, strict=True))


def _epochs(history: History) -> list[dict[str, Any]]:
    """Rows of a history, without batches and without values that cannot be written."""
    return [{k: v for k, v in row.items() if is_plain(v)} | {"batches": []} for row in history]


# by type: its parts, and how a value is made of them. base/_save.py adds named tuples
KINDS: dict[type, tuple[Callable[[Any], Any], Callable[[list[Any]], Any]]] = {
    **{kind: (list, kind) for kind in (list, tuple, set, frozenset)},
    dict: (_keys_and_values, _dict),
    OrderedDict: (_keys_and_values, lambda parts: OrderedDict(_dict(parts))),
    Counter: (_keys_and_values, lambda parts: Counter(_dict(parts))),
    History: (_epochs, History),
    np.ndarray: (_parts_of_array, _array),
    np.generic: (lambda scalar: [scalar.item(), scalar.dtype.str], lambda parts: np.dtype(parts[1]).type(parts[0])),
    torch.dtype: (lambda dtype: [torch.empty(0, dtype=dtype)], lambda parts: parts[0].dtype),
    torch.device: (lambda device: [str(device)], lambda parts: torch.device(*parts)),
}


def write(path: Path, kind: str, value: Any) -> None:
    """Write a file atomically: a killed process leaves the previous file intact.

    `kind` is "fit" or "classifier". `value` consists of tensors and `KINDS` (otherwise TypeError).
    """
    tensors: dict[str, Tensor] = {}
    text = json.dumps([_FORMAT.format(kind), _encoded(value, tensors)])
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    whole = save(tensors | {"json": torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)})
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(whole)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read(path: Path, kind: str) -> Any:
    """Read a value; ValueError if the file is damaged or of another kind or version."""
    content = path.read_bytes()
    try:
        tensors = load(content)
        found, value = json.loads(tensors["json"].numpy().tobytes())
        if found != _FORMAT.format(kind):
            raise ValueError(f"it is a {found}")
        return _decoded(value, tensors)
    except Exception as error:  # a crafted file can raise any error
        raise ValueError(
            f"{str(path)!r} is not a saved {kind} of this release, or is damaged: {error}. Use another path."
        ) from error


def is_plain(value: Any) -> bool:
    """Whether a value can be written to a file."""
    try:
        _encoded(value, {})
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _encoded(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Value as JSON: a list of its kind and its parts, or a scalar. Its tensors are added to `tensors`."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Tensor):
        tensors[name := str(len(tensors))] = value
        return ["Tensor", name]
    kind = np.generic if isinstance(value, np.generic) else type(value)
    if kind not in KINDS:
        raise TypeError(f"{kind.__name__} is not plain data")
    return [kind.__name__, *(_encoded(part, tensors) for part in KINDS[kind][0](value))]


def _decoded(value: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(value, list):
        return value
    name, *parts = value
    if name == "Tensor":
        return tensors[parts[0]]
    make = {kind.__name__: make for kind, (_, make) in KINDS.items()}[name]
    return make([_decoded(part, tensors) for part in parts])
