"""Convert what users pass to arrays of numbers and class indices; read pandas objects by their names."""

import unicodedata
import warnings
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# end of error messages about classes that differ from y
ENCODE_ALL = "if VotingClassifier or cross_val_predict encoded y, encode y and clean labels by a LabelEncoder first"
# Maximum number of labels listed in an error
_MOST_NAMED = 10


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


def is_number(value: object) -> bool:
    """Whether a value is a real number, and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


# ---------------------------------------------------------------------------- class indices
def check_label_indices(
    y: ArrayLike, n_classes: int | None = None, n_rows: int | None = None, name: str = "y"
) -> NDArray[np.intp]:
    """Check that `y` holds class indices 0..c-1, and `n_rows` of them if given; return them as intp."""
    y = as_array(y, name)
    if y.shape[1:] == (1,):  # a column
        y = y[:, 0]
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


def class_indices(
    n_classes: int | None, n_rows: int | None, classes: ArrayLike | None, **labels: ArrayLike
) -> tuple[list[NDArray[np.intp]], NDArray]:
    """Encode labels of the same samples, given by their names, as class indices.

    Also return the classes: as given, the sorted text labels of all, or all indices.
    """
    arrays = {name: of_one_type(as_array(y, name)) for name, y in labels.items()}
    if classes is not None:
        classes = check_classes(classes, n_classes)
    elif any(kind_of(y) == "text" for y in arrays.values()):
        of_all = np.concatenate([y.ravel() for y in arrays.values()])
        classes = sorted_classes(of_all, n_classes, " and ".join(arrays))
    codes = []
    for name, y in arrays.items():
        index = y if classes is None else encode(y, classes, name)
        codes.append(check_label_indices(index, n_classes, n_rows, name))
        n_rows = len(y)
    return codes, np.arange(n_classes or 0) if classes is None else classes


def encode(y: NDArray, classes: NDArray, name: str = "y") -> NDArray[np.intp]:
    """Index of each label in `classes`."""
    order = np.argsort(classes)
    try:
        if len(y) and kind_of(y) != (kind := kind_of(of_one_type(classes))):
            raise TypeError(f"{kind_of(y)} instead of {kind}")
        place = np.minimum(np.searchsorted(classes, y, sorter=order), len(classes) - 1)
    except TypeError as error:  # labels that cannot be compared
        raise ValueError(f"{name} has labels of another kind than classes, or missing labels: {error}.") from None
    index = order[place]
    if (unknown := classes[index] != y).any():
        fact = f"{name} has the label {y[unknown].tolist()[0]!r}, which is not among classes {shortened(classes)}"
        raise ValueError(f"{fact}. Correct it, drop its samples, or add it to classes in fit.")
    return index


def sorted_classes(y: NDArray, n_classes: int | None, name: str = "y") -> NDArray:
    """Sorted distinct labels; raise if their number differs from `n_classes`."""
    try:
        classes = np.unique(y)
    except TypeError as error:  # labels that cannot be compared
        raise ValueError(f"{name} has labels of several kinds or missing labels ({error}). Use one kind.") from None
    if n_classes is not None and len(classes) != n_classes:
        fact = f"{len(classes)} different labels {shortened(classes)} in {name}, but T or proba has {n_classes} classes"
        raise ValueError(f"{fact}. Pass classes=, the labels in their order in T and proba.")
    return classes


def check_spelling(classes: NDArray, columns: Iterable[NDArray[np.intp]]) -> None:
    """Raise for text labels that are equal but for spaces, Unicode form or case; columns have their positions.

    Labels that differ in case are classes if they are in the same column, such as handwritten letters.
    """
    if kind_of(classes) != "text":
        return
    labels = classes.tolist()
    spelt = [" ".join(unicodedata.normalize("NFC", str(label)).split()) for label in labels]
    first: dict[str, int] = {}
    pairs = []
    for k, name in enumerate(spelt):
        other = first.setdefault(name.casefold(), k)
        is_class = spelt[other] != name and any({k, other} <= set(codes.tolist()) for codes in columns)
        if other != k and not is_class:
            pairs.append(f"{str(labels[other])!a} and {str(labels[k])!a}")
    if pairs:
        fact = f"labels {', '.join(pairs[:_MOST_NAMED])} are equal but for case, spaces or Unicode form"
        raise ValueError(f"{fact}. Correct them, e.g. with y.str.strip().str.casefold().")


def check_classes(classes: ArrayLike, n_classes: int | None = None) -> NDArray:
    """Validate distinct classes, one per row of T."""
    classes = as_array(classes, "classes")
    c = classes.size if n_classes is None else n_classes
    if classes.shape != (c,) or len(np.unique(classes)) != c:
        raise ValueError(f"classes={classes.tolist()!r}; pass {c} different labels, one per row of T.")
    return classes


def of_one_type(labels: NDArray) -> NDArray:
    """Convert an object array of booleans or numbers to their dtype."""
    if labels.dtype.kind != "O":
        return labels
    are_bools = all(isinstance(label, bool | np.bool_) for label in labels.flat)
    return np.array(labels.tolist()) if are_bools or all(map(is_number, labels.flat)) else labels


def kind_of(labels: NDArray) -> str:
    """Kind of labels, as by `of_one_type`: bool, number, date or text."""
    names = {"b": "bool", "i": "number", "u": "number", "f": "number", "m": "date", "M": "date"}
    return names.get(labels.dtype.kind, "text")


def has_minus_one(*labels: Any) -> bool:
    """Whether -1 is a label, so that it cannot mark missing labels."""
    return any(-1 in np.asarray(y) for y in labels)


def shortened(labels: Any) -> str:
    """List at most 10 labels, for messages."""
    names = [label.item() if isinstance(label, np.generic) else label for label in labels]
    return f"{names[:_MOST_NAMED]}{' ...' if len(names) > _MOST_NAMED else ''}"


# ---------------------------------------------------------------------------- pandas objects
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


def index_of(*tables: Any) -> Any:
    """Index of the first pandas object; None without any."""
    return next((table.index for table in tables if hasattr(table, "iloc")), None)


def names_of_samples(index: Any) -> NDArray | None:
    """Pandas index as an array that can be saved; None if it has the positions or there is none."""
    names = None if index is None else names_of_times(index.to_numpy())
    return None if names is None or np.array_equal(names, np.arange(len(names))) else names


def names_of_times(names: NDArray) -> NDArray:
    """Names; dates in their own time zone, periods and tuples as text, which can be saved and compared."""
    first = names[0] if len(names) else None
    if isinstance(first, tuple) or hasattr(first, "freq"):
        return np.array([str(name) for name in names])
    if hasattr(first, "to_datetime64"):
        names = np.array([name.tz_localize(None).to_datetime64() for name in names])
    return np.datetime_as_string(names, unit="auto") if names.dtype.kind == "M" else names


def warn_of_order(*data: Any) -> None:
    """Warn if the pandas indices of X, labels or weights differ in their order: samples are matched by position."""
    first, *others = [of.index for of in data if hasattr(of, "iloc")] or [None]
    if any(not i.equals(first) and len(i) == len(first) and set(i) == set(first) for i in others):
        fact = "The indices of X, labels or weights differ in their order, but samples are matched by position"
        warnings.warn(f"{fact}. Pass y.reindex(X.index), or y.to_numpy() if the order is correct.", stacklevel=4)
