"""Convert the data given to `fit` into two data sets with integer labels: noisy rows and clean rows."""

import re
import warnings
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.exceptions import DTypePromotionError
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, sparray, spmatrix
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data
from skorch.helper import SliceDataset
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from ..nets import Rows, as_rows, canonical
from ..transition import check_mask, refuse_masked
from ._data_warnings import names_of_rows, warn_if_unscaled, warn_of_length, warn_of_order
from ._labels import IN_Y, as_column, check_objects, class_codes, labels_of, validate_labels, verified_labels
from ._weights import row_weights

# samples of a Dataset that are checked: a Dataset may be slow to read. A choice, not measured
_LOOKED_AT = 8

# from so many clean rows on it is warned of noisy labels that are all true. A choice, not measured
_MANY = 20

# what scikit-learn lets through as rows
_ROWS: dict[str, Any] = {"dtype": "numeric", "allow_nd": True, "accept_sparse": "csr"}

# what to do with text
_ENCODE = "encode it in a Pipeline (OneHotEncoder in a ColumnTransformer, TfidfVectorizer for sentences)"

# end of error messages about clean data
HOW_TO_PASS = (
    "Pass verified labels as fit(X, y, trusted=mask, y_meta=labels), with a boolean mask over the rows of X; or, for "
    "rows that are not in X, as fit(X, y, meta=(X_meta, y_meta)), or fit(X, y, X_meta=..., y_meta=...)."
)
# for the same messages, of a mask that cross-validation has cut
_IN_FOLDS = (
    "In cross-validation, calibration or a learning curve the training rows of one fold are meant: give a cv that "
    "shuffles (StratifiedKFold(5, shuffle=True); learning_curve(..., shuffle=True)), one that keeps trusted rows in "
    "each fold (TrustedKFold; in CalibratedClassifierCV after sklearn.set_config(enable_metadata_routing=True)), or "
    "clean rows that are not cut, as meta=."
)

# for errors about the number of clean labels
_IF_CUT = (
    "; cross-validation and searches cut arguments that are as long as X, but not a tuple: inside them give "
    "meta=(X_meta, y_meta)"
)

Samples: TypeAlias = ArrayLike | Dataset | sparray | spmatrix


class Labelled(NamedTuple):
    """Validated inputs and labels of the user; noisy labels of clean rows, and other columns, by name."""

    inputs: Rows
    y: NDArray
    y_noisy: dict[str, NDArray] = {}  # noqa: RUF012  # never changed
    columns: dict[str, NDArray] = {}  # noqa: RUF012


def validate_rows(estimator: BaseEstimator, X: Samples, *, reset: bool, name: str = "X") -> Any:
    """Validate X: return a numeric ndarray of at least 2 dimensions, a CSR matrix, or the torch Dataset itself."""
    if isinstance(X, Dataset):
        _check_dataset(X, name)
        return X
    return _native(_numbers(estimator, _whole(X, name), name=name, reset=reset), name)


def _whole(X: Any, name: str) -> Any:
    """Raise for masked entries; of a sparse matrix, add up what it has several times; of samples, take the inputs."""
    refuse_masked(X, name)
    if are_samples(X):
        return [sample[0] for sample in X]
    if isinstance(X, SliceDataset):
        raise ValueError(f"{name} is a SliceDataset of skorch's; give the Dataset itself, which searches take too.")
    return canonical(X) if issparse(X) and X.ndim == 2 else X


def are_samples(X: Any) -> bool:
    """Whether X is a list of samples that hold an input and others, as searches make one of a Dataset.

    Rows of numbers, or of arrays of one shape, are none, but for tuples as a TensorDataset gives them.
    """
    sample = X[0] if isinstance(X, list) and X else None
    if not isinstance(sample, tuple | list) or not sample or not isinstance(sample[0], np.ndarray | Tensor):
        return False
    first, *others = sample
    of_tensors = isinstance(sample, tuple) and (not others or (isinstance(first, Tensor) and len(others) == 1))
    differ = any(getattr(other, "shape", ()) != first.shape for other in others)
    return (of_tensors or differ) and all(isinstance(other, tuple | list) and other for other in X)


def _numbers(estimator: BaseEstimator, *data: Any, name: str = "X", reset: bool = True) -> Any:
    """Let scikit-learn validate rows, or rows and labels; say what to do with text, and which rows are meant."""
    try:
        return validate_data(estimator, *data, reset=reset, **_ROWS)
    except (ValueError, TypeError) as error:
        said = str(error)
        if "Expected 2D array" in said and np.asarray(data[0]).dtype.kind in "US":
            raise ValueError(f"{name} has text: {_ENCODE}.") from error
        if any(
            of_text in said for of_text in ("could not convert string", "Cannot cast str", "arrays of bytes/strings")
        ):
            raise ValueError(f"{name} has text ({said}): {_ENCODE}.") from error
        if isinstance(error, DTypePromotionError) or re.search("not '(Time|date)", said):
            raise ValueError(
                f"{name} has columns of numbers and of others, such as dates ({said}): {_ENCODE}."
            ) from error
        if name == "X" or isinstance(error, TypeError):
            raise
        named = re.sub(r"\bX\b", name, said)
        raise ValueError(named if name in named else f"{name}: {named}") from error


def _native(X: Any, name: str) -> Any:
    """Convert to the byte order of the machine and to double precision at most: torch has no others."""
    if X.dtype.kind == "O":
        raise ValueError(f"{name} has text or categories (dtype object): {_ENCODE}.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {X.dtype}; give numbers.")
    if X.dtype.itemsize <= 8:
        return X.astype(X.dtype.newbyteorder("="), copy=False)
    with np.errstate(over="ignore"):
        narrow = X.astype(np.float64)
    if not np.array_equal(*(rows.data if issparse(rows) else rows for rows in (narrow, X))):
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
    if isinstance(X, TensorDataset) and not bool(X.tensors[0].isfinite().all()):
        raise ValueError(f"{name} contains NaN or infinity: leave out these rows, or replace such values.")


def read_rows(
    estimator: BaseEstimator,
    X: Samples,
    y: ArrayLike | None,
    meta: tuple[Samples, ArrayLike] | Dataset | None = None,
    X_meta: Samples | None = None,
    y_meta: ArrayLike | None = None,
    trusted: ArrayLike | None = None,
    y_meta_noisy: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[NDArray, Rows, Rows | None]:
    """Read noisy and clean rows, whichever form the clean data has, and encode the labels as 0..c-1.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted labels.
    noisy : Rows
        With a column ``sample_weight`` if that is given. Rows of weight 0 are left out.
    clean : Rows or None
        With a column ``noisy_label`` if `y_meta_noisy` is given, or `y_meta` for trusted rows.
    """
    _check_forms(meta, X_meta, y_meta, trusted, y_meta_noisy)
    names = names_of_rows(X, y)
    for name, series in {"y": y, "trusted": trusted}.items():
        warn_of_order(names, series, name)
    if isinstance(X, Dataset):
        inputs = validate_rows(estimator, X, reset=True)
        y = labels_of(X, "X") if y is None else y
    else:
        y = labels_of(X, "X") if y is None and are_samples(X) else y
        X = _whole(X, "X")
        if y is not None:
            check_objects(y, "y")
        inputs, y = _numbers(estimator, X, as_column(y))
        inputs = _native(inputs, "X")
    n = len(rows := as_rows(inputs))
    noisy = Labelled(rows, validate_labels(y, n, "y"))
    if sample_weight is not None:
        noisy = noisy._replace(columns={"sample_weight": row_weights(sample_weight, n)})
        warn_of_order(names, sample_weight, "sample_weight")
    if trusted is not None:
        noisy, clean = _by_mask(noisy, trusted, y_meta, y_meta_noisy, names)
        return _encoded(_with_weight(noisy), clean)
    noisy = _with_weight(noisy)
    if meta is not None:
        X_meta, y_meta = _pair(meta)
    if X_meta is None:
        return _encoded(noisy, None)
    clean_inputs = validate_rows(estimator, X_meta, reset=False, name="X_meta")
    n_clean = len(clean_rows := as_rows(clean_inputs))
    if meta is None and n_clean == n:
        warn_of_length(n)
    _check_shapes(rows, clean_rows)
    warn_if_unscaled(inputs, clean_inputs)
    clean = Labelled(clean_rows, validate_labels(y_meta, n_clean, "y_meta", _IF_CUT))
    names = names_of_rows(X_meta, y_meta)
    for name, series in {"y_meta": y_meta, "y_meta_noisy": y_meta_noisy}.items():
        warn_of_order(names, series, name, "X_meta")
    if y_meta_noisy is not None:
        labels = validate_labels(y_meta_noisy, n_clean, "y_meta_noisy", _IF_CUT)
        clean = clean._replace(y_noisy={"y_meta_noisy": labels})
    return _encoded(noisy, clean)


def _with_weight(noisy: Labelled) -> Labelled:
    """Leave out rows of weight 0."""
    weights = noisy.columns.get("sample_weight")
    if weights is None or weights.all():
        return noisy
    if not weights.any():
        raise ValueError("sample_weight is zero for all noisy rows; give a weight above 0 to those that shall be used.")
    kept = weights > 0
    columns = {name: column[kept] for name, column in noisy.columns.items()}
    return Labelled(noisy.inputs.take(np.flatnonzero(kept)), noisy.y[kept], columns=columns)


def _check_shapes(rows: Rows, clean: Rows) -> None:
    """Raise for clean rows of another shape than the noisy ones, which one network cannot take in a batch."""
    shape, of_clean = (tuple(some.take([0]).inputs().shape[1:]) for some in (rows, clean))
    if shape != of_clean:
        raise ValueError(f"rows of X_meta have the shape {of_clean}, and rows of X {shape}; give all the same.")


def _check_forms(meta: object, X_meta: object, y_meta: object, trusted: object, y_meta_noisy: object) -> None:
    given = [n for n, v in {"meta": meta, "X_meta": X_meta, "trusted": trusted}.items() if v is not None]
    if len(given) > 1:
        raise ValueError(f"clean data was given {len(given)} times, as {given}; give it once. {HOW_TO_PASS}")
    if X_meta is not None and y_meta is None:
        raise ValueError(f"X_meta and y_meta go together; X_meta was given alone. {HOW_TO_PASS}")
    if y_meta is not None and X_meta is None and trusted is None:
        raise ValueError(f"y_meta goes together with trusted or X_meta; it was given alone. {HOW_TO_PASS}")
    if not given and y_meta_noisy is not None:
        raise ValueError(f"y_meta_noisy has noisy labels of clean rows, but there is no clean row. {HOW_TO_PASS}")
    if trusted is not None and y_meta is not None and y_meta_noisy is not None:
        raise ValueError(
            "the noisy labels of the trusted rows were given twice: with trusted and y_meta, y already has them, and "
            "y_meta_noisy has them too. Leave y_meta_noisy out; or put the true labels into y and leave y_meta out."
        )


def _pair(meta: object) -> tuple[Any, Any]:
    if isinstance(meta, Dataset):
        _check_dataset(meta, "meta")
        return meta, labels_of(meta, "meta")
    if not isinstance(meta, tuple | list) or len(meta) != 2:
        what = f"{type(meta).__name__} of length {len(meta)}" if hasattr(meta, "__len__") else type(meta).__name__
        raise ValueError(f"meta must be a pair (X_meta, y_meta), got a {what}.")
    return meta[0], meta[1]


def _by_mask(
    rows: Labelled, trusted: ArrayLike, y_meta: ArrayLike | None, y_meta_noisy: ArrayLike | None, names: Any
) -> tuple[Labelled, Labelled]:
    """Noisy and clean rows. Of clean rows, y has the noisy labels if `y_meta` is given, and else the true ones."""
    mask = check_mask(as_column(trusted), len(rows.y), "trusted")
    if mask.all():
        raise ValueError("all rows are trusted: no noisy row is left to train on.")
    if not mask.any():
        raise ValueError(f"the clean set is empty: no row is trusted. {_IN_FOLDS} {HOW_TO_PASS}")
    noisy, clean = (Labelled(rows.inputs.take(np.flatnonzero(m)), rows.y[m]) for m in (~mask, mask))
    noisy = noisy._replace(columns={name: column[~mask] for name, column in rows.columns.items()})
    if y_meta is not None:
        verified = verified_labels(y_meta, mask, "y_meta")
        warn_of_order(names, y_meta, "y_meta", mask=mask)
        _warn_of_scores(y_meta, len(mask))
        return noisy, clean._replace(y=verified, y_noisy={IN_Y: clean.y})
    if y_meta_noisy is not None:
        clean = clean._replace(y_noisy={"y_meta_noisy": verified_labels(y_meta_noisy, mask, "y_meta_noisy")})
        warn_of_order(names, y_meta_noisy, "y_meta_noisy", mask=mask)
    return noisy, clean


def _warn_of_scores(y_meta: Any, n: int) -> None:
    """Warn of labels for all rows, the form for searches, where these would score by the noisy labels."""
    if len(y_meta) < n or get_config()["enable_metadata_routing"]:
        return
    warnings.warn(
        f"y_meta has a label for each of the {n} rows, as a search needs it; but without metadata routing a search "
        "scores held-out rows by their noisy labels in y. In a search, use "
        "sklearn.set_config(enable_metadata_routing=True), or put the true labels of trusted rows into y and pass "
        "their noisy labels as y_meta_noisy, one for each row. Else give the labels of the trusted rows alone.",
        UserWarning,
        stacklevel=5,
    )


def _encoded(noisy: Labelled, clean: Labelled | None) -> tuple[NDArray, Rows, Rows | None]:
    """Sorted classes, and both sets with labels 0..c-1."""
    labels = {"y": noisy.y} | ({} if clean is None else {"y_meta": clean.y} | clean.y_noisy)
    classes, codes = class_codes(labels)
    noisy_rows = noisy.inputs.with_columns(label=codes["y"], **noisy.columns)
    if clean is None:
        return classes, noisy_rows, None
    clean_rows = clean.inputs.with_columns(label=codes["y_meta"])
    known = next(((name, codes[name]) for name in clean.y_noisy), None)
    if known is None:
        return classes, noisy_rows, clean_rows
    if len(known[1]) >= _MANY and np.array_equal(known[1], codes["y_meta"]):
        _warn_of_true_labels(known[0], len(known[1]))
    return classes, noisy_rows, clean_rows.with_columns(noisy_label=known[1])


def _warn_of_true_labels(name: str, n: int) -> None:
    """Warn that one kind of labels may have been given twice: T would then have too little noise."""
    advice = "check that the true labels are not the noisy ones"
    advice = "if y holds true labels there, leave y_meta out" if name == IN_Y else advice
    warnings.warn(
        f"the true and noisy labels of all {n} clean rows agree (the noisy ones are {name}): {advice}.",
        UserWarning,
        stacklevel=5,
    )
