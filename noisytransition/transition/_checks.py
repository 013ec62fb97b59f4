"""Validation of transition matrices, probabilities and numbers."""

import operator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels._arrays import as_floats, as_numbers, is_number

# numbers of a large array per block: 1 MB. A choice, not measured
_BLOCK = 2**17


def check_transition_matrix(
    T: ArrayLike, n_classes: int | None = None, name: str = "transition_matrix"
) -> NDArray[np.float64]:
    """Check that `T` is a transition matrix and copy it; rows must sum to 1 up to 1e-6."""
    T = as_floats(T, name)
    if T.ndim != 2 or T.shape[0] != T.shape[1] or not T.size:
        raise ValueError(f"{name} has shape {T.shape}; pass a square matrix with one row and one column per class.")
    if n_classes is not None and len(T) != n_classes:
        raise ValueError(f"{name} has {len(T)} rows, but there are {n_classes} classes; pass one per class.")
    advice = "Divide each row by its sum (entry (i, j) is P(noisy = j | true = i))."
    if np.allclose(T.sum(axis=0), 1, rtol=0, atol=1e-6):
        advice = "The columns do: pass the transpose (cleanlab's noise_matrix is transposed)."
    _check_rows(T, name, 1e-6, advice)
    return T


def check_probabilities(proba: ArrayLike, n_classes: int | None = None, name: str = "proba") -> NDArray[np.float64]:
    """Check that rows are probabilities and copy them; rows must sum to 1 up to 1e-3, for half precision."""
    return np.array(checked_probabilities(proba, n_classes, name), dtype=np.float64)


def checked_probabilities(proba: ArrayLike, n_classes: int | None = None, name: str = "proba") -> NDArray:
    """Check block by block like `check_probabilities`, but return an array of any numeric type, without a copy."""
    array = as_numbers(proba, name)
    if array.ndim != 2 or not array.shape[1]:
        raise ValueError(f"{name} has shape {array.shape}; pass a 2-d array (n_samples, n_classes).")
    if n_classes is not None and array.shape[1] != n_classes:
        raise ValueError(f"{name} has {array.shape[1]} columns, but there are {n_classes} classes; pass one per class.")
    for rows in blocks_of_rows(*array.shape):
        block = array[rows].astype(np.float64, copy=False)
        _check_rows(block, name, 1e-3, "If these are logits, apply softmax.", rows.start)
    return array


def blocks_of_rows(n: int, n_columns: int) -> list[slice]:
    """Blocks of rows with about 1 MB of float64 each."""
    size = max(_BLOCK // n_columns, 1)
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def check_rate(rate: float, name: str = "rate") -> float:
    """Check that `rate` is a probability."""
    if not is_number(rate) or not 0 <= rate <= 1:
        raise ValueError(f"{name}={rate!r}; pass a probability between 0 and 1.")
    return float(rate)


def check_finite(value: float, name: str) -> None:
    """Check that `value` is a finite number of at least 0."""
    if not is_number(value) or not 0 <= value < np.inf:
        raise ValueError(f"{name}={value!r}; pass a finite number of at least 0.")


def check_level(level: float) -> float:
    """Check that `level` is a confidence level."""
    if not is_number(level) or not 0 < level < 1:
        raise ValueError(f"level={level!r}; pass a number between 0 and 1, such as 0.9.")
    return float(level)


def check_count(n: int, least: int, name: str) -> int:
    """Check that `n` is an integer of at least `least`."""
    try:
        n = operator.index(None if isinstance(n, bool | np.bool_) else n)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"{name}={n!r}; pass an integer.") from None
    if n < least:
        raise ValueError(f"{name}={n}; pass at least {least}.")
    return n


def _check_rows(array: NDArray[np.float64], name: str, tolerance: float, advice: str, first: int = 0) -> None:
    """Check that rows are finite, not negative and sum to 1; `first` is the number of the first row."""
    for fault, wrong in ("NaN or infinite", ~np.isfinite(array)), ("negative", array < 0):
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            entry = f"{name}[{first + row}, {column}] = {array[row, column]:.6g}"
            raise ValueError(f"{entry} is {fault}; pass probabilities, such as the softmax of logits.")
    sums = array.sum(axis=1)
    if (wrong := np.abs(sums - 1) > tolerance).any():
        row = int(wrong.argmax())
        raise ValueError(f"row {first + row} of {name} sums to {sums[row]:.9g}, but rows must sum to 1. {advice}")
