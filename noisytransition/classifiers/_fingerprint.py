"""Texts of values, functions and classes by what they do, so that an edited one is told apart."""

import copyreg
import dis
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module, metadata
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import joblib
import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor, nn
from torch.nn.modules.module import _WrappedHook
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from .._processes import is_worker
from ..nets import canonical, uncompiled
from ._parameters import as_python

# types whose repr describes a value completely
_PLAIN = (str, bytes, bool, int, float, complex, type(None), type(...), np.generic, torch.dtype, torch.device)
# attributes of classes that say nothing of what they do
_OF_PYTHON = {"__dict__", "__weakref__", "__module__", "__doc__", "__qualname__", "__annotations__", "__annotate__"}
_OF_PYTHON |= {"__annotations_cache__", "__annotate_func__", "__firstlineno__", "__static_attributes__"}
_OF_PYTHON |= {"__abstractmethods__", "_abc_impl", "__orig_bases__", "__parameters__"}
_OF_PYTHON |= {"__slotnames__"}  # set when an instance is pickled for the first time
# attributes of modules that torch sets; hooks of the user's are among them
_OF_TORCH = set(vars(nn.Module())) | {"_flat_weights", "_flat_weight_refs"}


class NotDescribable(Exception):
    """Raised for what a later fit could not recognise."""


class Fingerprint:
    """Text of one value; what is met again inside it is described once.

    Parameters
    ----------
    name : str
        Name of the value in errors.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._met: dict[int, tuple[str, object]] = {}  # keeps what it met: a new object must not get its id

    def of(self, value: Any, *, in_code: bool = False) -> str:
        """Describe a value; `in_code`: the code of a function or class leads to it, so that it needs no name."""
        if isinstance(given := getattr(value, "fit_name", None), str):
            return f"fit_name {given!r}"
        if isinstance(value, _PLAIN):
            return repr(as_python(value))
        if id(value) in self._met:
            return self._met[id(value)][0]
        self._met[id(value)] = f"<{len(self._met)}>", value
        if issparse(value) and value.ndim == 2:  # of some formats it is a dict
            return _sparse(value)
        if isinstance(value, Mapping):
            return repr({self.of(k, in_code=in_code): self.of(v, in_code=in_code) for k, v in value.items()})
        if isinstance(value, list | tuple | range):
            return repr([self.of(v, in_code=in_code) for v in value])
        if isinstance(value, set | frozenset):
            return repr(sorted(self._apart(v, in_code) for v in value))
        if isinstance(value, np.ndarray | Tensor):
            return _array(value)
        if isinstance(value, nn.Module):
            return self._module(value, in_code)
        if isinstance(value, type):
            return self._class(value, in_code)
        if inner := _inside(value):
            return type(value).__name__ + self.of(inner, in_code=in_code)
        if isinstance(value, ModuleType):
            return f"module {value.__name__} {version_of(value.__name__)}"
        if callable(value) and hasattr(value, "__qualname__"):
            return self._function(value, in_code)
        return self._object(value, in_code)

    def _apart(self, value: Any, in_code: bool) -> str:
        """Describe an item of a set as if it were the first: sets have another order in each process."""
        alone = Fingerprint(self.name)
        alone._met = dict(self._met)
        return alone.of(value, in_code=in_code)

    # ---- code
    def _function(self, value: Any, in_code: bool) -> str:
        module = value.__module__ or "builtins"
        text = f"{module}.{value.__qualname__}"
        if not hasattr(value, "__code__") and not hasattr(value, "__wrapped__"):  # written in C
            of = getattr(value, "__self__", None)
            return f"{text} {version_of(module)} {'' if isinstance(of, type | ModuleType) else self.of(of)}"
        if not in_code and not _is_library(module):
            self._check_name(value)
        if not isinstance(value, FunctionType):  # a cache around a function
            return f"{text} {self.of(value.__wrapped__, in_code=True)}"
        if _is_library(module) and _found(value) is value:
            return f"{text} {version_of(module)}"
        own = {k: v for k, v in vars(value).items() if not k.startswith("__")}
        values = [value.__defaults__, value.__kwdefaults__, own, *_cells(value), *_globals(value)]
        return f"{text} {joblib.hash([self._code(value.__code__), *(self.of(v, in_code=True) for v in values)])}"

    def _code(self, code: CodeType) -> list[Any]:
        """What Python runs, without names of files and numbers of lines."""
        consts = [self._code(c) if isinstance(c, CodeType) else self.of(c) for c in code.co_consts]
        names = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
        counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
        return [code.co_code, code.co_exceptiontable, consts, names, counts]

    def _class(self, cls: type, in_code: bool) -> str:
        text = f"{cls.__module__}.{cls.__qualname__}"
        if _is_library(cls.__module__):
            bases = "" if _found(cls) is cls else repr([self.of(base, in_code=True) for base in cls.__bases__])
            return f"{text} {version_of(cls.__module__)}{bases}"
        if not in_code:
            self._check_name(cls)
        own = {k: v for k, v in sorted(vars(cls).items()) if k not in _OF_PYTHON and not inspect.isdatadescriptor(v)}
        own |= {k: v for k, v in vars(cls).items() if isinstance(v, property)}
        if issubclass(cls, Optimizer) and "step" in own:
            own["step"] = getattr(own["step"], "__wrapped__", own["step"])  # the first instance wraps it
        values = [*own.values(), *cls.__bases__]
        return f"{text} {joblib.hash([list(own), *(self.of(v, in_code=True) for v in values)])}"

    def _check_name(self, value: Any) -> None:
        """Raise for a function or a class that cannot be imported by module and name."""
        if _found(value) is not value and not _is_of_main_process(value):
            raise NotDescribable(
                f"{self.name} is or has {value!r}, which a later fit could not recognise: it is a lambda, or was made "
                "inside a function. Define it at the top of a module, or give it a name of its own: "
                "f.fit_name = 'crop and flip, 2'."
            )

    # ---- objects
    def _module(self, module: nn.Module, in_code: bool) -> str:
        """Describe all modules inside by class and attributes, and all tensors by content."""
        parts: list[Any] = []
        module = uncompiled(module)
        for path, inner in module.named_modules():
            own = {k: v for k, v in vars(inner).items() if k not in _OF_TORCH}
            hooks = [
                list(vars(inner)[k].values()) for k in sorted(_OF_TORCH) if k.endswith("_hooks") and vars(inner)[k]
            ]
            parts += [path, *(self.of(v, in_code=in_code) for v in (type(inner), list(own), list(own.values()), hooks))]
        tensors = [*module.named_parameters(), *module.named_buffers()]
        parts += [[name, tensor.requires_grad, _array(tensor)] for name, tensor in tensors]
        return f"{type(module).__qualname__} {joblib.hash(parts)}"

    def _object(self, value: Any, in_code: bool) -> str:
        """Describe an object by what pickle would write of it."""
        reduce = copyreg.dispatch_table.get(type(value))
        try:
            reduced: Any = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception as error:  # this calls code of the user's, which may raise anything
            raise NotDescribable(
                f"{self.name} is or has {value!r}, which cannot be described: {error}. Give it an attribute fit_name, "
                "a text that identifies it."
            ) from error
        if isinstance(reduced, str):
            return f"{type(value).__module__}.{reduced}"
        make, args, state, items, pairs = (*reduced, None, None, None)[:5]
        content = [args, state, None if items is None else list(items), None if pairs is None else dict(pairs)]
        described = [self.of(make, in_code=True), *(self.of(part, in_code=in_code) for part in content)]
        return f"{type(value).__module__}.{type(value).__qualname__} {joblib.hash(described)}"


# ---------------------------------------------------------------------------- what there is inside
def _inside(value: object) -> list | None:
    """What a thing that holds functions, or a generator, consists of."""
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    if isinstance(value, functools.cached_property):
        return [value.func]
    if isinstance(value, _WrappedHook):
        return [value.hook, value.with_module]
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    if isinstance(value, np.random.RandomState):
        return [value.get_state(legacy=False)]
    return [value.bit_generator.state] if isinstance(value, np.random.Generator) else None


def _array(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return joblib.hash(value, coerce_mmap=True)  # joblib maps large arrays for other processes
    if is_lazy(value):
        return "uninitialized"
    tensor = value.detach().cpu()
    wide = tensor.double() if tensor.dtype is torch.bfloat16 else tensor  # numpy has no bfloat16
    return f"{tensor.dtype} {joblib.hash(wide.numpy())}"


def _cells(function: FunctionType) -> Iterator[Any]:
    """Values of outer functions, that the function uses."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not set yet
            yield None


def _globals(function: FunctionType) -> Iterator[Any]:
    """Values of the module that the function uses, and of the user's other modules by way of it."""
    codes = list(_nested(function.__code__))
    used = {i.argval for code in codes for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    names = {name for code in codes for name in code.co_names}
    if "getattr" in names:
        names |= {text for code in codes for text in code.co_consts if isinstance(text, str)}
    values = [function.__globals__[name] for name in sorted(used & set(function.__globals__))]
    yield from values
    seen: set[int] = set()
    for module in [*values, *(m for code in codes for m in _imported(code, function.__globals__))]:
        yield from _reached(module, names, seen)


def _reached(module: Any, names: set[str], seen: set[int]) -> Iterator[Any]:
    """What a module of the user's has by these names, and what its own modules have by them."""
    if not isinstance(module, ModuleType) or _is_library(module.__name__) or id(module) in seen:
        return
    seen.add(id(module))
    found = {name: getattr(module, name) for name in sorted(names & set(vars(module)))}
    yield found
    for value in found.values():
        yield from _reached(value, names, seen)


def _imported(code: CodeType, names: dict[str, Any]) -> Iterator[ModuleType]:
    """Modules that a function imports when it is called."""
    before: list[Any] = [None, None]  # how many packages above, and what of it
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            level = before[-2] if isinstance(before[-2], int) else 0
            with suppress(Exception):  # it may not be there, or fail: a call may never reach it
                name = resolve_name("." * level + instruction.argval, names.get("__package__") or "")
                if not _is_library(name) and not _is_installed(
                    getattr(find_spec(name.partition(".")[0]), "origin", "")
                ):
                    yield import_module(name)
        before.append(instruction.argval)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _nested(inner)


def _sparse(value: Any) -> str:
    """Describe a sparse matrix by its values, in any format."""
    rows = canonical(value)
    indices = [array.astype(np.int64) for array in (rows.indices, rows.indptr)]
    return f"sparse {joblib.hash([*map(int, rows.shape), rows.data, *indices])}"


# ---------------------------------------------------------------------------- modules
def _found(value: Callable) -> object:
    """What module and name lead to."""
    try:
        found: Any = import_module(value.__module__)
        for part in value.__qualname__.split("."):
            found = getattr(found, part)
    except (AttributeError, ImportError, ValueError, TypeError):
        return None
    return found


def _is_of_main_process(value: Any) -> bool:
    """Whether a class or function of a script or notebook came to this process by pickle; not one of a function."""
    return is_worker() and value.__module__ == "__main__" and "<" not in value.__qualname__


def _is_library(module: str) -> bool:
    """Whether a module is Python's, ours or an installed one; one that is installed to be edited is the user's."""
    top = module.partition(".")[0]
    if top == "__main__":  # the user's, though `python -m pytest` runs a file of a library in it
        return False
    if top in {*sys.stdlib_module_names, __name__.partition(".")[0]}:
        return True
    return _is_installed(getattr(sys.modules.get(module), "__file__", None))


def _is_installed(file: str | None) -> bool:
    return bool({"site-packages", "dist-packages"} & set(Path(file or "").parts))


def version_of(module: str) -> str:
    """Version of a library; Python's own and the user's modules have none."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or not _is_library(module):
        return ""
    try:
        return str(getattr(sys.modules[top], "__version__", None) or metadata.version(top))
    except (KeyError, metadata.PackageNotFoundError):
        return ""
