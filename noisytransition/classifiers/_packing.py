"""Values as JSON, with arrays and tensors beside it: what a saved classifier is made of."""

from typing import Any

import numpy as np
import torch
from skorch.history import History
from torch import Tensor

from ..transition import Calibration, TransitionUncertainty

_NAMED = {cls.__name__: cls for cls in (Calibration, TransitionUncertainty)}
# kinds of numpy's types whose arrays are written as tensors, and as text
_NUMBERS, _TEXT = "biuf", "UO"


def pack(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Value as JSON; its arrays and tensors are added to `tensors`.

    Raises
    ------
    TypeError
        For what is not plain data.
    """
    kind = type(value)
    if kind in (bool, int, float, str, type(None)):
        return value
    if kind in (list, History):
        return {"history" if kind is History else "list": [pack(v, tensors) for v in value]}
    if kind is dict:
        return {"dict": [[pack(k, tensors), pack(v, tensors)] for k, v in value.items()]}
    if kind is tuple:
        return {"tuple": [pack(v, tensors) for v in value]}
    if _NAMED.get(kind.__name__) is kind:
        return {"named": kind.__name__, "fields": [pack(v, tensors) for v in value]}
    if isinstance(value, Tensor):
        return {"tensor": _add(value.detach().cpu(), tensors)}
    if isinstance(value, torch.dtype | torch.device):
        return {kind.__name__: str(value).removeprefix("torch.")}
    if kind is np.ndarray or isinstance(value, np.generic):
        return {
            "shape" if kind is np.ndarray else "scalar": list(np.shape(value)),
            **_array(np.asarray(value), tensors),
        }
    raise TypeError(f"{kind.__name__} is not plain data")


def _array(array: Any, tensors: dict[str, Tensor]) -> dict[str, Any]:
    if array.dtype.kind in _NUMBERS and array.dtype.isnative and array.dtype.itemsize <= 8:
        return {"tensor": _add(torch.from_numpy(np.array(array)), tensors)}
    if array.dtype.kind in _TEXT and all(type(v) in (str, bool, int, float) for v in array.ravel().tolist()):
        return {"items": array.ravel().tolist(), "dtype": array.dtype.str}
    raise TypeError(f"an array of {array.dtype} is not plain data")


def _add(tensor: Tensor, tensors: dict[str, Tensor]) -> str:
    name = f"value {len(tensors)}"
    tensors[name] = tensor.contiguous().clone()
    return name


def unpack(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Value that was packed."""
    if not isinstance(value, dict):
        return value
    if "shape" in value or "scalar" in value:
        items = value.get("items")
        array: Any = tensors[value["tensor"]].numpy() if items is None else np.array(items, dtype=value["dtype"])
        return array.reshape(value["shape"]) if "shape" in value else array.reshape(())[()]
    if "named" in value:
        return _NAMED[value["named"]](*(unpack(v, tensors) for v in value["fields"]))
    (kind, content), *_ = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "device":
        return torch.device(content)
    if kind == "dtype":
        return next(v for k, v in vars(torch).items() if k == content and isinstance(v, torch.dtype))
    if kind == "dict":
        return {unpack(k, tensors): unpack(v, tensors) for k, v in content}
    return {"list": list, "tuple": tuple, "history": History}[kind](unpack(v, tensors) for v in content)
