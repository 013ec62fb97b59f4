"""Convert what users pass to arrays of labels and numbers."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def as_array(values: Any, name: str) -> NDArray:
    """Convert to an array. Refuse masked and complex entries: numpy would drop masks and imaginary parts.

    A data frame's column keeps its type: numpy would convert pandas' nullable integers and booleans to objects.
    """
    refuse_masked(values, name)
    try:
        array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not an array of numbers or labels ({error}); pass equally long rows.") from None
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has complex numbers; pass real numbers.")
    return array


def refuse_masked(values: object, name: str) -> None:
    """Raise an error for a masked array with masked entries."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array with masked entries; fill them or drop their rows.")


def as_floats(array: ArrayLike, name: str) -> NDArray[np.float64]:
    """Copy to an array of float64; refuse text, even if it could be parsed as numbers."""
    return np.array(as_numbers(array, name), dtype=np.float64)


def as_numbers(array: ArrayLike, name: str) -> NDArray:
    """Convert to an array of numbers, without a copy if it already is one."""
    numbers = as_array(array, name)
    has_text = numbers.dtype.kind == "O" and any(isinstance(value, str | bytes) for value in numbers.flat)
    if has_text or numbers.dtype.kind not in "biufO":
        raise ValueError(f"{name} is not an array of numbers, but has dtype {numbers.dtype}; pass floats.")
    try:
        return numbers.astype(np.float64) if numbers.dtype.kind == "O" else numbers
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not an array of numbers ({error}); pass equally long rows of floats.") from None


def check_label_indices(
    y: ArrayLike, n_classes: int | None = None, n_rows: int | None = None, name: str = "y"
) -> NDArray[np.intp]:
    """Check that `y` holds class indices 0..c-1, and `n_rows` of them if given; return them as intp."""
    y = as_array(y, name)
    if y.ndim != 1:
        raise ValueError(f"{name} has shape {y.shape}; pass a 1-d array of class indices.")
    if y.size and not np.issubdtype(y.dtype, np.integer):
        raise ValueError(f"{name} has dtype {y.dtype}; pass integer class indices.")
    if n_rows is not None and len(y) != n_rows:
        raise ValueError(f"{name} has {len(y)} labels for {n_rows} samples; pass one label per sample.")
    highest = np.inf if n_classes is None else n_classes - 1
    if y.size and (y.min() < 0 or y.max() > highest):
        valid = "0, 1, 2, ..." if n_classes is None else f"0..{highest}"
        raise ValueError(f"{name} has labels {y.min()} to {y.max()}, but class indices are {valid}. Encode the labels.")
    return y.astype(np.intp)


def is_number(value: object) -> bool:
    """Whether a value is a real number, and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)
