"""Values as JSON, with their tensors and arrays beside it: decoding runs no code of a file."""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import torch
from skorch.history import History
from torch import Tensor, nn

# kept as they are
_SCALARS = frozenset((bool, int, float, str, type(None)))
# a JSON object with this key has a tag and items, which make the value; all others are dictionaries
_TAG = "$"
# made from a list of their items
_CONTAINERS: dict[str, Callable] = {kind.__name__: kind for kind in (tuple, set, frozenset, torch.Size, History, dict)}
# safetensors' names of types; of all others the bytes are stored
DTYPES = {torch.bool: "BOOL", torch.uint8: "U8", torch.bfloat16: "BF16"}
DTYPES |= {torch.float16: "F16", torch.float32: "F32", torch.float64: "F64"}
DTYPES |= {torch.int8: "I8", torch.int16: "I16", torch.int32: "I32", torch.int64: "I64"}
# lists of at least this many floats are stored as arrays: a choice, not measured
_LONG = 16


def check_plain(value: Any, named: Collection[type] = (), *, tensors: bool = True) -> None:
    """Raise a TypeError if a value cannot be written to a file, or has tensors and `tensors` is False."""
    Encoder(named, tensors=tensors).encode(value)


def is_plain(value: Any, named: Collection[type] = (), *, tensors: bool = True) -> bool:
    """Whether a value can be written to a file; one with tensors is not where `tensors` is False."""
    try:
        check_plain(value, named, tensors=tensors)
    except (TypeError, RecursionError):
        return False
    return True


def plain_history(history: History) -> History:
    """History without what callbacks of the user's recorded that cannot be written."""
    if is_plain(history):
        return history
    return History({k: v for k, v in row.items() if is_plain(v)} for row in history)


def safe_attributes(values: dict[str, Any]) -> dict[str, Any]:
    """Values without Python's own attributes, such as ``__dict__``, which a file of someone else's may name."""
    return {name: value for name, value in values.items() if not name.startswith("__")}


class Encoder:
    """Encode values as JSON, which refers to the tensors in `stored` by index; `named` are allowed named tuples."""

    def __init__(self, named: Collection[type] = (), *, tensors: bool = True) -> None:
        self.stored: list[Tensor] = []
        self._places: dict[tuple, int] = {}
        self._named = named
        self._tensors = tensors

    def encode(self, value: Any) -> Any:
        """Value as JSON.

        Raises
        ------
        TypeError
            For a value that is, or has inside, something else than tensors, numpy arrays, scalars and generators,
            and lists, tuples, sets and dictionaries of these. A subclass is something else.
        """
        kind = type(value)
        if kind in _SCALARS:
            return value
        if kind is list:
            return self._list(value)
        if kind is dict and _TAG not in value and set(map(type, value)) <= {str}:
            return {k: v if type(v) in _SCALARS else self.encode(v) for k, v in value.items()}
        return {_TAG: self._container(kind, value) or self._tensor(kind, value) or self._other(kind, value)}

    def _list(self, items: list) -> Any:
        """Long lists of floats as an array; rows with the same names, such as those of a history, by columns."""
        kinds = set(map(type, items))
        if kinds == {float} and len(items) >= _LONG:
            return {_TAG: ["floats", self._store(torch.tensor(items, dtype=torch.float64))]}
        if kinds <= _SCALARS:
            return items
        if kinds == {dict} and items[0] and len(set(map(tuple, items))) == 1:
            columns = [self._list([row[name] for row in items]) for name in items[0]]
            return {_TAG: ["rows", self._list(list(items[0])), *columns]}
        return [self.encode(item) for item in items]

    def _container(self, kind: type, value: Any) -> list | None:
        if kind in (dict, Counter):  # MultiStepLR counts its milestones
            return [kind.__name__, self._pairs(value)]
        if kind is OrderedDict:  # a state_dict, which has the versions of its modules
            return ["OrderedDict", self._pairs(value), self.encode(getattr(value, "_metadata", None))]
        if kind in _CONTAINERS.values():
            return [kind.__name__, self._list(list(value))]
        if kind in self._named:
            return ["named", kind.__name__, self._list(list(value))]
        return ["deque", self._list(list(value)), value.maxlen] if kind is deque else None

    def _pairs(self, value: dict) -> list:
        return [[self.encode(k), self.encode(v)] for k, v in value.items()]

    def _tensor(self, kind: type, value: Any) -> list | None:
        if kind not in (Tensor, nn.Parameter) or not self._tensors:
            return None
        tensor = value.detach().resolve_conj().resolve_neg()
        if tensor.layout is torch.sparse_coo:
            parts = (tensor._indices(), tensor._values(), tensor.shape, tensor.is_coalesced())
            return ["sparse", *map(self.encode, parts)]
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested or tensor.is_meta:
            raise TypeError(f"a tensor of {tensor.layout}, quantized, nested or without values is not plain data")
        shape, stride = list(tensor.shape), None if tensor.is_contiguous() else torch.empty_like(tensor).stride()
        return [kind.__name__, self._store(tensor), _name(tensor.dtype), shape, stride, value.requires_grad]

    def _other(self, kind: type, value: Any) -> list:
        if kind is np.ndarray:
            return self._array("array", value)
        if isinstance(value, np.generic) and kind is value.dtype.type:
            return self._array("scalar", np.asarray(value))
        if kind is complex:
            return ["complex", value.real, value.imag]
        if kind in (torch.dtype, torch.device):
            return [kind.__name__, _name(value)]
        if kind is np.random.RandomState:
            return ["RandomState", self.encode(value.get_state(legacy=False))]
        if kind is np.random.Generator:
            return ["Generator", self.encode(value.bit_generator.state)]
        raise TypeError(f"{kind.__name__} is not plain data")

    def _array(self, tag: str, array: np.ndarray) -> list:
        if array.dtype == object:
            return ["objects", self._list(array.ravel().tolist()), array.shape]
        if array.dtype.names is not None:
            raise TypeError(f"an array of {array.dtype} is not plain data")
        try:
            stored = torch.from_numpy(np.require(array, requirements=["C", "W"]))
        except (TypeError, ValueError):  # a type that torch does not have
            stored = torch.from_numpy(np.frombuffer(bytearray(array.tobytes()), np.uint8))
        return [tag, self._store(stored), array.dtype.str, array.shape]

    def _store(self, tensor: Tensor) -> int:
        """Index of a tensor; one with the memory of another is stored once."""
        tensor = tensor if tensor.dtype in DTYPES else as_bytes(tensor)
        memory = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if memory not in self._places:
            self._places[memory] = len(self.stored)
            self.stored.append(tensor)
        return self._places[memory]


def as_bytes(tensor: Tensor) -> Tensor:
    """All bytes of a tensor."""
    flat = tensor.cpu().contiguous().reshape(-1)
    return flat.as_strided(flat.shape, (1,)).view(torch.uint8)  # a single number may have another stride


def _name(value: torch.dtype | torch.device) -> str:
    return str(value).removeprefix("torch.")


class Decoder:
    """Make the values that an `Encoder` encoded, from its JSON and its tensors."""

    def __init__(self, stored: list[Tensor], named: Collection[type] = ()) -> None:
        self._stored = stored
        self._named = {cls.__name__: cls for cls in named}
        self._makers: dict[str, Callable] = {
            "Tensor": self._tensor,
            "Parameter": lambda *items: nn.Parameter(self._tensor(*items), items[-1]),
            "sparse": lambda *items: torch.sparse_coo_tensor(*items[:3], is_coalesced=items[3], check_invariants=True),
            "array": self._array,
            "scalar": lambda *items: self._array(*items)[()],
            "objects": lambda items, shape: np.fromiter(items, object, len(items)).reshape(shape),
            "floats": lambda index: self._stored[index].tolist(),
            "rows": lambda names, *columns: [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)],
            "named": lambda name, items: self._named[name](*items),
            "OrderedDict": _ordered_dict,
            "Counter": lambda pairs: Counter(dict(pairs)),
            "deque": deque,
            "complex": complex,
            "device": torch.device,
            "dtype": lambda name: _named(torch, name, torch.dtype),
            "RandomState": lambda state: _generator(np.random.RandomState, state),
            "Generator": lambda state: _generator(np.random.Generator, state),
        }

    def decode(self, value: Any) -> Any:
        """Value that was encoded."""
        if type(value) is list:
            return [v if type(v) in _SCALARS else self.decode(v) for v in value]
        if type(value) is not dict:
            return value
        if _TAG not in value:
            return {k: v if type(v) in _SCALARS else self.decode(v) for k, v in value.items()}
        tag, *items = self.decode(value[_TAG])
        return (_CONTAINERS.get(tag) or self._makers[tag])(*items)

    def _tensor(self, index: int, dtype: str, shape: list[int], stride: list[int] | None, grad: bool) -> Tensor:
        tensor, kind = self._stored[index], _named(torch, dtype, torch.dtype)
        if tensor.dtype != kind:
            tensor = tensor.view(kind).reshape(shape)
        if stride is not None:
            if sum((n - 1) * step for n, step in zip(shape, stride, strict=True)) >= tensor.numel():
                raise ValueError("a tensor of a file has no gaps")
            tensor = torch.empty_strided(shape, stride, dtype=kind).copy_(tensor)
        return tensor.detach().requires_grad_(grad)

    def _array(self, index: int, dtype: str, shape: list[int]) -> np.ndarray:
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise ValueError("a file has no objects")
        return np.ndarray(shape, kind, self._stored[index].numpy())


def _ordered_dict(pairs: list, metadata: Any) -> OrderedDict:
    made = OrderedDict(pairs)
    if metadata is not None:
        made._metadata = metadata  # type: ignore[attr-defined]
    return made


def _generator(kind: type, state: dict[str, Any]) -> np.random.Generator | np.random.RandomState:
    generator = kind(_named(np.random, state["bit_generator"], type)())
    if kind is np.random.RandomState:
        generator.set_state(state)
    else:
        generator.bit_generator.state = state
    return generator


def _named(module: Any, name: str, kind: type) -> Any:
    """Attribute of a module, of the kind that is expected: a file must not name any other."""
    found: Any = getattr(module, name)
    if not isinstance(found, kind) or (isinstance(found, type) and not issubclass(found, np.random.BitGenerator)):
        raise ValueError(f"{name!r} is no {kind.__name__}.")
    return found
