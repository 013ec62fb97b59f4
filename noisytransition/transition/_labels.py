"""Encode labels of any kind as class indices, and return results as pandas objects."""

import warnings
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import as_array, check_label_indices, is_number

# Maximum number of labels listed in an error
_MOST_NAMED = 10
# smallest number of clean samples for a warning that all their noisy labels are true: a choice, not measured
_MANY = 20
# float64 does not represent all integers from here on
LARGEST_FLOAT = 2**53
# Columns of a data frame of labels: true labels of verified samples, and probabilities of their draw
VERIFIED, PROBABILITY = "verified", "verified_probability"
# a column with more own labels than this and than half of its samples is an index
_FEW_LABELS = 20


def class_indices(
    y: ArrayLike, n_classes: int | None, n_rows: int | None, name: str, classes: ArrayLike | None = None
) -> NDArray[np.intp]:
    """Encode labels as class indices; integers are kept unless `classes` are given."""
    named = class_names(y, n_classes, classes, name)
    indices = y if named is None else encode(as_array(y, name), named, name)
    return check_label_indices(indices, n_classes, n_rows, name)


class SourceLabels(NamedTuple):
    """Labels of the same samples by several sources, such as people, rules or models.

    Attributes
    ----------
    names : ndarray of shape (n_sources,)
    labels : ndarray of shape (n_labels,)
        Distinct labels.
    codes : ndarray of int, shape (n, n_sources)
        Positions in `labels`; -1 if missing.
    """

    names: NDArray
    labels: NDArray
    codes: NDArray[np.integer]

    def combined(self) -> NDArray[np.intp]:
        """Code of each sample's most frequent label; ties go to the label most frequent overall; -1 without a label."""
        (n, _), n_labels = self.codes.shape, len(self.labels)
        rows, columns = np.nonzero(self.codes >= 0)
        cells = rows * n_labels + self.codes[rows, columns]
        votes = np.bincount(cells, minlength=n * n_labels).reshape(n, n_labels)
        if not votes.size:
            return np.full(n, -1)
        of_all = votes.sum(axis=0)
        return np.where(votes.any(axis=1), (votes + of_all / (of_all.sum() + 1)).argmax(axis=1), -1)

    def of_classes(self, labels: NDArray) -> "SourceLabels":
        """Encode as positions in `labels`, which must contain all labels."""
        place = np.append(encode(self.labels, labels, "y"), -1) if len(self.labels) else np.array([-1])
        return SourceLabels(self.names, labels, place[self.codes].astype(np.int32))

    def check(self, others: NDArray, name: str = "y") -> None:
        """Raise for an index or a feature: most of its labels occur in no other column and no verified sample."""
        used = [np.unique(of_source[of_source >= 0]) for of_source in self.codes.T]
        n_columns = np.bincount(np.concatenate(used), minlength=len(self.labels))
        shared = set(self.labels[n_columns > 1].tolist()) | set(others.tolist())
        n_labels = (self.codes >= 0).sum(axis=0)
        for source, codes, n in zip(self.names.tolist(), used, n_labels, strict=True):
            own = [label for label in self.labels[codes].tolist() if label not in shared]
            if len(used) > 1 and len(codes) > 1 and (len(own) == len(codes) or len(own) > max(n / 2, _FEW_LABELS)):
                raise ValueError(
                    f"column {source!r} of {name} has labels such as {own[0]!r} that no other column and no "
                    "verified sample has. Drop columns that are no labels."
                )

    def at(self, rows: NDArray[np.integer]) -> NDArray[np.integer]:
        """Codes of samples at these positions; -1 where the position is -1."""
        return np.where((rows >= 0)[:, None], self.codes[rows], -1)


class GivenLabels(NamedTuple):
    """Columns of labels: given, verified, by source if there are several, probabilities of the draw."""

    given: Any
    verified: Any
    by_source: SourceLabels | None
    probability: Any


def given_and_verified(y: Any, y_verified: Any = None, name: str = "y", sources: Any = None) -> GivenLabels:
    """Separate the columns of a data frame of labels.

    The column "verified" has the true labels, "verified_probability" the probabilities of their draw, and each other
    column the labels of a source. Of several sources, the given label of a sample is the most frequent one. In long
    form, `sources` has the source of each sample; a single source is the same as none.
    """
    names = list(getattr(y, "column_names", getattr(y, "columns", ())))  # "columns" of Arrow are the data
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise ValueError(f"{name} has several columns named {twice[0]!r}. Pass distinct names.")
    of_sources, given = [other for other in names if other not in (VERIFIED, PROBABILITY)], y
    probability = y[PROBABILITY] if PROBABILITY in names else None
    if VERIFIED in names:
        if y_verified is not None:
            raise ValueError(f"verified labels were given twice, as y_verified and as a column of {name}. Pass one.")
        if not of_sources:
            raise ValueError(f"{name} has only the column {VERIFIED!r}. Pass the noisy labels in other columns.")
        y_verified = y[VERIFIED]
    if len(of_sources) == 1:
        given = y[of_sources[0]]
    if len(of_sources) < 2:
        by_source = None if sources is None else _long_form(given, sources, name)
        return GivenLabels(given, y_verified, by_source, probability)
    if sources is not None:
        raise ValueError(f"{name} has one column for each of {len(of_sources)} sources. Omit sources=.")
    if like := [other for other in of_sources if str(other).lower() in (VERIFIED, PROBABILITY, "y_verified", "true")]:
        raise ValueError(
            f"{name} has a column {like[0]!r}, which would be a source of noisy labels. Rename true labels to "
            f"{VERIFIED!r}, probabilities of their draw to {PROBABILITY!r}, and a source to another name."
        )
    table = _wide_form(y, of_sources, name)
    codes = table.combined()
    labels = np.array([*table.labels.tolist(), None], dtype=object) if (codes < 0).any() else table.labels
    return GivenLabels(like_series(labels[codes], y[of_sources[0]], None), y_verified, table, probability)


def _wide_form(y: Any, names: list[Any], name: str) -> SourceLabels:
    """Labels of a data frame with one column per source."""
    n = len(as_array(y[names[0]], name))
    columns = {c: known_labels(y[c], n, f"column {c!r} of {name}", minus_one_is_missing=False) for c in names}
    labels, codes = _codes_of_columns(list(columns.values()), n, name)
    if labels.dtype.kind == "f" and (labels != np.round(labels)).any():
        raise ValueError(
            f"{name} has columns of numbers such as {labels[labels != np.round(labels)][0]:g}, which are no labels. "
            f"Convert probabilities or one-hot labels by {name}.idxmax(axis=1)."
        )
    # -1 is missing, as in Snorkel; -1 and 1 without other labels are two classes
    if labels.dtype.kind in "if" and len(labels) and labels[0] == -1 and labels.tolist() not in ([-1], [-1, 1]):
        if labels.tolist() == [-1, 0, 1]:
            advice = "If it is a class, rename the classes"
            warnings.warn(f"{name} has the labels -1, 0 and 1; -1 is treated as missing. {advice}.", stacklevel=5)
        labels, codes = labels[1:], np.maximum(codes - 1, -1)
    return SourceLabels(_listed(names), labels, codes)


def _codes_of_columns(
    columns: list[tuple[NDArray[np.bool_], NDArray]], n: int, name: str
) -> tuple[NDArray, NDArray[np.int32]]:
    """Distinct labels of all columns, each a mask of labelled samples and their labels; and their codes."""
    found = [labels for _, labels in columns if len(labels)]
    if len(kinds := {kind_of(labels) for labels in found}) > 1:
        raise ValueError(f"{name} has columns with labels of several kinds ({sorted(kinds)}). Use one kind.")
    labels = sorted_classes(np.concatenate(found), None, name) if found else np.zeros(0, dtype=np.intp)
    codes = np.full((n, len(columns)), -1, dtype=np.int32)
    for s, (known, given) in enumerate(columns):
        codes[known, s] = np.searchsorted(labels, given)
    return labels, codes


def _long_form(y: Any, sources: Any, name: str) -> SourceLabels | None:
    """Labels of samples that each have the label of one source; None if all have the same source."""
    given, n = as_array(sources, "sources"), len(as_array(y, name))
    if given.ndim != 1 or len(given) != n:
        raise ValueError(f"sources has shape {given.shape} for {n} labels; pass one source per label.")
    has_label, labels = known_labels(y, n, name, minus_one_is_missing=False)
    has_source, named = known_labels(sources, n, "sources", minus_one_is_missing=False)
    if without := int((has_label & ~has_source).sum()):
        raise ValueError(f"sources is missing for {without} samples with a label. Pass a name, such as 'unknown'.")
    names = sorted_classes(named, None, "sources")
    of_all, codes = _codes_of_columns([(has_label, labels)], n, name)
    by_source = np.full((n, len(names)), -1, dtype=np.int32)
    at = np.flatnonzero(has_source)
    by_source[at, np.searchsorted(names, named)] = codes[at, 0]
    return SourceLabels(names, of_all, by_source) if len(names) > 1 else None


def labels_of_samples(
    y: Any, y_verified: Any, n: int, name: str = "y", classes: ArrayLike | None = None
) -> tuple[NDArray[np.bool_], NDArray, NDArray[np.bool_], NDArray]:
    """Masks of n samples with a given label and with a verified label, and these labels.

    Raises a ValueError if a sample has neither.
    """
    has_given, given = known_labels(y, n, name, minus_one_is_missing=False)
    is_verified, verified = known_labels(y_verified, n, "y_verified", not has_minus_one(given, classes))
    if neither := n - int((has_given | is_verified).sum()):
        raise ValueError(
            f"{name} has missing labels for {neither} of {n} samples, and these are not verified. Drop these samples."
        )
    return has_given, given, is_verified, verified


def check_unverified(has_given: NDArray, is_verified: NDArray, verified: NDArray, name: str = "y") -> None:
    """Raise unless some samples with a given label are not verified."""
    if not (has_given & ~is_verified).any():
        why = "all samples are verified, so there is no noisy sample to learn from"
        if has_minus_one(verified):
            why = f"all samples are verified, since -1 is a label in {name} and therefore in y_verified"
        raise ValueError(
            f"{why}. Pass the true label of each verified sample (not a mask), and NaN for missing labels; if all are "
            "verified, T is count_transition_matrix."
        )


def known_labels(y: Any, n: int, name: str, minus_one_is_missing: bool = True) -> tuple[NDArray[np.bool_], NDArray]:
    """Mask of n samples with a label, and these labels. None, NaN, NA, NaT and optionally -1 are missing.

    If `y` is None, all are missing.
    """
    if y is None:
        return np.zeros(n, dtype=bool), np.zeros(0, dtype=np.intp)
    given = as_array(y, name)
    if given.shape != (n,):
        advice = f", of probabilities {name}.argmax(axis=1)" if given.ndim == 2 else ""
        raise ValueError(f"{name} has shape {given.shape} for {n} samples; pass one label per sample{advice}.")
    is_list = isinstance(y, list | tuple)  # numpy would convert mixed values
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
    """Array of a list; of dtype object if text and other values are mixed, which numpy would convert to text."""
    return np.array(labels, dtype=object if len({isinstance(label, str) for label in labels}) > 1 else None)


def has_minus_one(*labels: Any) -> bool:
    """Whether -1 is a label, so that it cannot mark missing labels."""
    arrays = [np.asarray(y) for y in labels if y is not None]
    return any(y.dtype.kind in "if" and (y == -1).any() for y in arrays)


def complete_labels(y: Any, n: int, name: str) -> NDArray:
    """Labels of all n samples; raise if some are missing."""
    known, labels = known_labels(y, n, name, minus_one_is_missing=False)
    if not known.all():
        raise ValueError(f"{name} has missing labels for {(~known).sum()} of {n} samples. Drop these samples.")
    return labels


def is_missing(label: object) -> bool:
    """Whether a label is None, NaN, NaT or pandas' NA."""
    return label is None or (not isinstance(label, str) and str(label == label) in ("False", "<NA>"))


def encode_all(
    labels: dict[str, NDArray], n_classes: int, classes: ArrayLike | None
) -> tuple[NDArray, dict[str, NDArray[np.intp]]]:
    """Classes, and labels of several groups of samples as class indices."""
    given = {name: y for name, y in labels.items() if len(y)}
    if len({kind_of(y) for y in given.values()}) > 1:
        kinds = ", ".join(f"{name}: {kind_of(y)}" for name, y in given.items())
        raise ValueError(f"labels are of several kinds ({kinds}). Use one kind.")
    if classes is None and given:
        all_labels = np.concatenate(list(given.values()))
        are_indices = all_labels.dtype.kind in "iu" and all_labels.min() >= 0 and all_labels.max() < n_classes
        classes = np.arange(n_classes) if are_indices else sorted_classes(all_labels, n_classes, " and ".join(given))
    classes = check_classes(np.arange(n_classes) if classes is None else classes, n_classes)
    return classes, {name: encode(y, classes, name) if len(y) else y.astype(np.intp) for name, y in labels.items()}


def classes_of_columns(table: Any, labels: list[NDArray]) -> NDArray | None:
    """Column names of a data frame, if they include all labels."""
    if not hasattr(table, "columns"):
        return None
    columns = np.asarray(table.columns)
    return columns if set().union(*(y.tolist() for y in labels)) <= set(columns.tolist()) else None


def in_class_order(table: Any, classes: Any, *, rows: bool = True) -> Any:
    """Reorder a data frame (columns, and rows if `rows`) or Series to the order of the classes that name it.

    Return an array, unless `table` is no pandas object.
    """
    if classes is None or not hasattr(table, "reindex"):
        return table
    order, columns = list(classes), [table.columns] if hasattr(table, "columns") else []
    named = [*columns, table.index] if rows or not columns else columns
    if len(set(order)) == len(order) and all(len(names) == len(order) and set(names) == set(order) for names in named):
        table = table.reindex(columns=order, index=order if rows else None) if columns else table.reindex(order)
    return table.to_numpy()


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


def shortened(labels: Any) -> str:
    """List at most 10 labels, for messages."""
    names = labels.tolist() if hasattr(labels, "tolist") else labels
    return f"{names[:_MOST_NAMED]}{' ...' if len(names) > _MOST_NAMED else ''}"


def is_text(labels: NDArray) -> bool:
    """Whether labels are text."""
    return labels.dtype.kind == "U" or (labels.dtype.kind == "O" and any(isinstance(v, str) for v in labels.flat))


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


def check_classes(classes: ArrayLike, n_classes: int | None) -> NDArray:
    """Validate distinct classes, one per row of T."""
    classes = as_array(classes, "classes")
    c = classes.size if n_classes is None else n_classes
    if classes.shape != (c,) or len(np.unique(classes)) != c:
        raise ValueError(f"classes={classes.tolist()!r}; pass {c} different labels, one per row of T.")
    return classes


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


# ---------------------------------------------------------------------------- warnings
def warn_of_order(*data: Any) -> None:
    """Warn if the pandas indices of X, labels or weights differ in their order: samples are matched by position."""
    first, *others = [of.index for of in data if hasattr(of, "iloc")] or [None]
    if any(not i.equals(first) and len(i) == len(first) and set(i) == set(first) for i in others):
        warnings.warn(
            "The indices of X, labels or weights differ in their order, but samples are matched by position. Pass "
            "y.reindex(X.index), or y.to_numpy() if the order is correct.",
            stacklevel=4,
        )


def warn_of_true_labels(true: NDArray, noisy: NDArray, stacklevel: int) -> None:
    """Warn if all known noisy labels (-1: unknown) of clean samples are true: T would underestimate the noise."""
    known = noisy >= 0
    if known.sum() >= _MANY and np.array_equal(true[known], noisy[known]):
        warnings.warn(
            f"The noisy labels of all {known.sum()} clean samples equal the true labels. If they were corrected there, "
            "set them to missing.",
            stacklevel=stacklevel,
        )


# ---------------------------------------------------------------------------- results
def like_series(values: NDArray, y: Any, name: object) -> Any:
    """Return values as a Series with the index of the labels, if these are a Series."""
    return type(y)(values, index=y.index, name=name) if hasattr(y, "iloc") and y.ndim == 1 else values


def names_of_rows(positions: NDArray[np.intp], *tables: Any) -> Any:
    """Index entries of the first pandas object at these positions; else the positions."""
    return next((table.index[positions] for table in tables if hasattr(table, "iloc")), positions)
