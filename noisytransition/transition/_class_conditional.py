"""Permutation test of class-conditional noise (one T for all samples), given true and noisy labels."""

from __future__ import annotations
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array

from ..labels._arrays import as_array, as_floats, class_indices, in_class_order
from ._checks import check_count, check_probabilities
from ._estimation import finite_log
from ._noise import RandomState, as_generator

# smaller differences of scores (of size 1) and statistics are rounding errors
_ROUNDING = 1e-8


class ClassConditionalTest(NamedTuple):
    """Result of `class_conditional_test`.

    Attributes
    ----------
    pvalue : float
        P-value of the hypothesis that one T holds for all samples: the smallest of `pvalues`.
    pvalues : dict of str to float
        P-value of each statistic, adjusted for multiple testing.
    noise : dict of str to tuple of float
        Share of wrong labels in each group, and its expectation if one T holds for all samples.
    """

    pvalue: float
    pvalues: dict[str, float]
    noise: dict[str, tuple[float, float]]


def class_conditional_test(
    y_true: ArrayLike,
    y_noisy: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    features: ArrayLike | None = None,
    proba: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    n_permutations: int = 999,
    random_state: RandomState = None,
) -> ClassConditionalTest:
    """Test whether one T holds for all samples: noisy labels depend on the true class only.

    The noisy labels are permuted within the true classes, so the p-value is exact. `proba` may come from a classifier
    trained on the true labels of these samples, but not on their noisy labels. The samples must not have been selected
    by their noisy labels. See :ref:`one-T` for the statistics. All given variables are tested jointly.

    Parameters
    ----------
    y_true, y_noisy : array-like of shape (n,)
        Labels of the same samples: class indices 0..c-1, text, or any labels in `classes`.
    groups : array-like of shape (n,), optional
        Group of each sample, such as its source, annotator or batch.
    features : array-like of shape (n, d) or (n,), optional
        Numeric features that T may depend on. The power is higher with fewer columns.
    proba : array-like of shape (n, c), optional
        Probabilities of the *true* label, from a classifier. Recommended for images.
    classes : array-like of shape (c,), optional
        All labels, in the order of the columns of `proba`. Default for text: the sorted labels of both arrays.
    n_permutations : int, default=999
        Number of permutations; the smallest p-value is 1 / (n_permutations + 1).
    random_state : int, RandomState, Generator or None
        Source of the permutations.

    Returns
    -------
    ClassConditionalTest

    Examples
    --------
    >>> import numpy as np
    >>> from noisytransition.transition import class_conditional_test, flip_labels, symmetric_noise
    >>> y, group = np.arange(600) % 3, np.repeat(["careful", "hasty"], 300)
    >>> careful, hasty = (flip_labels(y, symmetric_noise(3, rate), random_state=0) for rate in (0.1, 0.4))
    >>> y_noisy = np.where(group == "careful", careful, hasty)
    >>> class_conditional_test(y, y_noisy, groups=group, random_state=0).pvalue
    0.001
    """
    n_classes = None if proba is None else check_probabilities(proba).shape[1]
    (y, s), names = class_indices(n_classes, None, classes, y_true=y_true, y_noisy=y_noisy)
    groups = None if groups is None else as_array(groups, "groups").astype(str)
    variables = _variables(groups, features, in_class_order(proba, names, rows=False), len(y))
    noise = {} if groups is None else _noise(y != s, y, groups)
    pvalues = _adjusted_pvalues(list(_permuted_statistics(y, s, variables, n_permutations, random_state)))
    return ClassConditionalTest(min(pvalues.values()), pvalues, noise)


def _permuted_statistics(
    y: NDArray[np.intp], s: NDArray[np.intp], variables: dict[str, NDArray], n: int, random_state: RandomState
) -> Iterator[dict[str, float]]:
    """Yield the statistics of the noisy labels as given, and n times permuted within true classes."""
    rows_of_classes = [np.flatnonzero(y == label) for label in np.unique(y)]
    permuted = [rows for rows in rows_of_classes if np.ptp(s[rows])]
    if not permuted:
        raise ValueError("no true class has samples with different noisy labels; pass more samples, or noisy ones.")
    scores = {name: _scores(name, values, rows_of_classes) for name, values in variables.items()}
    codes, pairs = np.unique(y * (s.max() + 1) + s, return_inverse=True)
    labels = np.divmod(codes, s.max() + 1)
    random = as_generator(random_state)
    yield _statistics(pairs, *labels, variables, scores)
    for _ in range(check_count(n, 1, "n_permutations")):
        for rows in permuted:
            pairs[rows] = random.permutation(pairs[rows])
        yield _statistics(pairs, *labels, variables, scores)


def _variables(groups: NDArray | None, features: Any, proba: Any, n: int) -> dict[str, NDArray]:
    """Variables that T may depend on: scaled indicators of groups, features, and logarithms of probabilities."""
    variables: dict[str, NDArray] = {}
    if groups is not None:
        is_in_group = groups[:, None] == np.unique(groups)
        variables["groups"] = is_in_group / np.sqrt(is_in_group.mean(axis=0))
    if features is not None:
        variables["features"] = np.atleast_2d(as_floats(features, "features").T).T
        if variables["features"].ndim != 2 or not np.isfinite(variables["features"]).all():
            raise ValueError("features has NaN, infinite values or more than two dimensions; pass rows of numbers.")
    if proba is not None:
        variables["posteriors"] = finite_log(check_probabilities(proba))
    if not variables or any(len(values) != n for values in variables.values()):
        raise ValueError(f"pass groups=, features= or proba=, with one entry for each of the {n} samples in y_true.")
    return variables


def _scores(name: str, values: NDArray, rows_of_classes: list[NDArray[np.intp]]) -> NDArray[np.float64]:
    """Indicators of groups, or ranks and their squares, standardised; centred in each true class."""
    from scipy.stats import rankdata  # slow to import

    scores = values if name == "groups" else np.hstack([values, values])
    for rows in rows_of_classes:
        if name != "groups":
            ranks = (2 * rankdata(values[rows], axis=0) - 1) / len(rows) - 1  # from -1 to 1
            powers = np.hstack([ranks, ranks**2])
            std = powers.std(axis=0)
            scores[rows] = powers / np.where(std > _ROUNDING, std, 1)
        scores[rows] -= scores[rows].mean(axis=0)
    return scores


def _statistics(pairs: NDArray, true: NDArray, noisy: NDArray, variables: dict, scores: dict) -> dict[str, float]:
    """Statistics of one permutation; `true` and `noisy` are the labels of each pair."""
    n = len(pairs)
    rows_of_pairs = csc_array((np.ones(n), pairs, np.arange(n + 1)), shape=(len(true), n))
    n_of_class = np.bincount(true[pairs])[true]
    statistics = {}
    for name, values in scores.items():
        sums = rows_of_pairs @ values
        if name == "posteriors":
            statistics["posteriors: direction"] = variables[name][np.arange(n), noisy[pairs]].sum()
        else:
            statistics[f"{name}: rate"] = np.cbrt((sums[true != noisy].sum(axis=0) ** 2).sum())
        statistics[f"{name}: labels"] = np.cbrt((sums**2 / n_of_class[:, None]).sum())
    return statistics


def _adjusted_pvalues(statistics: list[dict[str, float]]) -> dict[str, float]:
    """Share of permutations (the data first) whose largest standardised statistic is at least as large."""
    values = np.array([list(permutation.values()) for permutation in statistics])
    std = values.std(axis=0)
    constant = std <= _ROUNDING * np.maximum(np.abs(values).max(axis=0), 1)
    standardised = np.where(constant, 0, (values - values.mean(axis=0)) / np.where(constant, 1, std))
    reached = standardised.max(axis=1)[:, None] >= standardised[0] - _ROUNDING
    return dict(zip(statistics[0], reached.mean(axis=0).tolist(), strict=True))


def _noise(wrong: NDArray[np.bool_], y: NDArray[np.intp], groups: NDArray) -> dict[str, tuple[float, float]]:
    """Observed and expected share of wrong labels in each group."""
    expected = (np.bincount(y, weights=wrong) / np.maximum(np.bincount(y), 1))[y]
    rows_of_groups = {name: groups == name for name in np.unique(groups).tolist()}
    return {name: (float(wrong[rows].mean()), float(expected[rows].mean())) for name, rows in rows_of_groups.items()}
