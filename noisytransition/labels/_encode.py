"""Encode labels of any kind as class indices."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import as_array, check_label_indices, is_number

# Maximum number of labels listed in an error
_MOST_NAMED = 10
# float64 does not represent all integers from here on
LARGEST_FLOAT = 2**53


def class_indices(
    y: ArrayLike, n_classes: int | None, n_rows: int | None, name: str, classes: ArrayLike | None = None
) -> NDArray[np.intp]:
    """Encode labels as class indices; integers are kept unless `classes` are given."""
    named = class_names(y, n_classes, classes, name)
    indices = y if named is None else encode(as_array(y, name), named, name)
    return check_label_indices(indices, n_classes, n_rows, name)


def class_names(
    y: ArrayLike, n_classes: int | None, classes: ArrayLike | None = None, name: str = "y_noisy"
) -> NDArray | None:
    """Classes as given, or sorted text labels; None if labels are class indices."""
    if classes is not None:
        return check_classes(classes, n_classes)
    return sorted_classes(as_array(y, name), n_classes, name) if is_text(as_array(y, name)) else None


def indices_of_both(
    y_true: ArrayLike, y_noisy: ArrayLike, n_classes: int | None, classes: ArrayLike | None
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray]:
    """Class indices of true and noisy labels of the same samples, and the classes."""
    given = {"y_true": as_array(y_true, "y_true"), "y_noisy": as_array(y_noisy, "y_noisy")}
    text = [is_text(labels) for labels in given.values()]
    if any(text) and not all(text):
        raise ValueError("only one of y_true and y_noisy has text labels. Use one kind of label.")
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
        raise ValueError(
            f"{name} has the label {y[unknown].tolist()[0]!r}, which is not among classes {shortened(classes)}. "
            "Correct it, drop its samples, or add it to classes in fit."
        )
    return index


def sorted_classes(y: NDArray, n_classes: int | None, name: str = "y") -> NDArray:
    """Sorted distinct labels; raise if their number differs from `n_classes`."""
    try:
        found = np.unique(y)
    except TypeError as error:  # labels that cannot be compared
        raise ValueError(f"{name} has labels of several kinds or missing labels ({error}). Use one kind.") from None
    if n_classes is not None and len(found) != n_classes:
        raise ValueError(
            f"{len(found)} different labels {shortened(found)} in {name}, but T or proba has {n_classes} "
            "classes. Pass classes=, the labels in the order of the rows of T and of the columns of proba."
        )
    return found


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


def is_text(labels: NDArray) -> bool:
    """Whether labels are text."""
    return labels.dtype.kind == "U" or (labels.dtype.kind == "O" and any(isinstance(v, str) for v in labels.flat))


def shortened(labels: Any) -> str:
    """List at most 10 labels, for messages."""
    names = labels.tolist() if hasattr(labels, "tolist") else labels
    return f"{names[:_MOST_NAMED]}{' ...' if len(names) > _MOST_NAMED else ''}"
