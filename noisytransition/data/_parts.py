"""Inputs with several parts, such as tokenizer outputs: mappings of arrays, or samples that are mappings or tuples."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from torch import Tensor

from ..labels._arrays import as_array
from ..meta_gradient._forward_pass import each_part, has_parts
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
    if not array.ndim or array.dtype.kind not in "biuf":
        kind = f"{type(part).__name__} of {array.dtype}"
        raise ValueError(f"{name} is a {kind}. Pass a dense array of numbers with one row per sample.")
    dtype = np.float64 if array.dtype.itemsize > 8 else array.dtype.newbyteorder("=")  # torch supports no others
    return check_array(array, ensure_2d=False, allow_nd=True, dtype=dtype, input_name=name)


def check_sample(sample: Any, name: str) -> str:
    """Return the shape of a Dataset's sample, or of its parts, as text. Raise unless all are numeric."""
    parts = {name: sample}
    if has_parts(sample):
        named = sample.items() if isinstance(sample, Mapping) else enumerate(sample)
        parts = {f"part {key!r} of {name}": part for key, part in named} or parts
    for of_part, part in parts.items():
        is_array = isinstance(part, np.ndarray) and part.dtype.kind in "biuf"
        if not (is_array or isinstance(part, Tensor) or (isinstance(part, Real) and not isinstance(sample, tuple))):
            raise ValueError(f"{of_part} is a {type(part).__name__}. Return tensors or arrays of numbers.")
    return str(each_part(lambda part: tuple(np.shape(part)), sample))
