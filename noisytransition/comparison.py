"""Comparison of classifiers on the same data and seeds."""

from __future__ import annotations
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import check_consistent_length

from .datasets import ComparisonData
from .labels._arrays import in_class_order
from .methods import METHODS, NoisyLabelClassifier
from .transition import sampling_limit, transition_error
from .transition._checks import check_transition_matrix

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["compare"]


def compare(
    data: ComparisonData | Callable[[int], ComparisonData],
    classifiers: Mapping[str, NoisyLabelClassifier] | None = None,
    *,
    seeds: Iterable[int] = range(3),
    n_jobs: int | None = None,
) -> DataFrame:
    """Fit several classifiers on the same data and seeds. Requires pandas.

    Parameters
    ----------
    data : ComparisonData or callable
        Data for all seeds, or a function from a seed to its data.
    classifiers : dict of str to classifier, optional
        Unfitted classifiers by name. Default: the nine published methods, by `as_published`.
    seeds : iterable of int, default=range(3)
        Seeds of the fits, and of the data if `data` is a function.
    n_jobs : int, optional
        Number of joblib processes. Fits that run in parallel slow each other down, which increases ``seconds``.

    Returns
    -------
    DataFrame
        A row for each classifier and seed, with the columns ``method``, ``seed``, ``accuracy`` (on the test samples),
        ``transition_error`` (NaN without T or true T), ``steps`` (gradient steps) and ``seconds``. If the true T is
        known, the rows "identity" and "sampling limit" have the error of the identity matrix, and of T counted from the
        true labels. A fit that fails has NaN and raises a warning.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import CrossEntropyClassifier, GLCClassifier, compare
    >>> from noisytransition.datasets import make_noisy_data
    >>> from noisytransition.transition import pair_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> def iris(seed):
    ...     split = X[::2], y[::2], X[1::2], y[1::2]
    ...     return make_noisy_data(*split, noise=pair_noise(3, 0.3), n_clean=15, random_state=seed)
    >>> methods = {"cross-entropy": CrossEntropyClassifier(), "GLC": GLCClassifier()}
    >>> table = compare(iris, methods, seeds=range(2))
    >>> table.groupby("method", sort=False)["accuracy"].count()
    method
    identity          0
    sampling limit    0
    cross-entropy     2
    GLC               2
    Name: accuracy, dtype: int64
    """
    import pandas as pd  # slow to import

    if classifiers is None:
        classifiers = {name: cls.as_published() for name, cls in METHODS.items() if cls._PUBLISHED is not None}
    rows = joblib.Parallel(n_jobs)(_tasks(data, classifiers, seeds))
    errors = [f"{row['method']}, seed {row['seed']}: {row['error']}" for row in rows if "error" in row]
    if errors and not any("accuracy" in row for row in rows):
        raise ValueError(f"all fits failed, the first with: {errors[0]}")
    for text in errors:
        warnings.warn(text, FitFailedWarning, stacklevel=2)
    return pd.DataFrame(rows, columns=["method", "seed", "accuracy", "transition_error", "steps", "seconds"])


def _tasks(data: Any, classifiers: Mapping[str, NoisyLabelClassifier], seeds: Iterable[int]) -> Iterator[Any]:
    """References and fits of each seed; `data` is called once per seed."""
    for seed in seeds:
        samples = data(seed) if callable(data) else data
        _check(samples)
        for row in _references(samples):
            yield joblib.delayed(dict)(row, seed=seed)
        for name, clf in classifiers.items():
            yield joblib.delayed(_fit)(name, clone(clf).set_params(random_state=seed), samples, seed)


def _fit(name: str, clf: NoisyLabelClassifier, data: ComparisonData, seed: int) -> dict[str, Any]:
    row: dict[str, Any] = {"method": name, "seed": seed}
    started = time.perf_counter()
    try:
        clf.fit(data.X, data.y, meta=(data.X_clean, data.y_clean), y_clean_noisy=data.y_clean_noisy)
        seconds = time.perf_counter() - started
        row["accuracy"] = float(clf.score(data.X_test, data.y_test))
    except Exception as error:  # do not lose the other fits
        return row | {"error": f"{type(error).__name__}: {error}"}
    if hasattr(clf, "histories_"):  # a network
        row["steps"] = sum(epoch["train_batch_count"] for history in clf.histories_.values() for epoch in history)
    row["seconds"] = round(seconds, 3)
    if data.transition_matrix is not None and hasattr(clf, "transition_matrix_"):
        T = in_class_order(data.transition_matrix, clf.classes_)
        row["transition_error"] = transition_error(T, clf.transition_matrix_)
    return row


def _references(data: ComparisonData) -> Iterator[dict[str, Any]]:
    """Table rows of the identity and, if each class has samples, of the sampling limit."""
    if data.transition_matrix is None:
        return
    classes = sorted(_labels(data.y) | _labels(data.y_clean))
    T = check_transition_matrix(in_class_order(data.transition_matrix, classes), len(classes))
    yield {"method": "identity", "transition_error": transition_error(T, np.eye(len(T)))}
    if data.y_true is not None:
        counts = np.unique(np.asarray(data.y_true), return_counts=True)[1]
        if len(counts) == len(T):
            yield {"method": "sampling limit", "transition_error": sampling_limit(T, counts)}


def _check(data: Any) -> None:
    if not isinstance(data, ComparisonData):
        raise TypeError(f"data is a {type(data).__name__}. Pass ComparisonData, or a function from a seed to it.")
    if data.X_test is None or data.y_test is None:
        raise ValueError("X_test or y_test is None. Pass test samples and their true labels.")
    check_consistent_length(data.X_test, data.y_test)
    if unknown := _labels(data.y_test) - _labels(data.y) - _labels(data.y_clean):
        raise ValueError(f"y_test has classes without training labels: {sorted(unknown, key=str)}. Drop them.")


def _labels(labels: Any) -> set[Any]:
    return set() if labels is None else set(np.asarray(labels).ravel().tolist())
