"""Hash parameters, data and code, to check that a saved fit is the same fit."""

import inspect
import platform
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import torch
from joblib.hashing import NumpyHasher
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from torch import Tensor

from ..labels._columns import SourceLabels
from ..meta_gradient._forward_pass import has_parts
from ..nets import DatasetRows, Rows
from ..nets._rows import canonical
from ..transition._checks import blocks_of_rows
from ._parameters import as_python

# numbers hashed at once: 4 or 8 MB
_BLOCK = 1_000_000


class _Hasher(NumpyHasher):
    """joblib's hash, of tensors by value, sparse matrices independently of their format, and code by its source."""

    def __init__(self) -> None:
        super().__init__(coerce_mmap=True)  # joblib memory-maps large arrays for other processes
        self._seen: list[FunctionType] = []

    def save(self, obj: Any) -> None:
        """Replace objects that pickle would save by name or memory address."""
        if isinstance(obj, Tensor):
            values = obj.detach().cpu().contiguous()
            obj = str(values.dtype), tuple(values.shape), values.reshape(-1).view(torch.uint8).numpy()
        elif issparse(obj):
            rows = canonical(obj)
            obj = rows.shape, rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
        elif isinstance(obj, FunctionType) and obj not in self._seen:
            self._seen.append(obj)  # it may refer to itself
            cells = [cell.cell_contents for cell in obj.__closure__ or ()]
            obj = _source(obj), obj.__defaults__, obj.__kwdefaults__, cells
        elif isinstance(obj, FunctionType) or (isinstance(obj, type) and not _is_installed(obj)):
            obj = [_source(part) for part in getattr(obj, "__mro__", [obj])]
        super().save(obj)


def _source(of: Any) -> tuple[str, str, str]:
    """Name and source of code; no source for installed packages and interactive code."""
    try:
        text = "" if _is_installed(of) else inspect.getsource(of)
    except (OSError, TypeError):
        text = ""
    return of.__module__, of.__qualname__, text


def _is_installed(of: Any) -> bool:
    """Whether code belongs to an installed package or this library, whose version replaces the source."""
    top = (of.__module__ or "builtins").partition(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    is_site = top != "__main__" and {"site-packages", "dist-packages"} & set(Path(file).parts)
    return top in (*sys.stdlib_module_names, __name__.partition(".")[0]) or bool(is_site)


def describe(value: Any, name: str = "value") -> str:
    """Hash a value. Raise a ValueError if it cannot be pickled."""
    try:
        return str(_Hasher().hash(as_python(value)))
    except Exception as error:  # the user's code may raise any exception
        raise ValueError(
            f"{name}={value!r} cannot be hashed for a saved fit: {error}. Pass an object that can be pickled."
        ) from error


def describe_fit(
    estimator: BaseEstimator, noisy: Rows, clean: Rows, sources: SourceLabels | None = None
) -> dict[str, str]:
    """Hash the class, parameters (except callbacks) and data of a fit, and add library versions."""
    left_out = ("verbose", "callbacks", "n_jobs")
    params = {k: v for k, v in estimator.get_params(deep=False).items() if not k.startswith(left_out)}
    described = {name: describe(value, name) for name, value in {"class": type(estimator), **params}.items()}
    if sources is not None:
        described["sources"] = describe(sources, "sources")
    return described | versions() | {"X, y": _of_rows(noisy, "X, y"), "clean set": _of_rows(clean, "clean set")}


def versions() -> dict[str, str]:
    """Versions that can affect the result of a fit."""
    libraries = {name: sys.modules[name].__version__ for name in ("noisytransition", "numpy", "skorch", "torch")}
    python = ".".join(platform.python_version_tuple()[:2])
    return {f"version of {name}": of for name, of in {"Python": python, **libraries}.items()}


def _of_rows(rows: Rows, name: str) -> str:
    """Hash the columns and inputs of a data set, or the object of a torch Dataset without its samples."""
    if isinstance(rows, DatasetRows):
        return describe([rows.source, rows.index, rows.columns], name)
    if has_parts(rows.source):
        return describe({part: _of_rows(rows.part(part), name) for part in rows.source})
    blocks = blocks_of_rows(len(rows), max(int(np.prod(rows.source.shape[1:])), 1), _BLOCK)
    inputs = (rows.take(np.arange(block.start, block.stop)).X for block in blocks)
    hashes = [describe(X if issparse(X) else np.ascontiguousarray(X)) for X in inputs]
    return describe([rows.source.shape[1:], hashes, rows.columns])
