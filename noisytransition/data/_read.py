"""X, y and clean data of `fit`: from what the user gave to two sets of rows with class indices as labels."""

import re
import warnings
from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, sparray, spmatrix
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from ..nets import Rows
from ..nets._rows import as_rows, canonical
from ..transition._checks import as_array, check_mask, refuse_masked
from ..transition._class_offset import equally_many
from ..transition._draw import weights_by_given_label
from ..transition._labels import is_missing, of_one_type
from ._warnings import warn_if_unscaled, warn_of_order, warn_of_true_labels

Samples: TypeAlias = ArrayLike | Dataset | sparray | spmatrix

# samples of a Dataset that are checked: a Dataset may be slow to read. A choice, not measured
_LOOKED_AT = 8
# integers from here on are not all apart as float64
_LARGEST_FLOAT = 2**53
# name of the noisy labels of clean rows that are entries of y
_IN_Y = "y of the trusted rows"
# parameters by which the user draws the rows
DRAWS = ("iterator_train", "iterator_train__sampler", "iterator_train__shuffle", "iterator_train__batch_sampler")

# end of error messages about clean data
HOW_TO_PASS = (
    "Pass verified labels as fit(X, y, trusted=mask, y_meta=labels), with a boolean mask over the rows of X; or, for "
    "rows that are not in X, as fit(X, y, meta=(X_meta, y_meta)), or fit(X, y, X_meta=..., y_meta=...)."
)
# for several inputs of a sample, as tokenizers give them
_PACK = "give one array, such as np.hstack of the inputs, and take them apart in the module's forward"
# for labels of other classes than those of y
_ENCODE_ALL = (
    "some tools of scikit-learn give y as 0, 1, 2, ... and clean labels as they are (VotingClassifier, "
    "cross_val_predict(method='predict_proba')): encode both before, by a LabelEncoder"
)


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
) -> tuple[NDArray, Rows, Rows]:
    """Read noisy and clean rows, whichever form the clean data has, and encode the labels as 0..c-1.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted labels.
    noisy : Rows
        Those of weight 0 are left out.
    clean : Rows
        None of them if no clean data is given. With a column ``noisy_label`` if `y_meta_noisy` is given, or `y_meta`
        for trusted rows.

    Both have a column ``sample_weight`` if that is given.
    """
    X_meta, y_meta = separate_rows(meta, X_meta, y_meta, trusted, y_meta_noisy)
    if sample_weight is not None and (drawn := sorted(set(DRAWS) & set(estimator.get_params(deep=False)))):
        raise ValueError(f"weights decide how rows are drawn, and so do {drawn}; give one of the two.")
    warn_of_order(X, y)
    if y is None and (isinstance(X, Dataset) or _are_samples(X)):
        y = _labels_of_pairs(X, "X")
    rows = validate_rows(estimator, X, reset=True)
    beside, n_meta = None, None
    if X_meta is not None:  # one network takes both in a batch
        beside = validate_rows(estimator, X_meta, reset=False, name="X_meta")
        shape, n_meta = rows.sample_shape, len(beside)
        if beside.sample_shape != shape:
            found = f"the shape {beside.sample_shape}, and rows of X {shape}"
            raise ValueError(f"rows of X_meta have {found}; give all the same.")
        warn_if_unscaled(rows, beside)
    labels = read_labels(len(rows), y, trusted, y_meta, y_meta_noisy, n_meta=n_meta, sample_weight=sample_weight)
    clean = rows.take(np.flatnonzero(labels.is_clean)) if beside is None else beside
    noisy = rows if labels.is_noisy.all() else rows.take(np.flatnonzero(labels.is_noisy))
    noisy = noisy.with_columns(label=labels.noisy, sample_weight=labels.weights)
    weight: Any = _weights_by_given_label(estimator, labels)
    if weight is None and labels.weights is not None:
        weight = 1.0  # that of the noisy rows in the mean
    clean = clean.with_columns(label=labels.clean, noisy_label=labels.noisy_of_clean, sample_weight=weight)
    return labels.classes, noisy, clean


def _weights_by_given_label(estimator: BaseEstimator, labels: "EncodedLabels") -> NDArray[np.float64] | None:
    """Weights of clean rows that were drawn by their given label, unless the user says how they are drawn."""
    params = estimator.get_params(deep=False)
    if labels.clean is None or labels.noisy_of_clean is None or set(DRAWS) & set(params):
        return None
    c, given = len(labels.classes), labels.noisy_of_clean
    if params.get("meta_sampling") == "stratified" or equally_many(np.bincount(labels.clean, minlength=c)):
        return None  # they were drawn by their true class
    weights = weights_by_given_label(given, np.bincount(np.append(labels.noisy, given[given >= 0]), minlength=c))
    return weights if np.ptp(weights) else None


# ---------------------------------------------------------------------------- the form of clean data
def separate_rows(
    meta: object, X_meta: object, y_meta: object, trusted: object, y_meta_noisy: object
) -> tuple[Any, Any]:
    """X_meta and y_meta, also of clean data that is given as `meta`; raise unless all is given once and together."""
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
            "the noisy labels of the trusted rows were given twice: with trusted and y_meta, y already has them. "
            "Leave y_meta_noisy out; or put the true labels into y and leave y_meta out."
        )
    if meta is None:
        return X_meta, y_meta
    if isinstance(meta, Dataset):
        _check_dataset(meta, "meta")
        return meta, _labels_of_pairs(meta, "meta")
    if not isinstance(meta, tuple | list) or len(meta) != 2:
        what = f"{type(meta).__name__} of length {len(meta)}" if hasattr(meta, "__len__") else type(meta).__name__
        raise ValueError(f"meta must be a pair (X_meta, y_meta), got a {what}.")
    return meta[0], meta[1]


# ---------------------------------------------------------------------------- rows
def validate_rows(estimator: BaseEstimator, X: Any, *, reset: bool, name: str = "X") -> Rows:
    """Validate X: return rows of a numeric ndarray of at least 2 dimensions, a CSR matrix, or a torch Dataset."""
    if isinstance(X, Dataset):
        _check_dataset(X, name)
        return as_rows(X)
    if isinstance(X, Mapping) and not issparse(X):  # a DOK matrix is one too
        raise ValueError(f"{name} is a {type(X).__name__} of {list(X)}; {_PACK}.")
    refuse_masked(X, name)
    if _are_samples(X):
        X = [sample[0] for sample in X]
    elif issparse(X) and X.ndim == 2:
        X = canonical(X)
    try:
        values = validate_data(estimator, X, reset=reset, dtype="numeric", allow_nd=True, accept_sparse="csr")
    except ValueError as error:
        raise ValueError(re.sub(r"\bX\b", name, str(error))) from error
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {values.dtype}; give numbers: encode text, categories and dates before.")
    if values.dtype.itemsize > 8:  # torch has no such type
        with np.errstate(over="ignore"):
            values = values.astype(np.float64)
        assert_all_finite(values, input_name=name)
    return as_rows(values.astype(values.dtype.newbyteorder("="), copy=False))


def _are_samples(X: Any) -> bool:
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


def _check_dataset(X: Any, name: str) -> None:
    """Raise unless a Dataset has an array of one shape in each of a few samples."""
    if isinstance(X, IterableDataset) or not hasattr(X, "__len__"):
        raise ValueError(f"{name} is an IterableDataset; a map-style Dataset (with len and indices) is needed.")
    if not len(X):
        raise ValueError(f"{name} is a Dataset with 0 samples; at least one is needed.")
    rows, shapes = as_rows(X), set()
    for i in np.linspace(0, len(X) - 1, min(len(X), _LOOKED_AT), dtype=int).tolist():
        sample = rows[i][0]
        is_array = isinstance(sample, np.ndarray) and sample.dtype.kind in "biuf"
        if not (is_array or isinstance(sample, Tensor | Real)):
            advice = _PACK if isinstance(sample, Mapping) else "give tensors or arrays of numbers"
            raise ValueError(f"sample {i} of {name} is a {type(sample).__name__}; {advice}.")
        shapes.add(tuple(np.shape(sample)))
    if len(shapes) > 1:
        raise ValueError(f"samples of {name} have the shapes {sorted(shapes)}; give them one shape, by padding.")
    if isinstance(X, TensorDataset) and not bool(X.tensors[0].isfinite().all()):
        raise ValueError(f"{name} contains NaN or infinity: leave out these rows, or replace such values.")


# ---------------------------------------------------------------------------- labels
class EncodedLabels(NamedTuple):
    """Labels of a fit, as indices of the sorted classes."""

    classes: NDArray
    is_noisy: NDArray[np.bool_]  # rows of X, but for trusted ones and those of weight 0
    is_clean: NDArray[np.bool_]  # rows of X that are trusted
    noisy: NDArray[np.intp]
    clean: NDArray[np.intp] | None  # true labels of the trusted rows, or of those beside X
    noisy_of_clean: NDArray[np.intp] | None  # their noisy labels, where these are known
    weights: NDArray[np.float64] | None  # of the noisy rows, of mean 1


def read_labels(
    n: int,
    y: ArrayLike | None,
    trusted: ArrayLike | None = None,
    y_meta: ArrayLike | None = None,
    y_meta_noisy: ArrayLike | None = None,
    *,
    n_meta: int | None = None,
    sample_weight: ArrayLike | None = None,
) -> EncodedLabels:
    """Validate the labels of `fit`, without its rows: n of X, and `n_meta` clean ones beside X, if there are such."""
    labels = {"y": validate_labels(y, n, "y")}
    is_noisy = np.ones(n, dtype=bool) if trusted is None else ~_trusted_rows(trusted, n)
    is_clean = ~is_noisy
    if n_meta is not None:
        labels["y_meta"] = validate_labels(y_meta, n_meta, "y_meta")
        if y_meta_noisy is not None:
            labels["y_meta_noisy"] = validate_labels(y_meta_noisy, n_meta, "y_meta_noisy")
    elif trusted is not None and y_meta is None:  # y has their true labels
        labels["y_meta"] = labels["y"][is_clean]
        if y_meta_noisy is not None:
            labels["y_meta_noisy"] = _verified_labels(y_meta_noisy, is_clean, "y_meta_noisy")
    elif trusted is not None:
        labels |= {"y_meta": _verified_labels(y_meta, is_clean, "y_meta"), _IN_Y: labels["y"][is_clean]}
    weights: NDArray[np.float64] | None = None
    if sample_weight is not None:
        column = is_noisy[:, None]  # whose length the weights must have
        weights = _check_sample_weight(sample_weight, column, dtype=np.float64, ensure_non_negative=True)
        if not weights[is_noisy].any():
            raise ValueError("sample_weight is zero for all noisy rows; give those to be used a weight above 0.")
        is_noisy &= weights > 0
        weights = weights[is_noisy] / weights[is_noisy].max()  # equal ones are 1 without rounding
        weights /= weights.mean()
    labels["y"] = labels["y"][is_noisy]
    labels = {name: _like(of_rows, labels["y"], name) for name, of_rows in labels.items()}
    classes = np.unique(np.concatenate(list(labels.values())))
    _check_classes(labels, classes)
    codes = {name: np.searchsorted(classes, of_rows) for name, of_rows in labels.items()}
    pairs = codes.get("y_meta_noisy", codes.get(_IN_Y))
    if pairs is not None:
        warn_of_true_labels(codes["y_meta"], pairs, in_y=_IN_Y in codes)
    return EncodedLabels(classes, is_noisy, is_clean, codes["y"], codes.get("y_meta"), pairs, weights)


def validate_labels(y: ArrayLike | None, n: int, name: str) -> NDArray:
    """Validate labels: return a 1-d array with one label per row."""
    if y is None:
        raise ValueError(f"{name} is None: give one label per row (requires y to be passed, but the target y is None).")
    if hasattr(y, "toarray"):
        raise ValueError(f"{name} is sparse; give a 1-d array, as {name}.toarray().ravel().")
    given = as_array(y, name)
    if given.ndim > 1 and given.shape[1:] != (1,):
        raise ValueError(
            f"{name} should be a 1d array with one label for each row, got the shape {given.shape}: of several labels "
            f"take the majority, of one-hot labels {name}.argmax(axis=1)."
        )
    is_list = isinstance(y, list | tuple) and given.dtype.kind == "U"
    _check_kind(np.array(y, dtype=object) if is_list else given, name)  # numpy makes text of NaN among text
    labels: NDArray = of_one_type(column_or_1d(given, warn=True))
    try:
        with warnings.catch_warnings():
            if name != "y":  # one clean row for each class is no regression problem
                warnings.filterwarnings("ignore", "The number of unique classes is greater")
            check_classification_targets(labels)
    except TypeError as error:  # labels that cannot be compared, or bytes
        raise ValueError(f"{name} has labels of type {type(labels[0]).__name__}: {error}; give text.") from error
    if len(labels) != n:
        cut = "" if name == "y" else "; cross-validation and searches cut arguments that are as long as X"
        raise ValueError(f"{name} has {len(labels)} labels for {n} rows (inconsistent numbers of samples){cut}.")
    return labels


def _check_kind(labels: NDArray, name: str) -> None:
    """Raise for missing and infinite labels, and for text among others."""
    if labels.dtype.kind not in "fO" or not labels.ndim:
        return
    labels = labels.ravel()
    missing = [is_missing(label) for label in labels]
    if any(missing):
        found = sorted({str(label).replace("nan", "NaN") for label in labels[missing]})
        raise ValueError(
            f"{name} has missing labels ({', '.join(found)}) in {sum(missing)} of {len(labels)} rows: leave out "
            f"rows without a label, and keep those with pandas.notna({name})."
        )
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError(f"{name} contains infinity, which is no label; leave out these rows.")
    if labels.dtype.kind == "O" and len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError(f"{name} mixes labels of several kinds, text and others; name all classes in the same way.")


def _labels_of_pairs(data: Any, name: str) -> NDArray:
    """Labels of pairs of input and label in a Dataset or list, sample by sample unless it is a TensorDataset."""
    if isinstance(data, TensorDataset) and len(data.tensors) == 2:
        return data.tensors[1].numpy(force=True)
    labels = []
    for i in range(len(data)):
        sample = data[i]
        if not isinstance(sample, tuple | list) or len(sample) != 2:
            raise ValueError(
                f"no labels were given, and sample {i} of {name} is no pair of input and label: give labels."
            )
        label = sample[1]
        labels.append(label.item() if isinstance(label, Tensor) and not label.ndim else label)
    return np.array(labels)


def _trusted_rows(trusted: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Validate the mask of the trusted rows."""
    mask = check_mask(trusted, n, "trusted")
    if mask.all():
        raise ValueError("all rows are trusted: no noisy row is left to train on.")
    if not mask.any():
        raise ValueError(
            "the clean set is empty: no row is trusted. In cross-validation give a cv that keeps trusted rows in each "
            "fold, such as TrustedKFold (in CalibratedClassifierCV after sklearn.set_config(enable_metadata_routing="
            f"True)) or one that shuffles. {HOW_TO_PASS}"
        )
    return mask


def _verified_labels(labels: Any, mask: NDArray[np.bool_], name: str) -> NDArray:
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
    if len(labels) == n:
        if isinstance(labels, list | tuple):
            labels = [labels[i] for i in np.flatnonzero(mask)]
        else:  # of a masked array, labels of other rows may be masked
            labels = np.asanyarray(labels.to_numpy() if hasattr(labels, "to_numpy") else labels)[mask]
    return validate_labels(labels, m, name)


# ---------------------------------------------------------------------------- classes
def _kind(y: NDArray) -> str:
    """Kind of the labels: bool, number or text."""
    first = y.dtype.kind if y.dtype.kind != "O" else np.asarray(y[:1].tolist()).dtype.kind
    return {"b": "bool", "i": "number", "u": "number", "f": "number"}.get(first, "text")


def _like(y: NDArray, model: NDArray, name: str) -> NDArray:
    """Labels with the type of others, which must be of the same kind."""
    if _kind(y) != _kind(model):
        raise ValueError(
            f"y holds {_kind(model)} labels such as {model.item(0)!r}, but {name} holds {_kind(y)} labels such as "
            f"{y.item(0)!r}: both must name classes in the same way; {_ENCODE_ALL}."
        )
    if y.dtype.kind == "O" and model.dtype.kind == "U":
        return y.astype(str)
    # pandas stores integers as floats in a column with missing values; they name the same classes
    is_exact = y.dtype.kind == "f" and model.dtype.kind in "iu" and np.abs(y).max(initial=0) < _LARGEST_FLOAT
    return y.astype(model.dtype) if is_exact and np.array_equal(y, y.astype(model.dtype)) else y


def _check_classes(labels: dict[str, NDArray], classes: NDArray) -> None:
    """Raise for classes that labels cannot have meant, and warn of those that they may not have meant."""
    found = np.unique(labels["y"])
    if len(found) < 2:
        raise ValueError(f"at least 2 classes are needed among the noisy labels, got one class: y holds {found} alone.")
    if classes.dtype.kind == "f" and np.abs(classes).max() >= _LARGEST_FLOAT:
        raise ValueError(f"labels up to {np.abs(classes).max():.6g}: floats cannot tell them apart; give text.")
    noisy = set(labels["y"].tolist()) | set(labels.get(_IN_Y, labels["y"]).tolist())
    clean = set(labels.get("y_meta", labels["y"]).tolist())
    if absent := sorted(set(labels.get("y_meta_noisy", labels["y"]).tolist()) - noisy - clean):
        raise ValueError(
            f"y_meta_noisy has labels {absent} that are neither in y nor in y_meta; y has {sorted(noisy)}. "
            f"Correct their names; {_ENCODE_ALL}."
        )
    if absent := sorted(clean - noisy):
        warnings.warn(
            f"y_meta has the classes {absent}, which no noisy label has. They are classes of their own; correct their "
            f"names if they are spelt differently in y; {_ENCODE_ALL}.",
            UserWarning,
            stacklevel=5,
        )
    _check_unlabelled(labels, classes)


def _check_unlabelled(labels: dict[str, NDArray], classes: NDArray) -> None:
    """Raise for -1 beside 0, 1, 2, ..., which marks rows without a label; of -1, 0, 1, which may be classes, warn."""
    if _kind(classes) != "number" or len(classes) < 3 or not np.array_equal(classes, np.arange(-1, len(classes) - 1)):
        return
    name, n = next((name, int((y == -1).sum())) for name, y in labels.items() if (y == -1).any())
    found = f"{name} has the label -1 in {n} of {len(labels[name])} rows, beside 0 to {len(classes) - 2}"
    leave_out = f"leave out rows without a label, and keep those with {'y' if name == _IN_Y else name} != -1"
    if len(classes) > 3:
        raise ValueError(f"{found}: {leave_out}; if -1 is a class, give the classes other numbers, or names.")
    warnings.warn(f"{found}, and it is taken as a class: if it is none, {leave_out}.", UserWarning, stacklevel=6)


# ---------------------------------------------------------------------------- labels of a fitted classifier
def label_codes(y: ArrayLike | None, classes: NDArray, n: int, name: str = "y_noisy") -> NDArray[np.intp]:
    """Encode the labels of n rows as indices in `classes`; raise a ValueError for an unknown label."""
    labels = validate_labels(y, n, name)
    if unknown := sorted(set(labels.tolist()) - set(classes.tolist()), key=str):
        raise ValueError(f"{name} has labels {unknown} that are not among classes_ {classes.tolist()}.")
    return np.searchsorted(classes, labels)


def labels_to_score(
    X: Samples, y: ArrayLike | None, trusted: ArrayLike | None = None, y_meta: ArrayLike | None = None
) -> NDArray:
    """Labels that predictions of X are compared with: y, or those of pairs in X; of trusted rows those in `y_meta`."""
    if y is None:
        if not isinstance(X, Dataset) and not _are_samples(X):
            raise ValueError("y is None: give the labels to compare predictions with.")
        y = _labels_of_pairs(X, "X")
    labels = of_one_type(as_array(y, "y"))
    if trusted is None or y_meta is None:
        return labels
    mask = check_mask(trusted, len(labels), "trusted")
    if not mask.any():
        return labels
    verified = _like(_verified_labels(y_meta, mask, "y_meta"), labels, "y_meta")
    labels = labels.astype(np.result_type(labels, verified))
    labels[mask] = verified
    return of_one_type(labels)
