"""Convert the data given to `fit` into two data sets with integer labels: noisy rows and clean rows."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data
from torch.utils.data import Dataset, IterableDataset

from ..nets import DatasetRows, Rows

# clean rows count as unscaled if their mean differs from that of the noisy rows by more than this many standard
# deviations in the median column; a choice, not measured
_FAR = 5.0

# end of error messages about clean data
HOW_TO_PASS = (
    "Pass verified labels as fit(X, y, meta=(X_meta, y_meta)), or fit(X, y, X_meta=..., y_meta=...), or "
    "fit(X, y, trusted=mask) with a boolean mask over the rows of X."
)


Samples = ArrayLike | Dataset


class Labelled(NamedTuple):
    """Validated rows and labels of the user; with noisy labels of clean rows, and groups, where given."""

    X: Any
    y: NDArray
    y_noisy: NDArray | None = None
    group: NDArray | None = None


def as_rows(X: NDArray | Dataset, label: NDArray | None = None, **columns: NDArray | None) -> Rows:
    """Rows of an array or of a torch Dataset, with those columns that are not None."""
    kind = DatasetRows if isinstance(X, Dataset) else Rows
    return kind(X, label, **{name: column for name, column in columns.items() if column is not None})


def validate_rows(estimator: BaseEstimator, X: Samples, *, reset: bool) -> Any:
    """Validate X: return a numeric ndarray of at least 2 dimensions, or the torch Dataset itself."""
    if isinstance(X, Dataset):
        if isinstance(X, IterableDataset):
            raise ValueError("X is an IterableDataset; a map-style Dataset (with len and indices) is needed.")
        return X
    return validate_data(estimator, X, reset=reset, dtype="numeric", allow_nd=True)


def validate_labels(y: ArrayLike | None, n: int, name: str) -> NDArray:
    """Validate labels: return a 1-d array with one label per row."""
    if y is None:
        raise ValueError(f"{name} is None: one label per row is needed (requires y to be passed).")
    labels: NDArray = column_or_1d(_to_numpy(y), warn=True)
    try:
        check_classification_targets(labels)
    except TypeError as error:  # labels that cannot be compared
        raise ValueError(f"{name} mixes labels of several kinds, or has missing ones: {error}.") from error
    if len(labels) != n:
        raise ValueError(f"{name} has {len(labels)} labels for {n} rows (inconsistent numbers of samples).")
    return labels


def _to_numpy(y: object) -> Any:
    """Convert a column of a data frame: scikit-learn would make floats of pandas' nullable integers and booleans."""
    return y.to_numpy() if hasattr(y, "to_numpy") else y


def read_rows(
    estimator: BaseEstimator,
    X: Samples,
    y: ArrayLike,
    meta: tuple[Samples, ArrayLike] | None = None,
    X_meta: Samples | None = None,
    y_meta: ArrayLike | None = None,
    trusted: ArrayLike | None = None,
    y_meta_noisy: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> tuple[NDArray, Rows, Rows | None]:
    """Read noisy and clean rows, whichever form the clean data has, and encode the labels as 0..c-1.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted labels.
    noisy : Rows
        With a column ``group`` if `groups` is given: the index of the group among the sorted names.
    clean : Rows or None
        With a column ``noisy_label`` if `y_meta_noisy` is given.
    """
    _check_forms(meta, X_meta, y_meta, trusted)
    if isinstance(X, Dataset):
        inputs = validate_rows(estimator, X, reset=True)
    else:
        inputs, y = validate_data(estimator, X, _to_numpy(y), dtype="numeric", allow_nd=True)
    noisy = Labelled(inputs, validate_labels(y, len(inputs), "y"), group=_group_codes(groups, len(inputs)))
    if trusted is not None:
        return _encoded(*_by_mask(noisy, trusted, y_meta_noisy))
    if meta is not None:
        X_meta, y_meta = _pair(meta)
    elif X_meta is not None:
        X_meta = _without_length(X_meta, len(inputs))
    if X_meta is None:
        return _encoded(noisy, None)
    clean_inputs = validate_rows(estimator, X_meta, reset=False)
    _warn_if_unscaled(inputs, clean_inputs)
    clean = Labelled(clean_inputs, validate_labels(y_meta, len(clean_inputs), "y_meta"))
    return _encoded(noisy, _with_noisy(clean, y_meta_noisy))


def _check_forms(meta: object, X_meta: object, y_meta: object, trusted: object) -> None:
    given = [n for n, v in {"meta": meta, "X_meta": X_meta, "trusted": trusted}.items() if v is not None]
    if len(given) > 1:
        raise ValueError(f"clean data was given {len(given)} times, as {given}; give it once. {HOW_TO_PASS}")
    if (X_meta is None) != (y_meta is None):
        raise ValueError(f"X_meta and y_meta go together; only one of them was given. {HOW_TO_PASS}")


def _pair(meta: object) -> tuple[Any, Any]:
    if not isinstance(meta, tuple | list) or len(meta) != 2:
        what = f"{type(meta).__name__} of length {len(meta)}" if hasattr(meta, "__len__") else type(meta).__name__
        raise ValueError(f"meta must be a pair (X_meta, y_meta), got a {what}.")
    return meta[0], meta[1]


def _without_length(X_meta: Any, n: int) -> Any:
    """Unwrap ``(X_meta,)``; warn if cross-validation would cut X_meta because it is as long as X."""
    if isinstance(X_meta, tuple) and len(X_meta) == 1:
        return X_meta[0]
    if len(X_meta) == n:
        warnings.warn(
            f"X_meta has as many rows as X ({n}): cross-validation and searches cut such an argument down to the "
            "training rows. Inside them pass meta=(X_meta, y_meta), or X_meta=(X_meta,).",
            UserWarning,
            stacklevel=4,
        )
    return X_meta


def _by_mask(rows: Labelled, trusted: ArrayLike, y_meta_noisy: ArrayLike | None) -> tuple[Labelled, Labelled]:
    mask = np.asarray(trusted)
    if mask.shape != rows.y.shape or not np.isin(mask, (0, 1)).all():
        raise ValueError(
            f"trusted must be a boolean mask of shape {rows.y.shape} over the rows of X, got shape {mask.shape} and "
            f"dtype {mask.dtype}."
        )
    mask = mask.astype(bool)
    if mask.all():
        raise ValueError("all rows are trusted: no noisy row is left to train on.")
    inputs = as_rows(rows.X)
    noisy, clean = (Labelled(inputs.take(np.flatnonzero(m)).X, rows.y[m]) for m in (~mask, mask))
    group = None if rows.group is None else rows.group[~mask]
    return noisy._replace(group=group), _with_noisy(clean, y_meta_noisy)


def _with_noisy(clean: Labelled, y_meta_noisy: ArrayLike | None) -> Labelled:
    if len(clean.y) == 0:
        raise ValueError(f"the clean set is empty. {HOW_TO_PASS}")
    if y_meta_noisy is None:
        return clean
    return clean._replace(y_noisy=validate_labels(y_meta_noisy, len(clean.y), "y_meta_noisy"))


def _group_codes(groups: ArrayLike | None, n: int) -> NDArray[np.intp] | None:
    """Index of each row's group among the sorted names."""
    if groups is None:
        return None
    of_rows: NDArray = column_or_1d(_to_numpy(groups))
    if len(of_rows) != n:
        raise ValueError(f"groups has {len(of_rows)} entries for {n} rows; give one group per row of X.")
    return np.searchsorted(group_names(groups), of_rows)


def group_names(groups: ArrayLike) -> NDArray:
    """Sorted names of the groups."""
    return np.unique(column_or_1d(_to_numpy(groups)))


def _warn_if_unscaled(X: NDArray | Dataset, X_meta: NDArray | Dataset) -> None:
    """Warn if the clean rows seem unscaled: a Pipeline passes `meta=` to its last step without transforming it."""
    if isinstance(X, Dataset) or isinstance(X_meta, Dataset) or X.shape[1:] != X_meta.shape[1:]:
        return
    noisy, clean = (rows[:: len(rows) // 1000 + 1].astype(np.float64) for rows in (X, X_meta))  # a sample
    spread = np.maximum(noisy.std(axis=0), 1e-12)
    if np.median(np.abs(clean.mean(axis=0) - noisy.mean(axis=0)) / spread) > _FAR:
        warnings.warn(
            "the clean rows lie far from X in most features: were they scaled alike? A Pipeline transforms neither "
            "meta= nor X_meta= by itself; use Pipeline(..., transform_input=['X_meta']) with metadata routing, or "
            "trusted=.",
            UserWarning,
            stacklevel=5,
        )


# ---------------------------------------------------------------------------- labels
def _encoded(noisy: Labelled, clean: Labelled | None) -> tuple[NDArray, Rows, Rows | None]:
    """Sorted classes, and both sets with labels 0..c-1."""
    given = {"y": noisy.y}
    if clean is not None:
        given |= {"y_meta": clean.y} | ({} if clean.y_noisy is None else {"y_meta_noisy": clean.y_noisy})
    labels = {name: _like(y, noisy.y, name) for name, y in given.items()}
    classes = _union(labels)
    codes = {name: np.searchsorted(classes, y) for name, y in labels.items()}
    noisy_rows = as_rows(noisy.X, codes["y"], group=noisy.group)
    if clean is None:
        return classes, noisy_rows, None
    return classes, noisy_rows, as_rows(clean.X, codes["y_meta"], noisy_label=codes.get("y_meta_noisy"))


def label_codes(y: ArrayLike, classes: NDArray, n: int, name: str = "y_noisy") -> NDArray[np.intp]:
    """Encode the labels of n rows as indices in `classes`; raise a ValueError for an unknown label."""
    y = validate_labels(y, n, name)
    if unknown := sorted(set(y.tolist()) - set(classes.tolist())):
        raise ValueError(f"{name} has labels {unknown} that are not among classes_ {classes.tolist()}.")
    return np.searchsorted(classes, y)


def _kind(y: NDArray) -> str:
    """Kind of the labels: bool, number or text."""
    first = y.dtype.kind if y.dtype.kind != "O" else np.asarray(y[:1].tolist()).dtype.kind
    return {"b": "bool", "i": "number", "u": "number", "f": "number"}.get(first, "text")


def _like(y: NDArray, model: NDArray, name: str) -> NDArray:
    if _kind(y) != _kind(model):
        raise ValueError(
            f"y holds {_kind(model)} labels such as {model[:1].tolist()[0]!r}, but {name} holds {_kind(y)} labels "
            f"such as {y[:1].tolist()[0]!r}: both must name classes in the same way."
        )
    # pandas stores integers as floats in a column with missing values; they name the same classes
    if y.dtype.kind == "f" and model.dtype.kind in "iu" and np.array_equal(y, y.astype(model.dtype)):
        return y.astype(model.dtype)
    return y


def _union(labels: dict[str, NDArray]) -> NDArray:
    classes = np.unique(np.concatenate([np.unique(y) for y in labels.values()]))
    if len(classes) < 2:
        raise ValueError(f"at least 2 classes are needed, got one class: {classes.tolist()} in {list(labels)}.")
    return classes
