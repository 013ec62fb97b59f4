"""Checks of the arguments of `compare`, made before any fit."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..classifiers import NoisyLabelClassifier
from ..classifiers._describe import describe
from ..nets import as_rows
from ..transition import check_count, check_transition_matrix
from ._data import ComparisonData

# seeds of numpy's generators are below this
_END_OF_SEEDS = 2**32


def check_seeds(seeds: Iterable[int]) -> list[int]:
    """Raise unless the seeds are distinct integers of at least 0; return them as a list."""
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise ValueError(f"seeds={seeds!r}; give several integers, such as range(3).")
    found = [check_count(seed, 0, "a seed of compare") for seed in seeds]
    if not found:
        raise ValueError("seeds is empty; give at least one, such as range(3).")
    if len(set(found)) < len(found) or max(found) >= _END_OF_SEEDS:
        raise ValueError(f"seeds={found}; give distinct integers below 2**32.")
    return found


def check_classifiers(classifiers: Any) -> Any:
    """Raise unless all are instances of the library's classifiers; return the dict, or a list."""
    if isinstance(classifiers, str) or not isinstance(classifiers, Iterable):
        raise TypeError(f"classifiers={classifiers!r}; give a list of classifiers, or a dict of names to classifiers.")
    given = classifiers if isinstance(classifiers, Mapping) else list(classifiers)
    for classifier in given.values() if isinstance(given, Mapping) else given:
        if not isinstance(classifier, NoisyLabelClassifier):
            raise TypeError(f"{classifier!r} is no instance of a classifier of this library; give such ones.")
    return given


def check_data(data: Any) -> ComparisonData:
    """Raise for data that do not fit together, or whose test rows would say nothing about new rows."""
    if not isinstance(data, ComparisonData):
        raise TypeError(
            f"data is a {type(data).__name__}; give ComparisonData, or a function of a seed that returns it."
        )
    for X, y in (("X", "y"), ("X", "y_true"), ("X_meta", "y_meta"), ("X_meta", "y_meta_noisy"), ("X_test", "y_test")):
        _check_lengths(data, X, y)
    classes = set(_values(data.y)) | set(_values(data.y_meta))
    if unknown := sorted(set(_values(data.y_test)) - classes, key=str):
        raise ValueError(f"y_test has the classes {unknown}, which no training label has: {sorted(classes, key=str)}.")
    if data.transition_matrix is not None:
        check_transition_matrix(data.transition_matrix, len(classes))
    if _is_array(data.X_meta) and _is_array(data.X_test) and _equal(data.X_meta, data.X_test):
        raise ValueError("X_test holds the rows of X_meta, which are trained on; give other clean rows to test with.")
    return data


def check_same(first: ComparisonData, second: ComparisonData, seed: int) -> None:
    """Raise if a function of the seed gives other data when it is called again: each fit calls it."""
    parts = zip(first._fields, first, check_data(second), strict=True)
    if different := [name for name, one, other in parts if not _equal(one, other)]:
        raise ValueError(
            f"data({seed}) gave other {', '.join(different)} when it was called again: methods would get different "
            "data. Draw from a generator that is made of the seed, as np.random.default_rng(seed)."
        )


def _check_lengths(data: ComparisonData, X: str, y: str) -> None:
    rows, labels = getattr(data, X), getattr(data, y)
    if labels is None and y in ComparisonData._field_defaults:
        return
    for name, part in ((X, rows), (y, labels)):
        if not hasattr(part, "__len__"):
            raise ValueError(f"{name} of the data is {part!r}; give an array or a Dataset.")
    if (n := len(as_rows(rows))) != len(labels):
        raise ValueError(f"{y} has {len(labels)} labels for {n} rows of {X}.")


def _values(labels: Any) -> list[Any]:
    return np.asarray(labels).ravel().tolist()


def _is_array(part: Any) -> bool:
    return hasattr(part, "__array__") or isinstance(part, list | tuple) or issparse(part)


def _equal(one: Any, other: Any) -> bool:
    """Whether two parts are equal; Datasets are taken to be, if they are of one length."""
    if one is None or other is None:
        return one is other
    if not (_is_array(one) and _is_array(other)):
        return len(one) == len(other)
    if issparse(one) or issparse(other):
        return issparse(one) and issparse(other) and describe(one) == describe(other)
    one, other = np.asarray(one), np.asarray(other)
    numbers = {one.dtype.kind, other.dtype.kind} <= set("biuf")
    return np.array_equal(one, other, equal_nan=numbers)
