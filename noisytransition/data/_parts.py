"""Inputs with several parts, such as tokenizer outputs: mappings of arrays, or samples that are mappings or tuples."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from torch import Tensor

from ..labels._arrays import as_array
from ..meta_gradient._forward_pass import has_parts
from ..nets import Rows


def rows_of_parts(X: Mapping[Any, Any], name: str) -> Rows:
    """Convert a mapping of numeric arrays or tensors to rows. Raise unless all have the same length."""
    parts = {part: _array(X[part], f"{name}[{part!r}]") for part in X}
    lengths = {part: len(array) for part, array in parts.items()}
    if len(set(lengths.values())) != 1 or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"{name} has parts of lengths {lengths}. Pass equally long arrays, named as in the module.")
    return Rows(parts)


def _array(part: Any, name: str) -> NDArray:
    array = as_array(part.numpy(force=True) if isinstance(part, Tensor) else part, name)
    if not array.ndim or array.dtype.kind == "O":
        kind = f"{type(part).__name__} of {array.dtype}"
        raise ValueError(f"{name} is a {kind}. Pass a dense array of numbers with one row per sample.")
    return in_type_of_torch(array, name)


def in_type_of_torch(array: Any, name: str) -> Any:
    """Convert finite numbers, dense or sparse, to a type that torch supports."""
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {array.dtype}. Encode text, categories and dates as numbers first.")
    dtype = np.float64 if array.dtype.itemsize > 8 else array.dtype.newbyteorder("=")
    return check_array(array, accept_sparse="csr", ensure_2d=False, allow_nd=True, dtype=dtype, input_name=name)


def check_sample(sample: Any, name: str) -> None:
    """Raise unless a Dataset's sample, or each of its parts, is numeric."""
    parts: dict[Any, Any] = {}
    if has_parts(sample):
        parts = dict(sample.items() if isinstance(sample, Mapping) else enumerate(sample))
    for key, part in (parts or {"input": sample}).items():
        is_array = isinstance(part, np.ndarray) and part.dtype.kind in "biuf"
        if not (is_array or isinstance(part, Tensor | Real)):
            kind = type(part).__name__
            raise ValueError(f"part {key!r} of {name} is a {kind}. Return tensors or arrays of numbers.")
