"""Convert the data given to `fit` into two data sets with integer labels: noisy rows and clean rows."""

import warnings
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d, validate_data
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset

from ..nets import DatasetRows, Rows
from ..transition import check_mask, refuse_masked, says_nothing
from ._labels import as_column, check_objects, class_codes, validate_labels

# clean rows count as unscaled if their mean differs from that of the noisy rows by more than this many standard
# deviations in the median column; a choice, not measured
_FAR = 5.0

# samples of a Dataset that are checked: a Dataset may be slow to read. A choice, not measured
_LOOKED_AT = 8

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


def validate_rows(estimator: BaseEstimator, X: Samples, *, reset: bool, name: str = "X") -> Any:
    """Validate X: return a numeric ndarray of at least 2 dimensions, or the torch Dataset itself."""
    if isinstance(X, Dataset):
        _check_dataset(X, name)
        return X
    refuse_masked(X, name)
    return _native(validate_data(estimator, X, reset=reset, dtype="numeric", allow_nd=True), name)


def _native(X: NDArray, name: str) -> NDArray:
    """Convert to the byte order of the machine and to double precision at most: torch has no others."""
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {X.dtype}; give numbers.")
    if X.dtype.itemsize <= 8:
        return X.astype(X.dtype.newbyteorder("="), copy=False)
    with np.errstate(over="ignore"):
        narrow = X.astype(np.float64)
    if not np.array_equal(narrow, X):
        raise ValueError(f"{name} has dtype {X.dtype}, of which float64 cannot hold all values; round them first.")
    return narrow


def _check_dataset(X: Any, name: str) -> None:
    """Raise unless a Dataset has an array of one shape in each of a few samples."""
    if isinstance(X, IterableDataset) or not hasattr(X, "__len__"):
        raise ValueError(f"{name} is an IterableDataset; a map-style Dataset (with len and indices) is needed.")
    if not len(X):
        raise ValueError(f"{name} is a Dataset with 0 samples; at least one is needed.")
    rows, shapes = as_rows(X), set()
    for i in np.linspace(0, len(X) - 1, min(len(X), _LOOKED_AT), dtype=int).tolist():
        sample = rows[i][0]
        array = isinstance(sample, np.ndarray) and sample.dtype.kind in "biuf"
        if not (array or isinstance(sample, Tensor | Real)):
            raise ValueError(
                f"sample {i} of {name} is a {type(sample).__name__}; give tensors or arrays of numbers: encode text, "
                "and convert images."
            )
        shapes.add(tuple(np.shape(sample)))
    if len(shapes) > 1:
        raise ValueError(f"samples of {name} have the shapes {sorted(shapes)}; give them one shape, by padding.")


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
        refuse_masked(X, "X")
        if y is not None:
            check_objects(y, "y")
        inputs, y = validate_data(estimator, X, as_column(y), dtype="numeric", allow_nd=True)
        inputs = _native(inputs, "X")
    noisy = Labelled(inputs, validate_labels(y, len(inputs), "y"), group=_group_codes(groups, len(inputs)))
    if trusted is None and meta is None and X_meta is None and y_meta_noisy is not None:
        raise ValueError(f"y_meta_noisy has noisy labels of clean rows, but there is no clean row. {HOW_TO_PASS}")
    if trusted is not None:
        return _encoded(*_by_mask(noisy, trusted, y_meta_noisy))
    if meta is not None:
        X_meta, y_meta = _pair(meta)
    if X_meta is None:
        return _encoded(noisy, None)
    wrapped = isinstance(X_meta, tuple) and len(X_meta) == 1
    X_meta = X_meta[0] if isinstance(X_meta, tuple) and wrapped else X_meta
    clean_inputs = validate_rows(estimator, X_meta, reset=False, name="X_meta")
    if meta is None and not wrapped and len(clean_inputs) == len(inputs):
        _warn_of_length(len(inputs))
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


def _warn_of_length(n: int) -> None:
    """Warn that cross-validation would cut X_meta, because it is as long as X."""
    warnings.warn(
        f"X_meta has as many rows as X ({n}): cross-validation and searches cut such an argument down to the "
        "training rows. Inside them pass meta=(X_meta, y_meta), or X_meta=(X_meta,).",
        UserWarning,
        stacklevel=4,
    )


def _by_mask(rows: Labelled, trusted: ArrayLike, y_meta_noisy: ArrayLike | None) -> tuple[Labelled, Labelled]:
    mask = check_mask(as_column(trusted), len(rows.y), "trusted")
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
    of_rows: NDArray = column_or_1d(as_column(groups))
    if len(of_rows) != n:
        raise ValueError(f"groups has {len(of_rows)} entries for {n} rows; give one group per row of X.")
    return np.searchsorted(group_names(groups), of_rows)


def group_names(groups: ArrayLike) -> NDArray:
    """Sorted names of the groups."""
    return np.unique(column_or_1d(as_column(groups)))


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


def warn_of_chance(estimator: object, noisy: Rows, clean: Rows) -> None:
    """Warn if the noisy labels say nothing about the classes; of a Dataset this is not known without loading it."""
    if isinstance(noisy, DatasetRows) or isinstance(clean, DatasetRows) or noisy.X.shape[1:] != clean.X.shape[1:]:
        return
    if (pvalue := says_nothing(noisy.X, noisy.label, clean.X, clean.label)) is None:
        return
    warnings.warn(
        "the noisy labels say nothing about the classes of the rows, as far as a test can tell (independence of the "
        f"label and of the class of the nearest clean rows: p = {pvalue:.2f}). {type(estimator).__name__} would learn "
        "chance: check that X and y are in the same order, or train on the clean rows alone, by "
        "CrossEntropyClassifier().fit(X_meta, y_meta).",
        UserWarning,
        stacklevel=3,
    )


def _encoded(noisy: Labelled, clean: Labelled | None) -> tuple[NDArray, Rows, Rows | None]:
    """Sorted classes, and both sets with labels 0..c-1."""
    given = {"y": noisy.y}
    if clean is not None:
        given |= {"y_meta": clean.y} | ({} if clean.y_noisy is None else {"y_meta_noisy": clean.y_noisy})
    classes, codes = class_codes(given)
    noisy_rows = as_rows(noisy.X, codes["y"], group=noisy.group)
    if clean is None:
        return classes, noisy_rows, None
    return classes, noisy_rows, as_rows(clean.X, codes["y_meta"], noisy_label=codes.get("y_meta_noisy"))
