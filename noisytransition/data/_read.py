"""X, y and clean data of `fit`: from what the user gave to two sets of rows with class indices as labels."""

import re
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, sparray, spmatrix
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _num_samples, column_or_1d, validate_data
from skorch.helper import SliceDict
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from ..meta_gradient._forward_pass import has_parts
from ..nets import Rows
from ..nets._rows import as_rows, canonical, separated
from ..transition._checks import as_array, refuse_masked
from ..transition._draw import weights_by_given_label
from ..transition._labels import (
    LARGEST_FLOAT,
    VERIFIED,
    SourceLabels,
    complete_labels,
    given_and_verified,
    has_minus_one,
    known_labels,
    labels_of_samples,
    of_one_type,
)
from ._parts import check_sample, rows_of_parts
from ._warnings import warn_if_unscaled, warn_of_copies, warn_of_order, warn_of_true_labels

Samples: TypeAlias = ArrayLike | Mapping[str, Any] | Dataset | sparray | spmatrix

# samples of a Dataset that are checked: a Dataset may be slow to read. A choice, not measured
_LOOKED_AT = 8
# name of the given labels of verified rows
_IN_Y = "y of the verified rows"
# name of the labels of several sources, one of each kind
_OF_SOURCES = "y of all sources"
# parameters by which the user draws the rows
DRAWS = ("iterator_train", "iterator_train__sampler", "iterator_train__shuffle", "iterator_train__batch_sampler")

# end of error messages about clean data
HOW_TO_PASS = (
    "Pass true labels of verified rows of X as fit(X, df[['label', 'verified']]) or fit(X, y, y_verified=labels), "
    "missing where nobody checked; those of other rows as fit(X, y, meta=(X_meta, y_meta))."
)
# for labels of other classes than those of y
_ENCODE_ALL = (
    "some tools of scikit-learn give y as 0, 1, 2, ... and clean labels as they are (VotingClassifier, "
    "cross_val_predict(method='predict_proba')): encode both before, by a LabelEncoder"
)


def read_rows(
    estimator: BaseEstimator,
    X: Samples,
    y: ArrayLike | None,
    y_verified: ArrayLike | None = None,
    meta: tuple[Samples, ArrayLike] | Dataset | None = None,
    X_meta: Samples | None = None,
    y_meta: ArrayLike | None = None,
    y_meta_noisy: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    sources: ArrayLike | None = None,
    *,
    weigh_by_label: bool = True,
) -> tuple[NDArray, Rows, Rows, SourceLabels | None]:
    """Read noisy and clean rows, whichever form the clean data has, and encode the labels as 0..c-1.

    Clean rows that were drawn by their given label get weights, if these are wanted.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted labels.
    noisy : Rows
        Those of weight 0 are left out.
    clean : Rows
        None of them if no clean data is given. With a column ``noisy_label`` if some of their noisy labels are known;
        -1 where one is not.
    by_source : SourceLabels or None
        Of the rows of X, if there are several sources.

    Both have a column ``sample_weight`` if that is given.
    """
    if sample_weight is not None and (drawn := sorted(set(DRAWS) & set(estimator.get_params(deep=False)))):
        raise ValueError(f"weights decide how rows are drawn, and so do {drawn}; give one of the two.")
    warn_of_order(X, y)
    if y is None and (isinstance(X, Dataset) or _are_samples(X)):
        y = _labels_of_pairs(X, "X")
    y, y_verified, X_meta, y_meta, by_source = separate_rows(y, y_verified, meta, X_meta, y_meta, y_meta_noisy, sources)
    rows = validate_rows(estimator, X, reset=True)
    beside, n_meta = None, None
    if X_meta is not None:  # one network takes both in a batch
        beside = validate_rows(estimator, X_meta, reset=False, name="X_meta")
        shape, n_meta = rows.sample_shape, len(beside)
        if beside.sample_shape != shape:
            found = f"the shape {beside.sample_shape}, and rows of X {shape}"
            raise ValueError(f"rows of X_meta have {found}; give all the same.")
        if not has_parts(rows.source):
            warn_if_unscaled(rows, beside)
            warn_of_copies(rows, beside)
    n, of_labels = len(rows), (y, y_verified, y_meta, y_meta_noisy)
    labels = read_labels(n, *of_labels, n_meta=n_meta, sample_weight=sample_weight, by_source=by_source)
    clean = rows.take(np.flatnonzero(labels.is_clean)) if beside is None else beside
    noisy = rows if labels.is_noisy.all() else rows.take(np.flatnonzero(labels.is_noisy))
    noisy = noisy.with_columns(label=labels.noisy, sample_weight=labels.weights)
    weight: Any = _weights_by_given_label(labels) if weigh_by_label else None
    if weight is None and labels.weights is not None:
        weight = 1.0  # that of the noisy rows in the mean
    clean = clean.with_columns(label=labels.clean, noisy_label=labels.noisy_of_clean, sample_weight=weight)
    return labels.classes, noisy, clean, labels.by_source


def _weights_by_given_label(labels: "EncodedLabels") -> NDArray[np.float64] | None:
    """Weights of clean rows that were drawn by their given label; None for others."""
    c, given = len(labels.classes), labels.noisy_of_clean
    if labels.clean is None or given is None:
        return None
    of_all = np.bincount(np.append(labels.noisy, given[given >= 0]), minlength=c)
    weights = weights_by_given_label(given, of_all, np.bincount(labels.clean, minlength=c))
    return weights if np.ptp(weights) else None


# ---------------------------------------------------------------------------- the form of clean data
def separate_rows(
    y: Any, y_verified: Any, meta: object, X_meta: object, y_meta: object, y_meta_noisy: object, sources: object = None
) -> tuple[Any, Any, Any, Any, SourceLabels | None]:
    """y, y_verified, X_meta, y_meta and labels by source, of whichever form; raise unless all is given once."""
    y, y_verified, by_source = given_and_verified(y, y_verified, sources=sources)
    given = [n for n, v in {"y_verified": y_verified, "meta": meta, "X_meta": X_meta}.items() if v is not None]
    if len(given) > 1:
        raise ValueError(f"clean data was given {len(given)} times, as {given}; give it once. {HOW_TO_PASS}")
    if (X_meta is None) != (y_meta is None):
        alone = "X_meta" if y_meta is None else "y_meta"
        raise ValueError(f"X_meta and y_meta go together; {alone} was given alone. {HOW_TO_PASS}")
    if y_meta_noisy is not None and given in ([], ["y_verified"]):
        raise ValueError(f"y_meta_noisy has noisy labels of rows that are not in X; give these rows too. {HOW_TO_PASS}")
    if meta is None:
        return y, y_verified, X_meta, y_meta, by_source
    if isinstance(meta, Dataset):
        _check_dataset(meta, "meta")
        return y, y_verified, meta, _labels_of_pairs(meta, "meta"), by_source
    if not isinstance(meta, tuple | list) or len(meta) != 2:
        what = f"{type(meta).__name__} of length {len(meta)}" if hasattr(meta, "__len__") else type(meta).__name__
        raise ValueError(f"meta must be a pair (X_meta, y_meta), got a {what}.")
    return y, y_verified, *meta, by_source


# ---------------------------------------------------------------------------- rows
def validate_rows(estimator: BaseEstimator, X: Any, *, reset: bool, name: str = "X") -> Rows:
    """Validate X: rows of an array of at least 2 dimensions, a CSR matrix, several parts, or a torch Dataset."""
    if isinstance(X, Dataset):
        _check_dataset(X, name)
        return as_rows(X)
    if isinstance(X, Mapping) and not issparse(X):  # a DOK matrix is one too
        return rows_of_parts(X, name)
    refuse_masked(X, name)
    if _are_samples(X):
        if has_parts(separated(X[0])[0]):
            _check_dataset(X, name)
            return as_rows(X)
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
    if isinstance(sample, Mapping):
        return True
    if not isinstance(sample, tuple | list) or not sample:
        return False
    first, *others = sample
    if has_parts(first):  # beside a label; else nested rows of numbers
        return bool(others) and not any(map(has_parts, others))
    if not isinstance(first, np.ndarray | Tensor):
        return False
    all_tensors = all(isinstance(entry, Tensor) for entry in sample) and (len(others) == 1 or first.ndim > 0)
    of_tensors = isinstance(sample, tuple) and (not others or all_tensors)
    differ = any(getattr(other, "shape", ()) != first.shape for other in others)
    return (of_tensors or differ) and all(isinstance(other, tuple | list) and other for other in X)


def _check_dataset(X: Any, name: str) -> None:
    """Raise unless a Dataset has an array of one shape, or the same parts, in each of a few samples."""
    if isinstance(X, IterableDataset):
        raise ValueError(f"{name} is an IterableDataset; a map-style Dataset (with len and indices) is needed.")
    if not hasattr(X, "__len__"):
        raise ValueError(f"{name} is a Dataset without __len__; define it to return the number of samples.")
    if not len(X):
        raise ValueError(f"{name} is a Dataset with 0 samples; at least one is needed.")
    rows, shapes = as_rows(X), set()
    for i in np.linspace(0, len(X) - 1, min(len(X), _LOOKED_AT), dtype=int).tolist():
        shapes.add(check_sample(rows[i][0], f"sample {i} of {name}"))
    if len(shapes) > 1:
        raise ValueError(f"samples of {name} have the shapes {', '.join(sorted(shapes))}; pad them to one.")
    tensors = X.tensors if isinstance(X, TensorDataset) else ()
    if not all(bool(part.isfinite().all()) for part in tensors if part.ndim > 1 or part is tensors[0]):
        raise ValueError(f"{name} contains NaN or infinity: leave out these rows, or replace such values.")


# ---------------------------------------------------------------------------- labels
class EncodedLabels(NamedTuple):
    """Labels of a fit, as indices of the sorted classes."""

    classes: NDArray
    is_noisy: NDArray[np.bool_]  # rows of X, but for verified ones and those of weight 0
    is_clean: NDArray[np.bool_]  # rows of X that are verified
    noisy: NDArray[np.intp]
    clean: NDArray[np.intp] | None  # true labels of the verified rows, or of those beside X
    noisy_of_clean: NDArray[np.intp] | None  # their noisy labels, -1 where unknown; None if all are unknown
    weights: NDArray[np.float64] | None  # of the noisy rows, of mean 1
    by_source: SourceLabels | None  # of all rows of X, if there are several sources


def read_labels(
    n: int,
    y: ArrayLike | None,
    y_verified: ArrayLike | None = None,
    y_meta: ArrayLike | None = None,
    y_meta_noisy: ArrayLike | None = None,
    *,
    n_meta: int | None = None,
    sample_weight: ArrayLike | None = None,
    by_source: SourceLabels | None = None,
) -> EncodedLabels:
    """Validate the labels of `fit`, without its rows: n of X, and `n_meta` clean ones beside X, if there are such."""
    has_given, given, is_clean, verified = labels_of_samples(
        _column(y, n, "y"), None if y_verified is None else _column(y_verified, n, "y_verified"), n
    )
    if y_verified is not None:
        _check_verified(has_given, is_clean)
    is_noisy, weights = has_given & ~is_clean, None
    if sample_weight is not None:
        is_noisy, weights = _weighted_rows(sample_weight, is_noisy)
    labels = {"y": given[is_noisy[has_given]], "y_verified": verified, _IN_Y: given[is_clean[has_given]]}
    has_pair, pair = has_given[is_clean], _IN_Y
    if n_meta is not None:
        pairs = None if y_meta_noisy is None else _column(y_meta_noisy, n_meta, "y_meta_noisy")
        has_pair, pairs = known_labels(pairs, n_meta, "y_meta_noisy", not has_minus_one(given))
        labels |= {"y_meta": validate_labels(y_meta, n_meta, "y_meta"), "y_meta_noisy": pairs}
        pair = "y_meta_noisy"
    if by_source is not None:
        by_source.check(labels.get("y_meta", verified))
        labels[_OF_SOURCES] = by_source.labels
    labels = {name: of_rows for name, of_rows in labels.items() if len(of_rows)}
    for name, of_rows in labels.items():
        _check_kind(of_rows, name)
    labels = {name: _like(of_rows, labels["y"], name) for name, of_rows in labels.items()}
    classes = np.unique(np.concatenate(list(labels.values())))
    _check_classes(labels, classes)
    codes = {name: np.searchsorted(classes, of_rows) for name, of_rows in labels.items()}
    clean, noisy_of_clean = codes.get("y_verified", codes.get("y_meta")), None
    if clean is not None and has_pair.any():
        noisy_of_clean = np.full(len(has_pair), -1)
        noisy_of_clean[has_pair] = codes[pair]
        warn_of_true_labels(clean[has_pair], codes[pair], in_y=pair == _IN_Y)
    by_source = None if by_source is None else by_source.of_classes(classes)
    return EncodedLabels(classes, is_noisy, is_clean, codes["y"], clean, noisy_of_clean, weights, by_source)


def validate_labels(y: ArrayLike | None, n: int, name: str) -> NDArray:
    """Validate labels: return a 1-d array with one label per row."""
    labels = complete_labels(_column(y, n, name), n, name)
    _check_kind(labels, name)
    return labels


def _column(y: Any, n: int, name: str) -> Any:
    """Validate the form of labels, some of which may be missing: return one entry for each of n rows."""
    if y is None:
        raise ValueError(f"{name} is None: give one label per row (requires y to be passed, but the target y is None).")
    if hasattr(y, "toarray"):
        raise ValueError(f"{name} is sparse; give a 1-d array, as {name}.toarray().ravel().")
    given = as_array(y, name)
    if given.ndim > 1 and given.shape[1:] != (1,):
        advice = (
            f"of one-hot labels or a language model's probabilities give {name}.argmax(axis=1), labels of several "
            "sources as a data frame with a column for each (docs/several_sources.rst)"
        )
        if given.shape[1:] == (2,) and not (given.dtype.kind == "f" and np.isfinite(given).all()):
            advice = (
                f"give a data frame, with a column {VERIFIED!r} or one for each of several sources; for "
                "cross_val_predict(method='predict_proba'), which makes an array of it, take `oof_proba_` of "
                "EMTransitionClassifier"
            )
        raise ValueError(
            f"{name} should be a 1d array with one label for each row, got the shape {given.shape}: {advice}."
        )
    column = column_or_1d(given, warn=True)
    if len(column) != n:
        cut = "" if name == "y" else "; cross-validation and searches cut arguments that are as long as X"
        raise ValueError(f"{name} has {len(column)} labels for {n} rows (inconsistent numbers of samples){cut}.")
    return y if isinstance(y, list | tuple) and given.ndim == 1 else column


def _check_kind(labels: NDArray, name: str) -> None:
    """Raise for infinite labels, text among others, and what are no classes."""
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError(f"{name} contains infinity, which is no label; leave out these rows.")
    if labels.dtype.kind == "O" and len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError(f"{name} mixes labels of several kinds, text and others; name all classes in the same way.")
    try:
        with warnings.catch_warnings():
            if name != "y":  # one clean row for each class is no regression problem
                warnings.filterwarnings("ignore", "The number of unique classes is greater")
            check_classification_targets(labels)
    except TypeError as error:  # labels that cannot be compared, or bytes
        raise ValueError(f"{name} has labels of type {type(labels[0]).__name__}: {error}; give text.") from error


def _labels_of_pairs(data: Any, name: str) -> NDArray:
    """Labels of pairs of input and label in a Dataset or list, sample by sample unless it is a TensorDataset."""
    if isinstance(data, TensorDataset) and len(data.tensors) > 1 and data.tensors[-1].ndim == 1:
        return data.tensors[-1].numpy(force=True)
    labels = []
    for i in range(len(data)):
        _, rest = separated(data[i])
        if len(rest) != 1:
            raise ValueError(
                f"no labels were given, and sample {i} of {name} is no pair of input and label: give labels."
            )
        label = rest[0]
        labels.append(label.item() if isinstance(label, Tensor) and not label.ndim else label)
    return np.array(labels)


def _check_verified(has_given: NDArray[np.bool_], is_verified: NDArray[np.bool_]) -> None:
    """Raise unless there are verified rows, and noisy ones beside them."""
    if not (has_given & ~is_verified).any():
        raise ValueError(
            "all rows are verified: no noisy row is left to train on. Verified labels are true labels and no mask; "
            "where nobody checked, give None or NaN (-1 only if it is none of the given labels)."
        )
    if not is_verified.any():
        raise ValueError(
            "the clean set is empty: no row is verified. In cross-validation give a cv that keeps verified rows in "
            f"each fold, such as TrustedKFold, or one that shuffles. {HOW_TO_PASS}"
        )


def _weighted_rows(sample_weight: ArrayLike, is_noisy: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray]:
    """Noisy rows with a weight above 0, and their weights, of mean 1; weights of verified rows are not used."""
    column = is_noisy[:, None]  # whose length the weights must have
    weights = _check_sample_weight(sample_weight, column, dtype=np.float64, ensure_non_negative=True)
    if not weights[is_noisy].any():
        raise ValueError("sample_weight is zero for all noisy rows; give those to be used a weight above 0.")
    is_noisy = is_noisy & (weights > 0)
    weights = weights[is_noisy] / weights[is_noisy].max()  # equal ones are 1 without rounding
    return is_noisy, weights / weights.mean()


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
            f"{y.item(0)!r}: both must name classes in the same way (verified labels are no mask); {_ENCODE_ALL}."
        )
    if y.dtype.kind == "O" and model.dtype.kind == "U":
        return y.astype(str)
    # pandas stores integers as floats in a column with missing values; they name the same classes
    is_exact = y.dtype.kind == "f" and model.dtype.kind in "iu" and np.abs(y).max(initial=0) < LARGEST_FLOAT
    return y.astype(model.dtype) if is_exact and np.array_equal(y, y.astype(model.dtype)) else y


def _check_classes(labels: dict[str, NDArray], classes: NDArray) -> None:
    """Raise for classes that labels cannot have meant, and warn of those that they may not have meant."""
    found = np.unique(np.append(labels["y"], labels.get(_IN_Y, labels["y"])))
    if len(found) < 2:
        raise ValueError(f"at least 2 classes are needed among the noisy labels, got one class: y holds {found} alone.")
    if classes.dtype.kind == "f" and np.abs(classes).max() >= LARGEST_FLOAT:
        raise ValueError(f"labels up to {np.abs(classes).max():.6g}: floats cannot tell them apart; give text.")
    name = "y_verified" if "y_verified" in labels else "y_meta"
    noisy = set(labels["y"].tolist()) | set(labels.get(_IN_Y, labels["y"]).tolist())
    clean = set(labels.get(name, labels["y"]).tolist())
    if absent := sorted(set(labels.get("y_meta_noisy", labels["y"]).tolist()) - noisy - clean):
        raise ValueError(
            f"y_meta_noisy has labels {absent} that are neither in y nor in y_meta; y has {sorted(noisy)}. "
            f"Correct their names; {_ENCODE_ALL}."
        )
    if absent := sorted(clean - noisy):
        warnings.warn(
            f"{name} has the classes {absent}, which no noisy label has. They are classes of their own; correct their "
            f"names if they are spelt differently in y; {_ENCODE_ALL}.",
            UserWarning,
            stacklevel=5,
        )
    if absent := sorted(set(labels.get(_OF_SOURCES, labels["y"]).tolist()) - noisy - clean):
        warnings.warn(
            f"some sources give the labels {absent}, which are most frequent in no row and true in no verified one. "
            "They are classes of their own; correct their names, or leave them missing.",
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
    leave_out = f"leave out rows without a label, and keep those with {name} != -1"
    if name == _IN_Y:
        leave_out = "give NaN where a verified row has no given label"
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


def rows_to_score(
    classifier: Any, X: Any, y: Any, y_verified: Any = None, sample_weight: Any = None
) -> tuple[Any, NDArray, Any]:
    """Rows, the labels that their predictions are compared with, and weights: of verified rows, if some are marked.

    Without verified labels, y has the labels of all rows. Verified rows that were drawn by their given label have the
    weights with which they stand for all.
    """
    if y is None and y_verified is None:
        if not isinstance(X, Dataset) and not _are_samples(X):
            raise ValueError("y is None: give the labels to compare predictions with.")
        y = _labels_of_pairs(X, "X")
    y, y_verified, _ = given_and_verified(y, y_verified)
    if y_verified is None:
        return X, of_one_type(as_array(y, "y")), sample_weight
    if isinstance(X, Mapping) and not issparse(X):
        X = SliceDict(**rows_of_parts(X, "X").source)  # which can be cut
    n = _num_samples(X)
    has_given, given = known_labels(y, n, "y", minus_one_is_missing=False)
    minus_one_is_missing = not has_minus_one(given, getattr(classifier, "classes_", None))
    is_verified, labels = known_labels(y_verified, n, "y_verified", minus_one_is_missing)
    if not len(labels):
        raise ValueError(
            "no row is verified, and scores are those of verified rows: give a cv with verified rows in each test set, "
            "such as TrustedKFold."
        )
    rows = np.flatnonzero(is_verified)
    weights = None if sample_weight is None else _safe_indexing(sample_weight, rows)
    by_label = _weights_to_score(classifier, has_given, given, is_verified, labels)
    if np.ptp(by_label):
        weights = by_label if weights is None else weights * by_label
    if is_verified.all():
        return X, labels, weights
    return Subset(X, rows.tolist()) if isinstance(X, Dataset) else _safe_indexing(X, rows), labels, weights


def _weights_to_score(
    classifier: Any, has_given: NDArray, given: NDArray, is_verified: NDArray, labels: NDArray
) -> NDArray[np.float64]:
    """Weights by given label; where all rows are verified, as in a fold, the labels of all are those of `fit`."""
    names, codes = np.unique(given, return_inverse=True)
    of_rows, of_all = np.full(len(has_given), -1), np.bincount(codes, minlength=1)
    of_rows[has_given] = codes
    if is_verified.all():
        model: Any = getattr(classifier, "noise_model_", None)
        if not hasattr(model, "held_out_"):
            return np.ones(len(labels))
        of_fit = dict(zip(model.labels_.tolist(), model.held_out_.given_labels, strict=True))
        of_all = np.array([of_fit.get(name, 0) for name in names.tolist()])
    return weights_by_given_label(of_rows[is_verified], of_all, np.unique(labels, return_counts=True)[1])
