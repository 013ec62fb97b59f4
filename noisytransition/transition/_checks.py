"""Validation of input arrays."""

import operator
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
        raise ValueError(
            f"{name} has {len(T)} rows and columns, but there are {n_classes} classes; pass one row and one "
            "column per class, in the order of the classes."
        )
    _check_finite_and_not_negative(T, name, "pass probabilities.")
    sums = T.sum(axis=1)
    if (wrong := np.abs(sums - 1) > 1e-6).any():
        row, advice = int(wrong.argmax()), "Divide each row by its sum (entry (i, j) is P(noisy = j | true = i))."
        if np.allclose(T.sum(axis=0), 1, rtol=0, atol=1e-6):
            advice = "The columns do: pass the transpose (cleanlab's noise_matrix is transposed)."
        raise ValueError(f"row {row} of {name} sums to {sums[row]:.9g}, but rows must sum to 1. {advice}")
    return T


def check_probabilities(proba: ArrayLike, n_classes: int | None = None, name: str = "proba") -> NDArray[np.float64]:
    """Check that rows are probabilities and copy them; rows must sum to 1 up to 1e-3, for half precision."""
    return np.array(checked_probabilities(proba, n_classes, name), dtype=np.float64)


def checked_probabilities(proba: ArrayLike, n_classes: int | None = None, name: str = "proba") -> NDArray:
    """Check block by block like `check_probabilities`, but return an array of any numeric type, without a copy."""
    given = as_numbers(proba, name)
    if given.ndim != 2 or not given.shape[1]:
        raise ValueError(f"{name} has shape {given.shape}; pass a 2-d array (n_samples, n_classes).")
    if n_classes is not None and given.shape[1] != n_classes:
        raise ValueError(f"{name} has {given.shape[1]} columns, but there are {n_classes} classes; pass one per class.")
    for rows in blocks_of_rows(*given.shape):
        block = given[rows].astype(np.float64, copy=False)
        _check_finite_and_not_negative(block, name, "pass probabilities, such as the softmax of logits.", rows.start)
        sums = block.sum(axis=1)
        if (wrong := np.abs(sums - 1) > 1e-3).any():
            row = int(wrong.argmax())
            raise ValueError(
                f"row {rows.start + row} of {name} sums to {sums[row]:.6g}, but rows must sum to 1. If these are "
                "logits, apply softmax."
            )
    return given


def blocks_of_rows(n: int, n_columns: int, size: int = _BLOCK) -> list[slice]:
    """Blocks of rows with about `size` numbers each; by default, 1 MB of float64."""
    size = max(size // n_columns, 1)
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def check_label_indices(
    y: ArrayLike, n_classes: int | None = None, n_rows: int | None = None, name: str = "y"
) -> NDArray[np.intp]:
    """Check that `y` holds class indices 0..c-1, and `n_rows` of them if given; return them as intp."""
    y = as_array(y, name)
    if y.ndim != 1:
        raise ValueError(f"{name} has shape {y.shape}; pass a 1-d array of class indices.")
    if y.size and not np.issubdtype(y.dtype, np.integer):
        raise ValueError(
            f"{name} has dtype {y.dtype}; pass integer class indices, for example np.searchsorted(classes, {name})."
        )
    if n_rows is not None and len(y) != n_rows:
        raise ValueError(f"{name} has {len(y)} labels for {n_rows} samples; pass one label per sample.")
    highest = np.inf if n_classes is None else n_classes - 1
    if y.size and (y.min() < 0 or y.max() > highest):
        valid = "0, 1, 2, ..." if n_classes is None else f"0..{highest}"
        raise ValueError(f"{name} has labels {y.min()} to {y.max()}, but class indices are {valid}. Encode the labels.")
    return y.astype(np.intp)


def check_rate(rate: float, name: str = "rate") -> float:
    """Check that `rate` is a probability."""
    if not is_number(rate) or not 0 <= rate <= 1:
        raise ValueError(f"{name}={rate!r}; pass a probability between 0 and 1.")
    return float(rate)


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


def is_number(value: object) -> bool:
    """Whether a value is a real number, and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


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
    given = as_array(array, name)
    texts = given.dtype.kind == "O" and any(isinstance(value, str | bytes) for value in given.flat)
    if texts or given.dtype.kind not in "biufO":
        raise ValueError(f"{name} is not an array of numbers, but has dtype {given.dtype}; pass floats.")
    try:
        return given.astype(np.float64) if given.dtype.kind == "O" else given
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not an array of numbers ({error}); pass equally long rows of floats.") from None


def _check_finite_and_not_negative(array: NDArray[np.float64], name: str, advice: str, first: int = 0) -> None:
    """Raise an error for an entry that is not finite or negative; `first` is the number of the first row."""
    for fault, wrong in ("NaN or infinite", ~np.isfinite(array)), ("negative", array < 0):
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise ValueError(f"{name}[{first + row}, {column}] = {array[row, column]:.6g} is {fault}; {advice}")
