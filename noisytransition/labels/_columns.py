"""Columns of labels, some of which are missing, and tables with the labels of several sources."""

from __future__ import annotations
import warnings
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._arrays import ENCODE_ALL, as_array, encode, index_of, kind_of, names_of_times, of_one_type, sorted_classes

# Columns of a data frame of labels: true labels of verified samples, probabilities of their draw, groups of samples
VERIFIED, PROBABILITY, GROUP = "verified", "verified_probability", "group"
# names that look like these columns, and are no sources
_LIKE_VERIFIED = {VERIFIED, PROBABILITY, "y_verified", "y_true", "true", "true_label", "checked", "correct", "gold"}
_LIKE_VERIFIED |= {"correct_label", "ground_truth", "reviewed"}
# float64 does not represent all integers from here on
_LARGEST_FLOAT = 2**53
# a column with more own labels than this and than half of its samples is an index
_FEW_LABELS = 20


# ---------------------------------------------------------------------------- one column
class Column(NamedTuple):
    """Labels of n samples, some of which are missing: a mask of shape (n,), and the labels that are present."""

    has_label: NDArray[np.bool_]
    labels: NDArray

    def only(self, kept: NDArray[np.bool_]) -> Column:
        """Labels of these samples; those of others are missing."""
        has_label = self.has_label & kept
        return Column(has_label, self.labels[has_label[self.has_label]])

    def codes(self, classes: NDArray, name: str) -> NDArray[np.intp]:
        """Positions in `classes`, of shape (n,); -1 if missing."""
        codes = np.full(len(self.has_label), -1)
        if len(self.labels):
            codes[self.has_label] = encode(self.labels, classes, name)
        return codes


def read_column(y: Any, n: int, name: str, *, minus_one_is_missing: bool = False) -> Column:
    """Read the labels of n samples. None, NaN, NaT, NA, blank text and optionally -1 are missing; all if y is None."""
    if y is None:
        return Column(np.zeros(n, dtype=bool), np.zeros(0, dtype=np.intp))
    column = _one_dimensional(y, n, name)
    is_list = isinstance(column, list | tuple)  # numpy would convert mixed values
    if is_list or column.dtype.kind == "O":
        has_label = np.array([not _is_missing(label) for label in column], dtype=bool)
    elif column.dtype.kind == "U":
        has_label = np.strings.str_len(np.strings.strip(column)) > 0
    else:
        has_label = column == column  # NaN does not equal itself
    labels = _listed([column[i] for i in np.flatnonzero(has_label)]) if is_list else column[has_label]
    labels = of_one_type(labels)
    if minus_one_is_missing and labels.dtype.kind in "iuf":
        is_label = labels != -1
        has_label[has_label] = is_label
        labels = labels[is_label]
    if labels.dtype.kind == "f":
        if np.abs(labels).max(initial=0) >= _LARGEST_FLOAT:
            raise ValueError(f"{name} contains infinity, or floats that cannot represent all integers. Use int or str.")
        if not has_label.all() and (labels == np.round(labels)).all():
            labels = labels.astype(np.intp)  # a column of integers with gaps
    return Column(has_label, labels)


def complete_column(y: Any, n: int, name: str) -> Column:
    """Read the labels of n samples; raise if some are missing."""
    column = read_column(y, n, name)
    if n_missing := int((~column.has_label).sum()):
        raise ValueError(f"{name} has missing labels for {n_missing} of {n} samples. Drop these samples.")
    return column


def _one_dimensional(y: Any, n: int, name: str) -> Any:
    """Validate the shape of n labels, and return a list or a 1-d array."""
    if hasattr(y, "toarray"):
        raise ValueError(f"{name} is sparse. Pass a 1-d array: {name}.toarray().ravel().")
    labels = as_array(y, name)
    if labels.ndim > 1 and labels.shape[1:] != (1,):
        advice = f"Pass a data frame with a column {VERIFIED!r} or one for each source, or {name}.argmax(axis=1)"
        hint = "cross_val_predict converts data frames: use `oof_proba_` of EMTransitionClassifier"
        raise ValueError(f"{name} should be a 1d array of labels, got shape {labels.shape}. {advice}. {hint}.")
    if labels.ndim != 1:
        from sklearn.utils import column_or_1d

        labels = column_or_1d(labels, warn=True)
        y = labels
    if len(labels) != n:
        fact = f"{name} has {len(labels)} labels for {n} samples (inconsistent numbers of samples)"
        raise ValueError(f"{fact}. Pass one each; cross-validation only splits arguments as long as X.")
    return y if isinstance(y, list | tuple) else labels


def _is_missing(label: object) -> bool:
    """Whether a label is None, NaN, NaT, pandas' NA or blank text."""
    if isinstance(label, str):
        return not label.strip()
    return label is None or str(label == label) in ("False", "<NA>")


def _listed(labels: list[Any]) -> NDArray:
    """Array of a list; of dtype object for tuples, and if text and other values are mixed, which numpy converts."""
    if any(isinstance(label, tuple) for label in labels) or len({isinstance(label, str) for label in labels}) > 1:
        return np.fromiter(labels, dtype=object, count=len(labels))
    return np.array(labels)


# ---------------------------------------------------------------------------- several columns
def encoded(columns: dict[str, Column], classes: NDArray | None = None) -> tuple[NDArray, dict[str, NDArray[np.intp]]]:
    """Encode columns by their names as positions in `classes`, by default the sorted labels of all; return both."""
    columns = _of_one_kind(columns)
    if classes is None:
        labels = [column.labels for column in columns.values() if len(column.labels)] or [np.zeros(0, dtype=np.intp)]
        classes = sorted_classes(np.concatenate(labels), None, " or ".join(columns))
    return classes, {name: column.codes(classes, name) for name, column in columns.items()}


def read_names(values: Any, n: int, name: str) -> tuple[NDArray, NDArray[np.intp]]:
    """Read names such as those of groups of n samples: sorted names, and the position of each sample's; -1 if missing.

    Dates, periods and tuples become text.
    """
    column = read_column(values, n, name)
    names, codes = encoded({name: column._replace(labels=names_of_times(column.labels))})
    return names, codes[name]


def _of_one_kind(columns: dict[str, Column]) -> dict[str, Column]:
    """Convert all labels to the type of the first column with labels. Raise for labels of other or several kinds."""
    used = {name: column.labels for name, column in columns.items() if len(column.labels)}
    converted = dict(columns)
    for name, y in used.items():
        if y.dtype.kind in "OSV" and (strange := [label for label in y if not isinstance(label, str)]):
            kind = type(strange[0]).__name__
            raise ValueError(f"{name} has labels of type {kind}, or of several kinds. Use one, such as str.")
        first, model = next(iter(used.items()))
        if kind_of(y) != kind_of(model):
            fact = f"{first} has {kind_of(model)} labels such as {model.item(0)!r}, {name} has {kind_of(y)} labels"
            advice = f"Use the same classes in all columns, and true labels instead of a mask; {ENCODE_ALL}"
            raise ValueError(f"labels of several kinds: {fact} such as {y.item(0)!r}. {advice}.")
        if y.dtype.kind == "O" and model.dtype.kind == "U":
            y = y.astype(str)
        elif model.dtype.kind in "iu" and np.result_type(y, model).kind == "f":
            # pandas stores integers as floats in columns with missing values
            exact = y.astype(model.dtype)
            y = exact if np.array_equal(y, exact) else y
        converted[name] = columns[name]._replace(labels=y)
    return converted


# ---------------------------------------------------------------------------- several sources
class SourceLabels(NamedTuple):
    """Labels of the same samples by several sources, such as people, rules or models."""

    names: NDArray  # of shape (n_sources,)
    labels: NDArray  # distinct ones
    codes: NDArray[np.integer]  # positions in `labels`, of shape (n, n_sources); -1 if missing
    are_periods: bool = False  # in the order of time

    def combined(self) -> NDArray[np.intp]:
        """Code of each sample's most frequent label; ties go to the label most frequent overall; -1 without a label."""
        n = len(self.codes)
        n_labels = max(len(self.labels), 1)
        rows, columns = np.nonzero(self.codes >= 0)
        cells = rows * n_labels + self.codes[rows, columns]
        votes = np.bincount(cells, minlength=n * n_labels).reshape(n, n_labels)
        totals = votes.sum(axis=0)
        return np.where(votes.any(axis=1), (votes + totals / (totals.sum() + 1)).argmax(axis=1), -1)

    def of_classes(self, labels: NDArray) -> SourceLabels:
        """Encode as positions in `labels`, which must contain all labels."""
        place = np.append(encode(self.labels, labels, "y"), -1) if len(self.labels) else np.array([-1])
        return self._replace(labels=labels, codes=place[self.codes].astype(np.int32))

    def check(self, others: list[Any], name: str) -> None:
        """Raise for an index or a feature: most of its labels occur in no other column and no verified sample."""
        used = [np.unique(codes[codes >= 0]) for codes in self.codes.T]
        n_columns = np.bincount(np.concatenate(used), minlength=len(self.labels))
        shared = set(self.labels[n_columns > 1].tolist()) | set(others)
        n_labels = (self.codes >= 0).sum(axis=0)
        for source, codes, n in zip(self.names.tolist(), used, n_labels, strict=True):
            alone = [label for label in self.labels[codes].tolist() if label not in shared]
            if len(used) > 1 and len(codes) > 1 and (len(alone) == len(codes) or len(alone) > max(n / 2, _FEW_LABELS)):
                fact = f"has labels such as {alone[0]!r} that no other column has"
                raise ValueError(f"column {source!r} of {name} {fact}. Drop columns that are no labels.")

    def at(self, rows: NDArray[np.integer]) -> NDArray[np.integer]:
        """Codes of samples at these positions; -1 where the position is -1."""
        return np.where((rows >= 0)[:, None], self.codes[rows], -1)


class GivenLabels(NamedTuple):
    """Columns of labels: given, verified, by source if there are several, probabilities of the draw, groups."""

    given: Any
    verified: Any
    by_source: SourceLabels | None
    probability: Any
    groups: Any
    name: str  # of the argument with the given labels
    index: Any  # of a pandas object; None without one


def split_columns(
    y: Any, y_verified: Any = None, name: str = "y", sources: Any = None, probability: Any = None, groups: Any = None
) -> GivenLabels:
    """Separate the columns of a data frame of labels.

    The column "verified" has the true labels, "verified_probability" the probabilities of their draw, "group" the group
    of each sample, and each other column the labels of a source. Of several sources, the given label of a sample is the
    most frequent one. In long form, `sources` has the source of each sample; a single source is the same as none.
    """
    names = list(getattr(y, "column_names", getattr(y, "columns", ())))  # "columns" of Arrow are the data
    if twice := [column for column, n in Counter(names).items() if n > 1]:
        raise ValueError(f"{name} has several columns named {twice[0]!r}. Pass distinct names.")
    arguments = {VERIFIED: y_verified, PROBABILITY: probability, GROUP: groups}
    source_names = [column for column in names if column not in arguments]
    if names and not source_names:
        raise ValueError(f"{name} has only the columns {names}. Pass the noisy labels in other columns.")
    for column in arguments.keys() & names:
        if arguments[column] is not None:
            raise ValueError(f"{column!r} was given twice, as an argument and as a column of {name}. Pass one.")
        arguments[column] = y[column]
    by_source: SourceLabels | None = None
    if len(source_names) > 1:
        if sources is not None:
            raise ValueError(f"{name} has one column for each of {len(source_names)} sources. Omit sources=.")
        labels, by_source = _wide_form(y, source_names, name)
    else:
        labels = y[source_names[0]] if source_names else y
        if sources is not None:
            by_source = _long_form(labels, sources, name)
    others = arguments[VERIFIED], by_source, arguments[PROBABILITY], arguments[GROUP]
    return GivenLabels(labels, *others, name, index_of(y))


def _wide_form(y: Any, names: list[Any], name: str) -> tuple[Any, SourceLabels]:
    """Most frequent label of each sample, and all labels of a data frame with one column per source."""
    if like := [column for column in names if str(column).lower() in _LIKE_VERIFIED]:
        advice = f"Rename it, true labels to {VERIFIED!r} and probabilities of their draw to {PROBABILITY!r}"
        raise ValueError(f"{name} has a column {like[0]!r}, which would be a source of noisy labels. {advice}.")
    n = len(y[names[0]])
    titles = {column: f"column {column!r} of {name}" for column in names}
    columns = {title: read_column(y[column], n, title) for column, title in titles.items()}
    labels, codes_by_title = encoded(columns)
    codes = np.column_stack([*codes_by_title.values()])
    # -1 is missing, as in Snorkel; -1 and 1 without other labels are two classes
    if -1 in labels[:1] and labels.tolist() not in ([-1], [-1, 1]):
        if labels.tolist() == [-1, 0, 1]:
            warnings.warn(f"{name} has -1, 0 and 1; -1 is missing. If it is a class, rename it.", stacklevel=5)
        labels = labels[1:]
        codes = np.maximum(codes - 1, -1)
    table = SourceLabels(names_of_times(_listed(names)), labels, codes.astype(np.int32))
    most_frequent = table.combined()
    if (most_frequent < 0).any():
        labels = np.array([*labels.tolist(), None], dtype=object)
    return labels[most_frequent], table


def _long_form(y: Any, sources: Any, name: str) -> SourceLabels | None:
    """Labels of samples that each have the label of one source; None if all have the same source."""
    n = len(as_array(y, name))
    column = read_column(y, n, name)
    source = read_column(sources, n, "sources")
    if n_missing := int((column.has_label & ~source.has_label).sum()):
        raise ValueError(f"sources is missing for {n_missing} samples with a label. Pass a name, such as 'unknown'.")
    periods = _periods_in_order(sources)
    names = sorted_classes(source.labels, None, "sources") if periods is None else periods
    if len(names) > max(n / 2, _FEW_LABELS):
        advice = "Pass sources of several samples, such as periods of dates: dates.dt.to_period('M')"
        raise ValueError(f"sources has {len(names)} different names for {n} samples. {advice}.")
    if len(names) < 2:
        return None
    labels, codes = encoded({name: column})
    is_source = source.codes(names, "sources")[:, None] == np.arange(len(names))
    table = np.where(is_source, codes[name][:, None], -1).astype(np.int32)
    return SourceLabels(names_of_times(names), labels, table, periods is not None)


def _periods_in_order(column: Any) -> NDArray | None:
    """Distinct values in the order of time of dates, pandas' periods, or an ordered categorical; None for others."""
    dtype: Any = getattr(column, "dtype", None)
    if getattr(dtype, "ordered", False):
        used = set(column)
        return np.array([name for name in dtype.categories.tolist() if name in used])
    is_time = getattr(dtype, "kind", "") == "M" or hasattr(dtype, "freq")
    return np.unique(column[column == column]) if is_time else None  # without missing values
