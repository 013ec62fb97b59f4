"""Convert the data of `fit` to noisy and clean rows with class indices as labels."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse, sparray, spmatrix
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import _num_samples, validate_data
from skorch.helper import SliceDict
from torch import Tensor
from torch.utils.data import Dataset, Subset, TensorDataset

from ..labels._arrays import as_array, has_minus_one, of_one_type, refuse_masked, warn_of_order
from ..labels._columns import split_columns
from ..labels._draw import weights_of_draw
from ..labels._read import Labels, SeparateLabels, labels_of_fit, read_labels
from ..meta_gradient._forward_pass import ARRAYS, has_parts
from ..nets import DatasetRows, Rows
from ..nets._rows import separated
from ._warnings import warn_if_unscaled, warn_of_copies

Samples: TypeAlias = ArrayLike | Mapping[str, Any] | Dataset | sparray | spmatrix
SeparateSamples: TypeAlias = tuple[Samples, ArrayLike] | Dataset

# parameters that control sampling
_DRAWS = ("iterator_train", "iterator_train__batch_sampler", "iterator_train__sampler", "iterator_train__shuffle")


def read_rows(
    estimator: BaseEstimator,
    X: Samples,
    y: Any,
    y_verified: Any,
    clean: tuple[Any, Any, Any],
    sample_weight: Any,
    sources: Any,
    groups: Any,
) -> tuple[Rows, Rows, Rows, Labels]:
    """Return noisy samples, clean samples and samples without any label, with class indices as labels, and all labels.

    `clean` are X_clean, y_clean and y_clean_noisy. Noisy samples have a weight above 0. Clean samples have a
    ``sample_weight`` by their draw, if it is known.
    """
    draws = [name for name in _DRAWS if name in estimator.get_params(deep=False)]
    is_stratified = estimator.verified_sampling == "stratified"
    if draws and (is_stratified or sample_weight is not None):
        raise ValueError(f"sample_weight and verified_sampling='stratified' need the default sampling. Omit {draws}.")
    warn_of_order(X, y, y_verified, sample_weight, sources, groups)
    if y is None and _is_dataset(X):
        y = _labels_of_pairs(X, "X")
    X_clean, *labels_clean = clean
    rows = validate_rows(estimator, X, reset=True)
    beside = None if X_clean is None else _separate_rows(estimator, X_clean, rows)
    separate = None if beside is None else SeparateLabels(len(beside), *labels_clean)
    labels = labels_of_fit(len(rows), y, y_verified, separate, sources, sample_weight, groups)
    return _with_labels(rows, beside, labels, by_label=not draws and not is_stratified)


def _separate_rows(estimator: BaseEstimator, X_clean: Any, rows: Rows) -> Rows:
    """Validate X_clean. Raise unless its samples have the shape of the samples of X, as batches can have rows of both.

    Warn if they seem unscaled, or are also in X.
    """
    beside = validate_rows(estimator, X_clean, reset=False, name="X_clean")
    if beside.sample_shape != rows.sample_shape:
        raise ValueError(f"samples of X_clean have the shape {beside.sample_shape}; pass {rows.sample_shape}, as in X.")
    if isinstance(rows.source, np.ndarray) and isinstance(beside.source, np.ndarray):
        warn_if_unscaled(rows, beside)
        warn_of_copies(rows, beside)
    return beside


def _with_labels(rows: Rows, beside: Rows | None, labels: Labels, *, by_label: bool) -> tuple[Rows, Rows, Rows, Labels]:
    """Select noisy and clean samples, from `rows` or `beside`, and add their labels and weights."""
    in_X, of_clean = labels.positions
    has_label = labels.noisy >= 0
    noisy = rows if has_label.sum() == len(rows) else rows.take(in_X[has_label])
    weights = None if labels.weights is None else labels.weights[labels.is_noisy][has_label]
    noisy = noisy.with_columns(label=labels.noisy[has_label], sample_weight=weights)
    clean = rows.take(of_clean) if beside is None else beside
    weight: Any = None if labels.weights is None else 1.0  # the mean weight of the noisy samples
    if by_label and len(clean) and np.ptp(of_draw := labels.weights_of_draw()):
        weight = of_draw
    clean = clean.with_columns(label=labels.clean, sample_weight=weight)
    return noisy, clean, rows.take(in_X[~has_label]), labels


# ---------------------------------------------------------------------------- the form of clean data
def separate_samples(meta: Any, X_clean: Any, y_clean: Any, y_clean_noisy: Any) -> tuple[Any, Any, Any]:
    """Return X_clean, y_clean and y_clean_noisy from any form; None without separate clean samples."""
    if meta is not None and X_clean is not None:
        raise ValueError("clean data was given 2 times, as meta and X_clean. Pass one of them.")
    if (X_clean is None) != (y_clean is None):
        alone = "X_clean" if y_clean is None else "y_clean"
        raise ValueError(f"X_clean and y_clean go together, but only {alone} was given. Pass both.")
    if y_clean_noisy is not None and meta is None and X_clean is None:
        raise ValueError("y_clean_noisy was given without meta. Pass noisy labels of verified samples of X in y.")
    if meta is None:
        return X_clean, y_clean, y_clean_noisy
    if isinstance(meta, Dataset):
        _check_dataset(meta, "meta")
        return meta, _labels_of_pairs(meta, "meta"), y_clean_noisy
    if not isinstance(meta, tuple | list) or len(meta) != 2:
        got = type(meta).__name__
        raise ValueError(f"meta must be a pair (X_clean, y_clean), got a {got}. Pass noisy labels as y_clean_noisy.")
    return *meta, y_clean_noisy


# ---------------------------------------------------------------------------- rows
def validate_rows(estimator: BaseEstimator, X: Any, *, reset: bool, name: str = "X") -> Rows:
    """Validate X: an array of at least 2 dimensions, a sparse matrix, several parts, or a torch Dataset."""
    if _is_dataset(X):
        _check_dataset(X, name)
        return DatasetRows(X)
    if isinstance(X, Mapping) and not issparse(X):  # a DOK matrix is a Mapping too
        return _rows_of_parts(X, name)
    refuse_masked(X, name)
    try:
        values = validate_data(estimator, X, reset=reset, dtype="numeric", allow_nd=True, accept_sparse="csr")
    except (ValueError, np.exceptions.DTypePromotionError) as error:
        raise ValueError(f"{name} is not valid: {error}") from error
    values = _in_type_of_torch(values, name)
    return Rows(csr_array(values) if issparse(values) else values)


def _rows_of_parts(X: Mapping[Any, Any], name: str) -> Rows:
    """Convert a mapping of numeric arrays or tensors to rows. Raise unless all have the same length."""
    parts = {part: _part(X[part], f"{name}[{part!r}]") for part in X}
    lengths = {part: len(array) for part, array in parts.items()}
    if len(set(lengths.values())) != 1 or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"{name} has parts of lengths {lengths}. Pass equally long arrays, named as in the module.")
    return Rows(parts)


def _part(part: Any, name: str) -> NDArray:
    return _in_type_of_torch(as_array(part.numpy(force=True) if isinstance(part, Tensor) else part, name), name)


def _in_type_of_torch(array: Any, name: str) -> Any:
    """Convert finite numbers, dense or sparse, to a type that torch supports."""
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {array.dtype}. Pass dense numbers: encode categories, text and dates.")
    dtype = np.float64 if array.dtype.itemsize > 8 else array.dtype.newbyteorder("=")
    return check_array(array, accept_sparse="csr", ensure_2d=False, allow_nd=True, dtype=dtype, input_name=name)


def _is_dataset(X: Any) -> bool:
    """Whether X is a Dataset, or a list of its samples, as made by scikit-learn's cross-validation.

    Rows of numbers, or of arrays of one shape, are no samples, except tuples as in a TensorDataset.
    """
    if isinstance(X, Dataset):
        return True
    sample = X[0] if isinstance(X, list) and X else None
    if isinstance(sample, Mapping):
        return True
    if not isinstance(sample, tuple | list) or not sample:
        return False
    first, *others = sample
    if has_parts(first):  # an input and a label, else nested rows of numbers
        return bool(others) and not any(map(has_parts, others))
    is_row = isinstance(sample, list) or (bool(others) and not isinstance(first, Tensor))
    return isinstance(first, ARRAYS) and (not is_row or len({np.shape(entry) for entry in sample}) > 1)


def _check_dataset(X: Any, name: str) -> None:
    """Raise unless a Dataset has samples, and values of a TensorDataset are finite."""
    if not hasattr(X, "__len__") or not len(X):
        raise ValueError(f"{name} is a {type(X).__name__} without samples or __len__. Pass a map-style Dataset.")
    tensors = X.tensors if isinstance(X, TensorDataset) else ()
    if not all(bool(part.isfinite().all()) for part in tensors if part.ndim > 1 or part is tensors[0]):
        raise ValueError(f"{name} contains NaN or infinity. Drop these samples or impute the values.")


# ---------------------------------------------------------------------------- labels
def _labels_of_pairs(data: Any, name: str) -> NDArray:
    """Read the labels of a Dataset or list of pairs (input, label), which loads each sample unless it is a tensor."""
    if isinstance(data, TensorDataset) and len(data.tensors) > 1 and data.tensors[-1].ndim == 1:
        return data.tensors[-1].numpy(force=True)
    labels = []
    for i in range(len(data)):
        _, rest = separated(data[i])
        if len(rest) != 1:
            raise ValueError(f"sample {i} of {name} is not a pair (input, label). Pass pairs, or labels as y.")
        label = rest[0]
        labels.append(label.item() if isinstance(label, Tensor) and not label.ndim else label)
    return np.array(labels)


# ---------------------------------------------------------------------------- scores
def rows_to_score(
    classifier: Any, X: Any, y: Any, y_verified: Any = None, sample_weight: Any = None
) -> tuple[Any, NDArray, Any]:
    """Select samples, true labels and weights for a score: verified samples if these are marked, else all samples.

    Verified samples that were not drawn at random get weights with which they represent all samples.
    """
    if y is None and y_verified is None:
        if not _is_dataset(X):
            raise ValueError("y is None. Pass the true labels.")
        y = _labels_of_pairs(X, "X")
    columns = split_columns(y, y_verified)
    if columns.verified is None:
        return X, of_one_type(as_array(columns.given, "y")), sample_weight
    if isinstance(X, Mapping) and not issparse(X):
        X = SliceDict(**_rows_of_parts(X, "X").source)  # supports indexing
    is_label = has_minus_one(getattr(classifier, "classes_", None))
    labels = read_labels(columns, _num_samples(X), minus_one_is_label=is_label)
    if not len(labels.clean):
        raise ValueError("no sample is verified, but scores need verified samples. Use cv=VerifiedKFold(...).")
    if sample_weight is not None:
        sample_weight = _safe_indexing(sample_weight, labels.is_clean)
    of_draw = _weights_to_score(classifier, labels)
    if np.ptp(of_draw):
        sample_weight = of_draw if sample_weight is None else sample_weight * of_draw
    if isinstance(X, Dataset):
        X = Subset(X, np.flatnonzero(labels.is_clean).tolist())
    else:
        X = _safe_indexing(X, labels.is_clean)
    return X, labels.classes[labels.clean], sample_weight


def _weights_to_score(classifier: Any, labels: Labels) -> NDArray[np.float64]:
    """Weights of verified samples by draw; if all are verified, as in a fold, by the given labels in `fit`."""
    if labels.drawn is not None or not labels.is_clean.all():
        return labels.weights_of_draw()
    model: Any = getattr(classifier, "noise_model_", None)
    if not hasattr(model, "out_of_fold_"):
        return np.ones(len(labels.clean))
    of_fit = dict(zip(model.labels_.tolist(), model.out_of_fold_.label_weights, strict=True))
    of_label = np.array([of_fit.get(name, 1.0) for name in labels.classes.tolist()])
    return weights_of_draw(None, labels.noisy_of_clean, of_label)
