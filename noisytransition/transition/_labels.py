"""Labels of any kind as class indices, and results with the index of a pandas Series."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import as_array, check_label_indices, is_number

# labels that an error lists
_MOST_NAMED = 10
# integers from here on are not all apart as float64
LARGEST_FLOAT = 2**53
# name of the column of true labels in a data frame of labels
VERIFIED = "verified"


def class_indices(
    y: ArrayLike, n_classes: int | None, n_rows: int | None, name: str, classes: ArrayLike | None = None
) -> NDArray[np.intp]:
    """Class indices of labels: integers as they are, text and labels of other kinds by the names of the classes."""
    named = class_names(y, n_classes, classes, name)
    indices = y if named is None else encode(as_array(y, name), named, name)
    return check_label_indices(indices, n_classes, n_rows, name)


def given_and_verified(y: Any, y_verified: Any = None, name: str = "y") -> tuple[Any, Any]:
    """Given labels and verified ones: two columns of a data frame, one of which is "verified"; else as they are."""
    names = list(getattr(y, "column_names", getattr(y, "columns", ())))  # "columns" of Arrow are the data
    if VERIFIED not in names:
        return y, y_verified
    if y_verified is not None:
        raise ValueError(f"verified labels were given twice, as y_verified and as a column of {name}; give them once.")
    others = [other for other in names if other != VERIFIED]
    if len(names) != 2 or len(others) != 1:
        raise ValueError(f"{name} has the columns {names}; give two, the given labels and {VERIFIED!r}.")
    return y[others[0]], y[VERIFIED]


def labels_of_samples(
    y: Any, y_verified: Any, n: int, name: str = "y", classes: ArrayLike | None = None
) -> tuple[NDArray[np.bool_], NDArray, NDArray[np.bool_], NDArray]:
    """Which of n samples have a given label, and these; which are verified, and their true labels.

    A sample without either is an error.
    """
    has_given, given = known_labels(y, n, name, minus_one_is_missing=False)
    is_verified, verified = known_labels(y_verified, n, "y_verified", not has_minus_one(given, classes))
    if neither := n - int((has_given | is_verified).sum()):
        raise ValueError(
            f"{name} has missing labels in {neither} of {n} rows that are not verified either; leave these rows out."
        )
    return has_given, given, is_verified, verified


def known_labels(y: Any, n: int, name: str, minus_one_is_missing: bool = True) -> tuple[NDArray[np.bool_], NDArray]:
    """Which of n samples have a label, and these labels; missing are None, NaN, NA, NaT and, if so, -1.

    Without any labels, None, none is known.
    """
    if y is None:
        return np.zeros(n, dtype=bool), np.zeros(0, dtype=np.intp)
    given = as_array(y, name)
    if given.shape != (n,):
        advice = f", of probabilities {name}.argmax(axis=1)" if given.ndim == 2 else ""
        raise ValueError(f"{name} has shape {given.shape} for {n} samples; give one entry for each{advice}.")
    is_list = isinstance(y, list | tuple)  # numpy makes numbers or text of NaN and of what is beside it
    known = given == given if given.dtype.kind in "fmM" else np.ones(n, dtype=bool)  # NaN does not equal itself
    if is_list or given.dtype.kind == "O":
        known = np.array([not is_missing(label) for label in (y if is_list else given)], dtype=bool)
    labels = of_one_type(_listed([y[i] for i in np.flatnonzero(known)]) if is_list else given[known])
    if minus_one_is_missing and labels.dtype.kind in "iuf":
        known[known], labels = labels != -1, labels[labels != -1]
    is_exact = labels.dtype.kind == "f" and np.abs(labels).max(initial=0) < LARGEST_FLOAT
    if is_exact and not known.all() and (labels == np.round(labels)).all():
        labels = labels.astype(np.intp)  # a column of integers with gaps
    return known, labels


def _listed(labels: list[Any]) -> NDArray:
    """Array of a list, of objects if some are text and some are not: numpy would make text of all."""
    return np.array(labels, dtype=object if len({isinstance(label, str) for label in labels}) > 1 else None)


def has_minus_one(*labels: Any) -> bool:
    """Whether the number -1 is a label, so that it cannot mean a missing one."""
    arrays = [np.asarray(y) for y in labels if y is not None]
    return any(y.dtype.kind in "if" and (y == -1).any() for y in arrays)


def complete_labels(y: Any, n: int, name: str) -> NDArray:
    """Labels of all n samples; raise if some are missing."""
    known, labels = known_labels(y, n, name, minus_one_is_missing=False)
    if not known.all():
        raise ValueError(f"{name} has missing labels in {(~known).sum()} of {n} samples; leave these samples out.")
    return labels


def is_missing(label: object) -> bool:
    """Whether a label is None, NaN, NaT or pandas' NA: all but text that does not equal itself."""
    return label is None or (not isinstance(label, str) and str(label == label) in ("False", "<NA>"))


def encode_all(
    labels: dict[str, NDArray], n_classes: int, classes: ArrayLike | None
) -> tuple[NDArray, dict[str, NDArray[np.intp]]]:
    """Names of the classes, and labels of several kinds of samples as class indices."""
    given = {name: y for name, y in labels.items() if len(y)}
    if len({_kind(y) for y in given.values()}) > 1:
        kinds = ", ".join(f"{name}: {_kind(y)}" for name, y in given.items())
        raise ValueError(f"labels are of several kinds ({kinds}); name classes in one way.")
    if classes is None and given:
        all_labels = np.concatenate(list(given.values()))
        are_indices = all_labels.dtype.kind in "iu" and all_labels.min() >= 0 and all_labels.max() < n_classes
        classes = np.arange(n_classes) if are_indices else sorted_classes(all_labels, n_classes, " and ".join(given))
    classes = check_classes(np.arange(n_classes) if classes is None else classes, n_classes)
    return classes, {name: encode(y, classes, name) if len(y) else y.astype(np.intp) for name, y in labels.items()}


def classes_of_columns(table: Any, labels: list[NDArray]) -> NDArray | None:
    """Names of the columns of a data frame, if all labels are among them."""
    if not hasattr(table, "columns"):
        return None
    columns = np.asarray(table.columns)
    return columns if set().union(*(y.tolist() for y in labels)) <= set(columns.tolist()) else None


def in_class_order(table: Any, classes: Any, *, rows: bool = True) -> Any:
    """Columns of a data frame, and its rows, in the order of the classes if it names these; else what was given.

    A Series is put in order by its index.
    """
    if classes is None or not hasattr(table, "reindex"):
        return table
    order, columns = list(classes), [table.columns] if hasattr(table, "columns") else []
    named = [*columns, table.index] if rows or not columns else columns
    if len(set(order)) != len(order) or any(len(names) != len(order) or set(names) != set(order) for names in named):
        return table
    return table.reindex(columns=order, index=order if rows else None) if columns else table.reindex(order)


def class_names(
    y: ArrayLike, n_classes: int | None, classes: ArrayLike | None = None, name: str = "y_noisy"
) -> NDArray | None:
    """Names of the classes: as given, or the sorted labels of text; None where labels are class indices."""
    if classes is not None:
        return check_classes(classes, n_classes)
    return sorted_classes(as_array(y, name), n_classes, name) if is_text(as_array(y, name)) else None


def indices_of_both(
    y_true: ArrayLike, y_noisy: ArrayLike, n_classes: int | None, classes: ArrayLike | None
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray]:
    """Class indices of true and noisy labels of the same rows, and the names of the classes."""
    given = {"y_true": as_array(y_true, "y_true"), "y_noisy": as_array(y_noisy, "y_noisy")}
    text = [is_text(labels) for labels in given.values()]
    if any(text) and not all(text):
        raise ValueError("of y_true and y_noisy one has text labels and the other has none; name classes in one way.")
    if classes is not None:
        classes = as_array(classes, "classes")
    elif all(text):
        both = np.concatenate([labels.ravel() for labels in given.values()])
        classes = sorted_classes(both, n_classes, "y_true and y_noisy together")
    c = n_classes if classes is None or n_classes is not None else len(classes)
    y = class_indices(given["y_true"], c, None, "y_true", classes)
    s = class_indices(given["y_noisy"], c, len(y), "y_noisy", classes)
    found = int(max(y.max(initial=-1), s.max(initial=-1))) + 1 if c is None else c
    return y, s, np.arange(found) if classes is None else classes


def of_one_type(labels: NDArray) -> NDArray:
    """Labels of a column of objects as booleans or numbers, if all are that."""
    if labels.dtype.kind != "O":
        return labels
    are_bools = all(isinstance(label, bool | np.bool_) for label in labels.flat)
    return np.array(labels.tolist()) if are_bools or all(map(is_number, labels.flat)) else labels


def _kind(labels: NDArray) -> str:
    """Whether labels are text, or else numbers and truth values, or dates."""
    return "text" if is_text(labels) else "date" if labels.dtype.kind in "mM" else "number"


def is_text(labels: NDArray) -> bool:
    """Whether labels are text."""
    return labels.dtype.kind == "U" or (labels.dtype.kind == "O" and any(isinstance(v, str) for v in labels.flat))


def sorted_classes(y: NDArray, n_classes: int | None, name: str = "y") -> NDArray:
    """Sorted labels, which must be as many as there are classes, where their number is known."""
    try:
        found = np.unique(y)
    except TypeError as error:  # labels that cannot be compared
        raise ValueError(f"{name} mixes labels of several kinds, or has missing ones: {error}.") from None
    if n_classes is not None and len(found) != n_classes:
        some = ", ".join(map(repr, found[:_MOST_NAMED].tolist())) + (", ..." if len(found) > _MOST_NAMED else "")
        raise ValueError(
            f"{name}: {len(found)} different labels for {n_classes} classes; pass classes=, the labels "
            f"in the order of the rows of T and of the columns of proba. Found: {some}."
        )
    return found


def check_classes(classes: ArrayLike, n_classes: int | None) -> NDArray:
    """Check that there is one class for each row of T, and none twice."""
    classes = as_array(classes, "classes")
    c = classes.size if n_classes is None else n_classes
    if classes.shape != (c,) or len(np.unique(classes)) != c:
        raise ValueError(f"classes={classes.tolist()!r}; give {c} different labels, one per row of T.")
    return classes


def encode(y: NDArray, classes: NDArray, name: str = "y") -> NDArray[np.intp]:
    """Index of each label in `classes`."""
    order = np.argsort(classes)
    try:
        place = np.minimum(np.searchsorted(classes, y, sorter=order), len(classes) - 1)
    except TypeError as error:  # labels that cannot be compared
        raise ValueError(f"{name} has labels of another kind than classes, or missing ones: {error}.") from None
    index = order[place]
    if (unknown := classes[index] != y).any():
        raise ValueError(
            f"{name} has the label {y[unknown].tolist()[0]!r}; classes has {classes.tolist()!r}: add it or drop its "
            "rows."
        )
    return index


# ---------------------------------------------------------------------------- results
def like_series(values: NDArray, y: Any, name: object) -> Any:
    """Values of rows as a Series with their index, if the labels are a pandas Series; else as they are."""
    return type(y)(values, index=y.index, name=name) if hasattr(y, "iloc") and y.ndim == 1 else values


def names_of_rows(positions: NDArray[np.intp], *tables: Any) -> Any:
    """Entries of the index of the first table of pandas; the positions themselves without any."""
    return next((table.index[positions] for table in tables if hasattr(table, "iloc")), positions)
