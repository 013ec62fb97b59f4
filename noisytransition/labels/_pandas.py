"""Read pandas objects by their names, and return results with their index."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray


def in_class_order(table: Any, classes: Any, *, rows: bool = True) -> Any:
    """Reorder a data frame (columns, and rows if `rows`) or Series to the order of the classes that name it.

    Return an array, unless `table` is no pandas object.
    """
    if classes is None or not hasattr(table, "reindex"):
        return table
    order = list(classes)
    columns = [table.columns] if hasattr(table, "columns") else []
    named = [*columns, table.index] if rows or not columns else columns
    if len(set(order)) == len(order) and all(len(names) == len(order) and set(names) == set(order) for names in named):
        table = table.reindex(columns=order, index=order if rows else None) if columns else table.reindex(order)
    return table.to_numpy()


def like_series(values: NDArray, y: Any, name: object) -> Any:
    """Return values as a Series with the index of the labels, if these are a Series."""
    return type(y)(values, index=y.index, name=name) if hasattr(y, "iloc") and y.ndim == 1 else values


def names_of_rows(positions: NDArray[np.intp], *tables: Any) -> Any:
    """Index entries of the first pandas object at these positions; else the positions."""
    return next((table.index[positions] for table in tables if hasattr(table, "iloc")), positions)


def periods_in_order(column: Any) -> NDArray | None:
    """Distinct values in the order of time of dates, pandas' periods, or an ordered categorical; None for others."""
    dtype: Any = getattr(column, "dtype", None)
    if getattr(dtype, "ordered", False):
        used = set(column)
        return np.array([name for name in dtype.categories.tolist() if name in used])
    is_time = getattr(dtype, "kind", "") == "M" or hasattr(dtype, "freq")
    return np.unique(column[column == column]) if is_time else None  # without missing values


def names_of_times(names: NDArray) -> NDArray:
    """Names; dates, periods and tuples as text, which can be saved and compared."""
    first = names[0] if len(names) else None
    if isinstance(first, tuple):
        return np.array([str(name) for name in names])
    if hasattr(first, "to_datetime64"):
        names = names.astype("datetime64[us]")
    if names.dtype.kind == "M":
        return np.datetime_as_string(names, unit="auto")
    return names.astype(str) if hasattr(first, "freq") else names


def warn_of_order(*data: Any) -> None:
    """Warn if the pandas indices of X, labels or weights differ in their order: samples are matched by position."""
    first, *others = [of.index for of in data if hasattr(of, "iloc")] or [None]
    if any(not i.equals(first) and len(i) == len(first) and set(i) == set(first) for i in others):
        fact = "The indices of X, labels or weights differ in their order, but samples are matched by position"
        warnings.warn(f"{fact}. Pass y.reindex(X.index), or y.to_numpy() if the order is correct.", stacklevel=4)
