"""Validate labels, and encode them as indices of classes."""

import difflib
import warnings
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d
from torch import Tensor
from torch.utils.data import TensorDataset

from ..transition import as_array, check_mask, of_one_type
from ._data_warnings import warn_of_order

# integers from here on are not all apart as float64
_LARGEST_FLOAT = 2**53
# likeness of two names of classes, between 0 and 1, from which they may be one class; a choice, not measured
_ALIKE = 0.8
# of clean labels that are other classes than those of y
_ENCODE_ALL = (
    ". cross_val_predict(method='predict_proba'), CalibratedClassifierCV(ensemble=False), VotingClassifier and others "
    "give y as 0..c-1: encode y and the clean labels alike before (LabelEncoder); OneVsRestClassifier gives y as 0 and "
    "1, and the clean labels as they are"
)
# how numpy and pandas write a missing value as text
_MISSING_TEXTS = {"", "nan", "NaN", "<NA>", "NaT"}
# name of the noisy labels of clean rows that are entries of y
IN_Y = "y of the trusted rows"


def as_column(y: object) -> Any:
    """Convert a column of a data frame: scikit-learn would make floats of pandas' nullable integers and booleans."""
    return y.to_numpy() if hasattr(y, "to_numpy") else y


def labels_of(data: Any, name: str) -> NDArray:
    """Labels of pairs of input and label in a Dataset or list, sample by sample unless it is a TensorDataset."""
    if isinstance(data, TensorDataset) and len(data.tensors) == 2:
        return data.tensors[1].numpy(force=True)
    labels = [_second(data[i], i, name) for i in range(len(data))]
    return np.array([label.item() if isinstance(label, Tensor) and not label.ndim else label for label in labels])


def _second(sample: Any, i: int, name: str) -> Any:
    if isinstance(sample, tuple | list) and len(sample) == 2:
        return sample[1]
    raise ValueError(
        f"no labels were given, and sample {i} of {name} is no pair of input and label: give labels for {name}, one "
        "for each sample."
    )


def validate_labels(y: ArrayLike | None, n: int, name: str, advice: str = "") -> NDArray:
    """Validate labels: return a 1-d array with one label per row. The error of another number ends with advice."""
    if y is None:
        raise ValueError(f"{name} is None: one label per row is needed (requires y to be passed).")
    if hasattr(y, "toarray"):
        raise ValueError(f"{name} is sparse; give a 1-d array, as {name}.toarray().ravel().")
    given = as_array(as_column(y), name)
    check_objects(y, name)
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise ValueError(f"{name} contains infinity, which is no label; leave out these rows.")
    labels: NDArray = column_or_1d(of_one_type(given), warn=True)
    try:
        with warnings.catch_warnings():
            if name != "y":  # one clean row for each class is no regression problem
                warnings.filterwarnings("ignore", "The number of unique classes is greater")
            check_classification_targets(labels)
    except TypeError as error:  # labels that cannot be compared
        if labels.dtype.kind == "S":
            raise ValueError(f"{name} has labels of bytes; decode them, as {name}.astype(str).") from error
        raise ValueError(f"{name} mixes labels of several kinds, or has missing ones: {error}.") from error
    if len(labels) != n:
        raise ValueError(f"{name} has {len(labels)} labels for {n} rows (inconsistent numbers of samples){advice}.")
    return labels


def check_objects(y: Any, name: str) -> None:
    """Raise for missing labels, and for text among others."""
    labels = as_given(y, name)
    if labels.dtype.kind not in "fO" or not labels.ndim:
        return
    _check_missing(labels.ravel(), name)
    if labels.dtype.kind == "O" and len({isinstance(label, str) for label in labels.flat}) > 1:
        raise ValueError(f"{name} mixes labels of several kinds, text and others; name all classes in the same way.")


def as_given(y: Any, name: str) -> NDArray:
    """Labels of rows, one for each, as an array with their missing values: numpy makes text of NaN among text."""
    labels = as_array(as_column(y), name)
    if labels.ndim > 1 and labels.shape[1:] != (1,):
        several = (
            f": of several labels for each row take the majority, or give one row for each label (X repeated, {name} "
            f"flattened); of one-hot labels {name}.argmax(axis=1)"
        )
        raise ValueError(
            f"{name} should be a 1d array with one label for each row, got the shape {labels.shape}"
            f"{several if name == 'y' else ''}."
        )
    return np.array(y, dtype=object) if labels.dtype.kind == "U" and isinstance(y, list | tuple) else labels


def _check_missing(labels: NDArray, name: str) -> None:
    missing = are_missing(labels)
    if not missing.any():
        return
    found = sorted({str(label).replace("nan", "NaN") for label in labels[missing]})
    raise ValueError(
        f"{name} has missing labels ({', '.join(found)}) in {missing.sum()} of {len(labels)} rows: leave out rows "
        f"without a label, and keep those with pandas.notna({name})."
    )


def are_missing(labels: NDArray) -> NDArray[np.bool_]:
    """Which labels are missing values."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    return np.array([is_missing(label) for label in labels], dtype=bool)


def is_missing(label: object) -> bool:
    """Whether a label is None, NaN, NaT or pandas' NA."""
    return label is None or str(label == label) == "<NA>" or (not isinstance(label, str) and bool(label != label))


def label_codes(
    y: ArrayLike, classes: NDArray, n: int, name: str = "y_noisy", *, names: Any = None, rows: str = "X"
) -> NDArray[np.intp]:
    """Encode the labels of n rows as indices in `classes`; raise a ValueError for an unknown label.

    If the rows have names, warn of a Series that has these in another order; `rows` says of what rows they are.
    """
    labels = validate_labels(y, n, name)
    if unknown := sorted(set(labels.tolist()) - set(classes.tolist()), key=str):
        raise ValueError(f"{name} has labels {unknown} that are not among classes_ {classes.tolist()}.")
    warn_of_order(names, y, name, rows)
    return np.searchsorted(classes, labels)


def verified_labels(labels: Any, mask: NDArray[np.bool_], name: str) -> NDArray:
    """Validate labels of the rows that a mask marks, given for these alone or for all rows.

    Labels of other rows are ignored, missing ones too. Positions count, also in a Series with another index.
    """
    n, m = len(mask), int(mask.sum())
    if hasattr(labels, "toarray") or not (isinstance(labels, list | tuple) or np.ndim(labels)):
        return validate_labels(labels, m, name)  # no labels, which is said there
    if len(labels) not in (m, n):
        raise ValueError(
            f"{name} has {len(labels)} labels, and {m} of the {n} rows are trusted: give one label for each trusted "
            f"row, in their order ({m}), or one for each row of X ({n}; those of other rows are ignored). "
            "Cross-validation and searches cut the second form as they cut X, and not the first."
        )
    return validate_labels(_selected(labels, mask if len(labels) == n else np.ones(m, bool)), m, name)


def _selected(labels: Any, mask: NDArray[np.bool_]) -> Any:
    """Labels at a mask, as if there were no others: missing ones among these change the type of an array."""
    if isinstance(labels, list | tuple):
        return [label for label, marked in zip(labels, mask, strict=True) if marked]
    if hasattr(labels, "iloc"):
        column = as_column(labels.iloc[np.flatnonzero(mask)])
    else:
        column = np.asanyarray(as_column(labels))[mask]
    return column.tolist() if isinstance(column, np.ndarray) and column.dtype.kind == "O" else column


def with_true_labels(y: ArrayLike, trusted: ArrayLike, y_meta: ArrayLike, names: Any = None) -> NDArray:
    """Labels of all rows: of trusted rows those in `y_meta`, of others those in `y`; `names` as in `label_codes`."""
    labels = of_one_type(as_array(as_column(y), "y"))
    mask = check_mask(as_column(trusted), len(labels), "trusted")
    if not mask.any():
        return labels
    verified = _like(verified_labels(y_meta, mask, "y_meta"), labels, "y_meta")
    warn_of_order(names, trusted, "trusted")
    warn_of_order(names, y_meta, "y_meta", mask=mask)
    order = np.concatenate([np.flatnonzero(~mask), np.flatnonzero(mask)])
    return np.concatenate([labels[~mask], verified])[np.argsort(order)]


def class_codes(given: dict[str, NDArray]) -> tuple[NDArray, dict[str, NDArray]]:
    """Sorted classes of all labels, and all labels as indices of them.

    Parameters
    ----------
    given : dict of str to ndarray
        Labels by name: those of the noisy rows as ``y``; of clean rows ``y_meta`` and, where they are known, the noisy
        ones as ``y_meta_noisy``, or as `IN_Y` if they are entries of y.
    """
    _check_precision(given)
    labels = {name: _like(y, given["y"], name) for name, y in given.items()}
    classes = _union(labels)
    _check_classes(labels)
    _check_unlabelled(labels, classes)
    _warn_of_missing_text(labels, classes)
    return classes, {name: np.searchsorted(classes, y) for name, y in labels.items()}


def _check_precision(given: dict[str, NDArray]) -> None:
    """Raise for large integers beside floats, which would name several integers at once."""
    numbers = [y for y in given.values() if y.dtype.kind in "iuf"]
    if len(numbers) < 2 or np.result_type(*numbers).kind != "f" or all(y.dtype.kind == "f" for y in numbers):
        return
    largest = max(float(np.abs(y.astype(np.float64)).max(initial=0)) for y in numbers)
    if largest >= _LARGEST_FLOAT:
        types = {name: str(y.dtype) for name, y in given.items()}
        raise ValueError(
            f"labels up to {largest:.6g} are of types {types}: floats cannot tell them apart; use one type."
        )


def _kind(y: NDArray) -> str:
    """Kind of the labels: bool, number or text."""
    first = y.dtype.kind if y.dtype.kind != "O" else np.asarray(y[:1].tolist()).dtype.kind
    return {"b": "bool", "i": "number", "u": "number", "f": "number"}.get(first, "text")


def _like(y: NDArray, model: NDArray, name: str) -> NDArray:
    if _kind(y) != _kind(model):
        advice = _ENCODE_ALL if _are_encoded(np.unique(model)) else ""
        raise ValueError(
            f"y holds {_kind(model)} labels such as {model[:1].tolist()[0]!r}, but {name} holds {_kind(y)} labels "
            f"such as {y[:1].tolist()[0]!r}: both must name classes in the same way{advice}."
        )
    # pandas stores integers as floats in a column with missing values; they name the same classes
    if y.dtype.kind == "f" and model.dtype.kind in "iu" and np.array_equal(y, y.astype(model.dtype)):
        return y.astype(model.dtype)
    return y


def _union(labels: dict[str, NDArray]) -> NDArray:
    classes = np.unique(np.concatenate([np.unique(y) for y in labels.values()]))
    if len(classes) < 2 or len(np.unique(labels["y"])) < 2:
        found = np.unique(labels["y"]).tolist()
        raise ValueError(f"at least 2 classes are needed among the noisy labels, got one class: y holds {found} alone.")
    return classes


def _check_classes(labels: dict[str, NDArray]) -> None:
    """Warn of clean classes that no noisy label has, and raise for noisy labels of clean rows that no other has."""
    noisy = np.unique(np.concatenate([labels["y"], labels.get(IN_Y, labels["y"])])).tolist()
    clean = set(labels.get("y_meta", labels["y"]).tolist())
    if absent := sorted(set(labels.get("y_meta_noisy", labels["y"]).tolist()) - set(noisy) - clean):
        raise ValueError(
            f"y_meta_noisy has labels {absent} that are neither in y nor in y_meta; y has {noisy}"
            f"{_hints(absent, noisy)}{_ENCODE_ALL if _are_encoded(noisy) else ''}."
        )
    if absent := sorted(clean - set(noisy)):
        warnings.warn(
            f"y_meta has the classes {absent}, which no noisy label has{_hints(absent, noisy)}. They are classes of "
            "their own; correct their names if they are spelt differently in y"
            f"{_ENCODE_ALL if _are_encoded(noisy) else ''}.",
            UserWarning,
            stacklevel=6,
        )


def _are_encoded(classes: Any) -> bool:
    """Whether sorted classes are 0..c-1."""
    return np.array_equal(classes, np.arange(len(classes))) and _kind(np.asarray(classes)) == "number"


def _check_unlabelled(labels: dict[str, NDArray], classes: NDArray) -> None:
    """Raise for -1 beside 0, 1, 2, ..., which marks rows without a label; of -1, 0, 1, which may be classes, warn."""
    if _kind(classes) != "number" or len(classes) < 3 or not np.array_equal(classes, np.arange(-1, len(classes) - 1)):
        return
    name, n = next((name, int((y == -1).sum())) for name, y in labels.items() if (y == -1).any())
    found = f"{name} has the label -1 in {n} of {len(labels[name])} rows, beside 0 to {len(classes) - 2}"
    leave_out = f"leave out rows without a label, and keep those with {'y' if name == IN_Y else name} != -1"
    if len(classes) > 3:
        raise ValueError(f"{found}: {leave_out}; if -1 is a class, give the classes other numbers, or names.")
    warnings.warn(f"{found}, and it is taken as a class: if it is none, {leave_out}.", UserWarning, stacklevel=6)


def _warn_of_missing_text(labels: dict[str, NDArray], classes: NDArray) -> None:
    """Warn of classes that are named as numpy and pandas write a missing value."""
    texts = [text for text in classes.tolist() if isinstance(text, str) and text.strip() in _MISSING_TEXTS]
    for name, text in product(labels, texts):
        if n := int((labels[name] == text).sum()):
            warnings.warn(
                f"{name} has the label {text!r} in {n} of {len(labels[name])} rows, and it is taken as a class: if the "
                "label is missing there, leave out these rows.",
                UserWarning,
                stacklevel=6,
            )


def _hints(absent: list, noisy: list) -> str:
    """Names among the noisy labels that a class may be a spelling of."""
    names = {str(name).strip().casefold(): name for name in noisy}
    near = {a: difflib.get_close_matches(str(a).strip().casefold(), names, 1, _ALIKE) for a in absent}
    found = [f"{a!r} is close to {names[match[0]]!r}" for a, match in near.items() if match and isinstance(a, str)]
    return f" ({', '.join(found)})" if found else ""
