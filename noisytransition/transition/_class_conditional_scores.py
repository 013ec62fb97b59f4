"""Scores of rows from groups, features or posteriors, and their sums over the rows with each permuted label."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import as_array, as_floats, check_label_indices
from ._class_conditional_permutations import PermutedLabels

# largest table of group indicators, rows x groups: 160 MB (a choice, not measured)
_MAX_INDICATORS = 20_000_000
# a column of scores with a smaller standard deviation is constant: ranks are from -1 to 1, rounding errors near 1e-16
_MIN_STD = 1e-8
# smallest probability, to keep logarithms finite; a float32 softmax gives exact zeros (a choice, not measured)
_MIN_PROBA = 1e-12


class Stratum(NamedTuple):
    """The rows of one true class and their noisy labels."""

    label: int
    rows: NDArray[np.intp]
    labels: NDArray[np.intp]


class Features:
    """Numbers of each row that the noisy label may depend on."""

    name = "features"

    def __init__(self, values: NDArray[np.float64]) -> None:
        self.values = values

    def scores(self, rows: NDArray) -> NDArray[np.float64]:
        """Centred scores of the rows of a class."""
        return _rank_polynomials(self.values[rows])

    def terms(self, stratum: Stratum, permuted: PermutedLabels) -> dict[str, NDArray[np.float64]]:
        """Return the term of a class in each statistic, one row for each permutation."""
        scores, is_own = self.scores(stratum.rows), permuted.names == stratum.label
        rate, squares = np.empty((len(permuted), scores.shape[1])), np.empty((len(permuted), 1))
        for block, sums in permuted.sums(scores):
            rate[block] = -sums[:, is_own].sum(axis=1)  # the sum over wrong labels, since scores are centred
            squares[block, 0] = np.einsum("pld,pld->p", sums, sums) / len(stratum.rows)
        return {f"{self.name}: rate": rate, f"{self.name}: labels": squares}


class Groups(Features):
    """Group of each row, as indicators."""

    name = "groups"

    def scores(self, rows: NDArray) -> NDArray[np.float64]:
        """Centred indicators of the rows of a class, divided by the root of the group's share."""
        scores = self.values / np.sqrt(self.values.mean(axis=0))
        return scores[rows] - scores[rows].mean(axis=0)


class Posteriors(Features):
    """Log-posteriors of a classifier."""

    name = "posteriors"

    def terms(self, stratum: Stratum, permuted: PermutedLabels) -> dict[str, NDArray[np.float64]]:
        """As in `Features`, with the log-posteriors of the noisy labels in place of the rate."""
        squares = super().terms(stratum, permuted)[f"{self.name}: labels"]
        # divided by the largest, so that rounding errors are small beside 1; the p-value does not depend on the scale
        scaled = self.values[stratum.rows] / np.abs(self.values).max()
        scaled -= scaled.mean(axis=0)
        direction = np.empty((len(permuted), 1))
        for block, sums in permuted.sums(scaled[:, permuted.names]):
            direction[block, 0] = np.trace(sums, axis1=1, axis2=2)
        return {f"{self.name}: direction": direction, f"{self.name}: labels": squares}


def _rank_polynomials(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks of each column and their squares, centred, of unit variance; 0 where all values are equal."""
    from scipy.stats import rankdata  # slow to import, and not needed by the rest of the package

    ranks = (2 * rankdata(values, axis=0) - 1) / len(values) - 1  # from -1 to 1
    scores = np.hstack([ranks, 3 * ranks**2 - 1])
    scores -= scores.mean(axis=0)
    std = scores.std(axis=0)
    return np.where(std > _MIN_STD, scores / np.maximum(std, _MIN_STD), 0)


# ---------------------------------------------------------------------------- checks
def sources(
    groups: ArrayLike | None, features: ArrayLike | None, proba: NDArray | None, y: NDArray
) -> tuple[list[Features], dict[str, NDArray[np.bool_]]]:
    """Return the checked inputs, and the subsets of rows whose noise is reported."""
    found: list[Features] = []
    subsets: dict[str, NDArray[np.bool_]] = {}
    if proba is not None:
        check_label_indices(y, proba.shape[1], len(proba), "y_true")
        log_proba = np.log(np.maximum(proba, _MIN_PROBA))
        found.append(Posteriors(log_proba))
        subsets = _halves(log_proba, y)
    if features is not None:
        found.append(Features(_check_features(features, len(y))))
    if groups is not None:
        names = _check_groups(groups, len(y))
        subsets = {str(name): names == name for name in np.unique(names)}
        found.append(Groups(np.stack(list(subsets.values()), axis=1).astype(np.float64)))
    if not found:
        raise ValueError("nothing that T could depend on was given: pass groups=, features= or proba=.")
    return found, subsets


def _halves(log_proba: NDArray, y: NDArray) -> dict[str, NDArray[np.bool_]]:
    """Split the rows of each true class at the median posterior of that class."""
    own, easy = log_proba[np.arange(len(y)), y], np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        easy[y == label] = own[y == label] > np.median(own[y == label])
    return {"easier half": easy, "harder half": ~easy} if easy.any() else {}


def _check_features(features: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    values = as_floats(features, "features")
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != n_rows or not values.shape[1]:
        raise ValueError(
            f"features has shape {values.shape} for {n_rows} rows; give one row of numbers each. For images or "
            "sequences give proba=, a classifier's probabilities."
        )
    if not np.isfinite(values).all():
        raise ValueError("features has NaN or infinite values; fill them, and add a column that marks them.")
    return values


def _check_groups(groups: ArrayLike, n_rows: int) -> NDArray[np.str_]:
    given = as_array(groups, "groups")
    if given.shape != (n_rows,):
        raise ValueError(f"groups has shape {given.shape} for {n_rows} rows; give one group per row.")
    if missing := sum(group is None or str(group == group) != "True" for group in given.tolist()):  # NaN, NaT, NA
        raise ValueError(f"groups is missing in {missing} of {n_rows} rows; give these rows a group of their own.")
    names = given.astype(str)
    n_groups = len(np.unique(names))
    if n_groups < 2:
        raise ValueError(f"all rows are of one group, {names[:1].tolist()}; give at least two groups.")
    if n_rows * n_groups > _MAX_INDICATORS:
        raise ValueError(f"{n_groups} groups for {n_rows} rows are too many to test; join the small ones.")
    if n_groups == n_rows:
        raise ValueError(f"groups has {n_groups} groups for {n_rows} rows: one for each; give numbers as features=.")
    return names
