"""Convert the data of `fit` to noisy and clean rows with class indices as labels."""

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
from ..transition._draw import inverse_probability_weights, relative_probabilities, weights_by_given_label
from ..transition._labels import (
    LARGEST_FLOAT,
    VERIFIED,
    GivenLabels,
    SourceLabels,
    check_unverified,
    complete_labels,
    encode,
    given_and_verified,
    has_minus_one,
    kind_of,
    known_labels,
    labels_of_samples,
    of_one_type,
    shortened,
    warn_of_order,
    warn_of_true_labels,
)
from ._parts import check_sample, rows_of_parts
from ._warnings import warn_if_unscaled, warn_of_copies

Samples: TypeAlias = ArrayLike | Mapping[str, Any] | Dataset | sparray | spmatrix

# number of checked samples of a Dataset, which may be slow to read: a choice, not measured
_LOOKED_AT = 8
# name of the given labels of verified samples
_IN_Y = "y of the verified samples"
# name of the distinct labels of several sources
_OF_SOURCES = "y of all sources"
# parameters that control sampling
DRAWS = ("iterator_train", "iterator_train__sampler", "iterator_train__shuffle", "iterator_train__batch_sampler")

# end of error messages about clean data
HOW_TO_PASS = (
    "Pass the true labels of verified samples as fit(X, df[['label', 'verified']]) or fit(X, y, y_verified=labels), "
    "missing for all others; or pass separate clean samples as fit(X, y, meta=(X_meta, y_meta))."
)
# end of error messages about X
_ENCODE_X = "Encode text, categories and dates as numbers first."
# end of error messages about classes that differ from y
_ENCODE_ALL = (
    "if y was encoded as 0, 1, 2, ... by VotingClassifier or cross_val_predict(method='predict_proba'), encode y and "
    "clean labels by a LabelEncoder first"
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
    """Validate noisy and clean samples and encode the labels as 0..c-1.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted labels.
    noisy : Rows
        Noisy samples with a weight above 0; with a column ``sample_weight`` if weights are given.
    clean : Rows
        Clean samples, possibly none. A column ``noisy_label`` has their known noisy labels, else -1. A column ``drawn``
        has the probabilities of their draw, if known. A column ``sample_weight`` has weights if they were stratified by
        noisy label or drawn with known probabilities (with `weigh_by_label`), else 1 if weights are given.
    by_source : SourceLabels or None
        Labels of all rows of X by several sources.
    """
    if sample_weight is not None and (drawn := sorted(set(DRAWS) & set(estimator.get_params(deep=False)))):
        raise ValueError(f"sample_weight cannot be combined with {drawn}: both control sampling. Omit one.")
    warn_of_order(X, y, y_verified, sample_weight, sources)
    if y is None and (isinstance(X, Dataset) or _are_samples(X)):
        y = _labels_of_pairs(X, "X")
    of_X, X_meta, y_meta = separate_rows(y, y_verified, meta, X_meta, y_meta, y_meta_noisy, sources)
    rows = validate_rows(estimator, X, reset=True)
    beside, n_meta = None, None
    if X_meta is not None:  # a batch can have rows of both
        beside = validate_rows(estimator, X_meta, reset=False, name="X_meta")
        shape, n_meta = rows.sample_shape, len(beside)
        if beside.sample_shape != shape:
            found = f"samples of X_meta have the shape {beside.sample_shape}, samples of X {shape}"
            raise ValueError(f"{found}. Pass equal shapes.")
        if not has_parts(rows.source):
            warn_if_unscaled(rows, beside)
            warn_of_copies(rows, beside)
    labels = read_labels(len(rows), of_X, y_meta, y_meta_noisy, n_meta=n_meta, sample_weight=sample_weight)
    clean = rows.take(np.flatnonzero(labels.is_clean)) if beside is None else beside
    noisy = rows if labels.is_noisy.all() else rows.take(np.flatnonzero(labels.is_noisy))
    noisy = noisy.with_columns(label=labels.noisy, sample_weight=labels.weights)
    weight: Any = _weights_of_draw(labels) if weigh_by_label else None
    if weight is None and labels.weights is not None:
        weight = 1.0  # the mean weight of the noisy samples
    columns = {"label": labels.clean, "noisy_label": labels.noisy_of_clean, "drawn": labels.drawn}
    clean = clean.with_columns(**columns, sample_weight=weight)
    return labels.classes, noisy, clean, labels.by_source


def _weights_of_draw(labels: "EncodedLabels") -> NDArray[np.float64] | None:
    """Weights of clean samples that were not drawn at random, by known probabilities or given labels; else None."""
    if labels.drawn is not None:
        return inverse_probability_weights(labels.drawn)
    c, given = len(labels.classes), labels.noisy_of_clean
    if labels.clean is None or given is None:
        return None
    of_all = np.bincount(np.append(labels.noisy, given[given >= 0]), minlength=c)
    weights = weights_by_given_label(given, of_all, np.bincount(labels.clean, minlength=c))
    return weights if np.ptp(weights) else None


# ---------------------------------------------------------------------------- the form of clean data
def separate_rows(
    y: Any, y_verified: Any, meta: object, X_meta: object, y_meta: object, y_meta_noisy: object, sources: object = None
) -> tuple[GivenLabels, Any, Any]:
    """Return the labels of X, X_meta and y_meta from any form. Raise for contradictory arguments."""
    of_X = given_and_verified(y, y_verified, sources=sources)
    given = [n for n, v in {"y_verified": of_X.verified, "meta": meta, "X_meta": X_meta}.items() if v is not None]
    if len(given) > 1:
        raise ValueError(f"clean data was given {len(given)} times, as {given}. Pass one of them.")
    if (X_meta is None) != (y_meta is None):
        alone = "X_meta" if y_meta is None else "y_meta"
        raise ValueError(f"X_meta and y_meta go together, but only {alone} was given. Pass both.")
    if y_meta_noisy is not None and given in ([], ["y_verified"]):
        raise ValueError("y_meta_noisy was given without meta. Pass noisy labels of verified samples of X in y.")
    if meta is None:
        return of_X, X_meta, y_meta
    if isinstance(meta, Dataset):
        _check_dataset(meta, "meta")
        return of_X, meta, _labels_of_pairs(meta, "meta")
    if not isinstance(meta, tuple | list) or len(meta) != 2:
        what = f"{type(meta).__name__} of length {len(meta)}" if hasattr(meta, "__len__") else type(meta).__name__
        raise ValueError(f"meta must be a pair (X_meta, y_meta), got a {what}. Pass noisy labels as y_meta_noisy.")
    return of_X, *meta


# ---------------------------------------------------------------------------- rows
def validate_rows(estimator: BaseEstimator, X: Any, *, reset: bool, name: str = "X") -> Rows:
    """Validate X: an array of at least 2 dimensions, a sparse matrix, several parts, or a torch Dataset."""
    if isinstance(X, Dataset):
        _check_dataset(X, name)
        return as_rows(X)
    if isinstance(X, Mapping) and not issparse(X):  # a DOK matrix is a Mapping too
        return rows_of_parts(X, name)
    refuse_masked(X, name)
    if not issparse(X) and getattr(X, "ndim", isinstance(X, list)) == 1 and isinstance(next(iter(X), None), str):
        raise ValueError(f"{name} contains texts. Convert them to numbers, e.g. make_pipeline(TfidfVectorizer(), clf).")
    if _are_samples(X):
        if has_parts(separated(X[0])[0]):
            _check_dataset(X, name)
            return as_rows(X)
        X = [sample[0] for sample in X]
    elif issparse(X) and X.ndim == 2:
        X = canonical(X)
    try:
        values = validate_data(estimator, X, reset=reset, dtype="numeric", allow_nd=True, accept_sparse="csr")
    except (ValueError, np.exceptions.DTypePromotionError) as error:
        text = re.sub(r"^(could not convert|The DType).*", f"{name} is not numeric. {_ENCODE_X}", str(error))
        text = re.sub(r"(?s):?\n(array=)?\[.*\]\.?", ".", text)  # without the values of a large array
        raise ValueError(re.sub(r"\bX\b", name, text)) from error
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {values.dtype}. {_ENCODE_X}")
    if values.dtype.itemsize > 8:  # torch has no such type
        with np.errstate(over="ignore"):
            values = values.astype(np.float64)
        assert_all_finite(values, input_name=name)
    return as_rows(values.astype(values.dtype.newbyteorder("="), copy=False))


def _are_samples(X: Any) -> bool:
    """Whether X is a list of samples of a Dataset, as made by scikit-learn's cross-validation.

    Rows of numbers, or of arrays of one shape, are not, except tuples as in a TensorDataset.
    """
    sample = X[0] if isinstance(X, list) and X else None
    if isinstance(sample, Mapping):
        return True
    if not isinstance(sample, tuple | list) or not sample:
        return False
    first, *others = sample
    if has_parts(first):  # an input and a label, else nested rows of numbers
        return bool(others) and not any(map(has_parts, others))
    if not isinstance(first, np.ndarray | Tensor):
        return False
    all_tensors = all(isinstance(entry, Tensor) for entry in sample) and (len(others) == 1 or first.ndim > 0)
    of_tensors = isinstance(sample, tuple) and (not others or all_tensors)
    differ = any(getattr(other, "shape", ()) != first.shape for other in others)
    return (of_tensors or differ) and all(isinstance(other, tuple | list) and other for other in X)


def _check_dataset(X: Any, name: str) -> None:
    """Raise unless a few samples of a Dataset have the same shape or parts."""
    if isinstance(X, IterableDataset):
        raise ValueError(f"{name} is an IterableDataset. Pass a map-style Dataset, with __len__ and __getitem__.")
    if not hasattr(X, "__len__"):
        raise ValueError(f"{name} is a Dataset without __len__. Define it to return the number of samples.")
    if not len(X):
        raise ValueError(f"{name} is a Dataset with 0 samples. Pass at least one.")
    rows, shapes = as_rows(X), set()
    for i in np.linspace(0, len(X) - 1, min(len(X), _LOOKED_AT), dtype=int).tolist():
        shapes.add(check_sample(rows[i][0], f"sample {i} of {name}"))
    if len(shapes) > 1:
        raise ValueError(f"samples of {name} have different shapes: {', '.join(sorted(shapes))}. Pad them.")
    tensors = X.tensors if isinstance(X, TensorDataset) else ()
    if not all(bool(part.isfinite().all()) for part in tensors if part.ndim > 1 or part is tensors[0]):
        raise ValueError(f"{name} contains NaN or infinity. Drop these samples or impute the values.")


# ---------------------------------------------------------------------------- labels
class EncodedLabels(NamedTuple):
    """Labels of a fit as class indices."""

    classes: NDArray
    is_noisy: NDArray[np.bool_]  # rows of X that are not verified and have a weight above 0
    is_clean: NDArray[np.bool_]  # verified rows of X
    noisy: NDArray[np.intp]
    clean: NDArray[np.intp] | None  # true labels of the clean samples
    noisy_of_clean: NDArray[np.intp] | None  # their noisy labels, -1 if unknown; None if all are unknown
    drawn: NDArray[np.float64] | None  # relative probabilities of the draw of verified samples; None if at random
    weights: NDArray[np.float64] | None  # of the noisy samples, with mean 1
    by_source: SourceLabels | None  # of all rows of X, with several sources


def read_labels(
    n: int,
    of_X: GivenLabels,
    y_meta: ArrayLike | None = None,
    y_meta_noisy: ArrayLike | None = None,
    *,
    n_meta: int | None = None,
    sample_weight: ArrayLike | None = None,
) -> EncodedLabels:
    """Validate the labels of `fit`, for n samples of X and `n_meta` separate clean samples."""
    y, y_verified, by_source, probability = of_X
    has_given, given, is_clean, verified = labels_of_samples(
        _column(y, n, "y"), None if y_verified is None else _column(y_verified, n, "y_verified"), n
    )
    if y_verified is not None:
        check_unverified(has_given, is_clean, verified)
        if not len(verified):
            raise ValueError(
                f"no sample is verified: y_verified, or the column {VERIFIED!r}, has no label. Enter true labels; in "
                "cross-validation, shuffle the folds or, for scores and searches, use TrustedKFold."
            )
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
        warn_of_true_labels(clean, noisy_of_clean, stacklevel=5)
    by_source = None if by_source is None else by_source.of_classes(classes)
    drawn = relative_probabilities(probability, is_clean)
    return EncodedLabels(classes, is_noisy, is_clean, codes["y"], clean, noisy_of_clean, drawn, weights, by_source)


def validate_labels(y: ArrayLike | None, n: int, name: str) -> NDArray:
    """Validate labels and return a 1-d array with one label per sample."""
    labels = complete_labels(_column(y, n, name), n, name)
    _check_kind(labels, name)
    return labels


def _column(y: Any, n: int, name: str) -> Any:
    """Validate the shape of labels with missing values and return a column of length n."""
    if y is None:  # ends with the words that scikit-learn's tests match
        raise ValueError(f"{name} is None. Pass labels (requires y to be passed, but the target y is None).")
    if hasattr(y, "toarray"):
        raise ValueError(f"{name} is sparse. Pass a 1-d array: {name}.toarray().ravel().")
    given = as_array(y, name)
    if given.ndim > 1 and given.shape[1:] != (1,):
        advice = (
            f"Convert one-hot labels or probabilities by {name}.argmax(axis=1), and pass labels of several sources as "
            "a data frame with a column for each (docs/several_sources.rst)"
        )
        if given.shape[1:] == (2,) and not (given.dtype.kind == "f" and np.isfinite(given).all()):
            advice = (
                f"Pass a data frame with a column {VERIFIED!r}, or with one for each source; if cross_val_predict has "
                "converted it to this array, use `oof_proba_` of EMTransitionClassifier instead"
            )
        raise ValueError(f"{name} should be a 1d array of labels, got an array of shape {given.shape}. {advice}.")
    column = column_or_1d(given, warn=True)
    if len(column) != n:
        cut = "Pass one each" + ("." if name == "y" else "; cross-validation only splits arguments as long as X.")
        raise ValueError(f"{name} has {len(column)} labels for {n} samples (inconsistent numbers of samples). {cut}")
    return y if isinstance(y, list | tuple) and given.ndim == 1 else column


def _check_kind(labels: NDArray, name: str) -> None:
    """Raise for infinite labels, labels of mixed types, and labels that are not classes."""
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError(f"{name} contains infinity, which is not a valid label. Drop these samples.")
    if labels.dtype.kind == "O" and len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError(f"{name} mixes labels of several kinds, text and others. Use one type for all labels.")
    try:
        with warnings.catch_warnings():
            if name != "y":  # few clean samples with many classes are no regression target
                warnings.filterwarnings("ignore", "The number of unique classes is greater")
            check_classification_targets(labels)
    except TypeError as error:  # labels that cannot be compared, or bytes
        raise ValueError(f"{name} has labels of type {type(labels[0]).__name__} ({error}). Use str.") from error


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


def _weighted_rows(sample_weight: ArrayLike, is_noisy: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray]:
    """Select noisy samples with a weight above 0; return the mask and their weights, with mean 1."""
    column = is_noisy[:, None]  # has the required length
    weights = _check_sample_weight(sample_weight, column, dtype=np.float64, ensure_non_negative=True)
    if not weights[is_noisy].any():
        raise ValueError("sample_weight is zero for all noisy samples. At least one weight must be above 0.")
    is_noisy = is_noisy & (weights > 0)
    weights = weights[is_noisy] / weights[is_noisy].max()  # equal weights become exactly 1
    return is_noisy, weights / weights.mean()


# ---------------------------------------------------------------------------- classes
def _like(y: NDArray, model: NDArray, name: str) -> NDArray:
    """Convert labels to the type of `model`. Raise if they are of another kind."""
    if kind_of(y) != kind_of(model):
        raise ValueError(
            f"y has {kind_of(model)} labels such as {model.item(0)!r}, but {name} has {kind_of(y)} labels such as "
            f"{y.item(0)!r}. Use the same classes in both, and true labels instead of a mask; {_ENCODE_ALL}."
        )
    if y.dtype.kind == "O" and model.dtype.kind == "U":
        return y.astype(str)
    # pandas stores integers as floats in columns with missing values
    is_exact = y.dtype.kind == "f" and model.dtype.kind in "iu" and np.abs(y).max(initial=0) < LARGEST_FLOAT
    return y.astype(model.dtype) if is_exact and np.array_equal(y, y.astype(model.dtype)) else y


def _check_classes(labels: dict[str, NDArray], classes: NDArray) -> None:
    """Raise for invalid classes, and warn of suspicious classes."""
    found = np.unique(np.append(labels["y"], labels.get(_IN_Y, labels["y"])))
    if len(found) < 2:
        raise ValueError(f"the noisy labels need at least 2 classes, got one class: y only has {found}.")
    if classes.dtype.kind == "f" and np.abs(classes).max() >= LARGEST_FLOAT:
        raise ValueError(f"floats cannot represent all labels up to {np.abs(classes).max():.6g}. Use str.")
    name = "y_verified" if "y_verified" in labels else "y_meta"
    noisy = set(labels["y"].tolist()) | set(labels.get(_IN_Y, labels["y"]).tolist())
    clean = set(labels.get(name, labels["y"]).tolist())
    if absent := sorted(set(labels.get("y_meta_noisy", labels["y"]).tolist()) - noisy - clean):
        raise ValueError(
            f"y_meta_noisy has labels {shortened(absent)} that are in neither y nor y_meta; y has "
            f"{shortened(sorted(noisy))}. Correct them; {_ENCODE_ALL}."
        )
    if absent := sorted(clean - noisy):
        warnings.warn(
            f"{name} has the classes {shortened(absent)}, which no noisy label has; they are treated as separate "
            f"classes. If they are spelt differently in y, correct them; {_ENCODE_ALL}.",
            stacklevel=5,
        )
    if absent := sorted(set(labels.get(_OF_SOURCES, labels["y"]).tolist()) - noisy - clean):
        warnings.warn(
            f"some sources give the labels {shortened(absent)}, which are neither verified nor the most frequent label "
            "of any sample. They are treated as separate classes; correct them or set them to missing.",
            stacklevel=5,
        )
    _check_unlabelled(labels, classes)


def _check_unlabelled(labels: dict[str, NDArray], classes: NDArray) -> None:
    """Raise for -1 in addition to 0, 1, 2, ..., which marks missing labels; warn for -1, 0, 1, which may be classes."""
    if kind_of(classes) != "number" or len(classes) < 3 or not np.array_equal(classes, np.arange(-1, len(classes) - 1)):
        return
    name, n = next((name, int((y == -1).sum())) for name, y in labels.items() if (y == -1).any())
    found = f"{name} has the label -1 in {n} of {len(labels[name])} samples, and 0 to {len(classes) - 2}"
    leave_out = f"drop unlabelled samples ({name} == -1)"
    if name == _IN_Y:
        leave_out = "use NaN for verified samples without a given label"
    if len(classes) > 3:
        raise ValueError(f"{found}. If -1 means unlabelled, {leave_out}; if it is a class, rename it.")
    warnings.warn(f"{found}; it is taken as a class. If -1 means unlabelled, {leave_out}.", stacklevel=6)


# ---------------------------------------------------------------------------- labels of a fitted classifier
def label_codes(y: ArrayLike | None, classes: NDArray, n: int, name: str = "y_noisy") -> NDArray[np.intp]:
    """Encode the labels of n samples as indices in `classes`. Raise for unknown labels."""
    return encode(validate_labels(y, n, name), classes, name)


def rows_to_score(
    classifier: Any, X: Any, y: Any, y_verified: Any = None, sample_weight: Any = None
) -> tuple[Any, NDArray, Any]:
    """Select samples, true labels and weights for a score: verified samples if these are marked, else all samples.

    Verified samples that were stratified by their given label, or drawn with known probabilities, get weights with
    which they represent all samples.
    """
    if y is None and y_verified is None:
        if not isinstance(X, Dataset) and not _are_samples(X):
            raise ValueError("y is None. Pass the true labels.")
        y = _labels_of_pairs(X, "X")
    y, y_verified, _, probability = given_and_verified(y, y_verified)
    if y_verified is None:
        return X, of_one_type(as_array(y, "y")), sample_weight
    if isinstance(X, Mapping) and not issparse(X):
        X = SliceDict(**rows_of_parts(X, "X").source)  # supports indexing
    n = _num_samples(X)
    has_given, given = known_labels(y, n, "y", minus_one_is_missing=False)
    minus_one_is_missing = not has_minus_one(given, getattr(classifier, "classes_", None))
    is_verified, labels = known_labels(y_verified, n, "y_verified", minus_one_is_missing)
    labels = _like(labels, given, "y_verified") if len(given) and len(labels) else labels
    if not len(labels):
        raise ValueError("no sample is verified, but scores need verified samples. Use cv=TrustedKFold(...).")
    rows = np.flatnonzero(is_verified)
    weights = None if sample_weight is None else _safe_indexing(sample_weight, rows)
    if (drawn := relative_probabilities(probability, is_verified)) is not None:
        of_draw = inverse_probability_weights(drawn)
    else:
        of_draw = _weights_to_score(classifier, has_given, given, is_verified, labels)
    if np.ptp(of_draw):
        weights = of_draw if weights is None else weights * of_draw
    if is_verified.all():
        return X, labels, weights
    return Subset(X, rows.tolist()) if isinstance(X, Dataset) else _safe_indexing(X, rows), labels, weights


def _weights_to_score(
    classifier: Any, has_given: NDArray, given: NDArray, is_verified: NDArray, labels: NDArray
) -> NDArray[np.float64]:
    """Weights of verified samples by given label; if all are verified, as in a fold, by the labels in `fit`."""
    names, codes = np.unique(given, return_inverse=True)
    of_rows, of_all = np.full(len(has_given), -1), np.bincount(codes, minlength=1)
    of_rows[has_given] = codes
    by_label = None
    if is_verified.all():
        model: Any = getattr(classifier, "noise_model_", None)
        if not hasattr(model, "held_out_"):
            return np.ones(len(labels))
        by_label = "drawn_by_label" in model.diagnostics_  # a fold has too few samples for the test
        of_fit = dict(zip(model.labels_.tolist(), model.held_out_.given_labels, strict=True))
        of_all = np.array([of_fit.get(name, 0) for name in names.tolist()])
    return weights_by_given_label(of_rows[is_verified], of_all, np.unique(labels, return_counts=True)[1], by_label)
