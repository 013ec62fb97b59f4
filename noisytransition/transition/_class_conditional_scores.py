"""What T may depend on: groups, features or posteriors as scores of rows, and what the permuted labels make of them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import as_floats, check_label_indices, check_probabilities

# entries of a matrix of permuted labels that are worked on at once
_BLOCK = 4_000_000
# entries of the table of groups
_MOST_INDICATORS = 20_000_000
# columns whose spread is less are constant
_CONSTANT = 1e-8
# keeps logarithms finite
_TINY = 1e-12


class Stratum(NamedTuple):
    """Rows of a true class, and their noisy labels."""

    label: int
    rows: NDArray[np.intp]
    labels: NDArray[np.intp]


class Features:
    """Numbers of each row that the noisy label may go with."""

    name = "features"

    def __init__(self, values: NDArray[np.float64]) -> None:
        self.values = values

    def scores(self, rows: NDArray) -> NDArray[np.float64]:
        """Scores of the rows of a class, centred."""
        return _rank_polynomials(self.values[rows])

    def terms(self, stratum: Stratum, drawn: NDArray) -> dict[str, NDArray[np.float64]]:
        """Return what a class adds to each statistic, one row for each permutation."""
        scores = self.scores(stratum.rows)
        rate, spread = np.zeros((len(drawn), scores.shape[1])), np.zeros((len(drawn), 1))
        for label in np.unique(stratum.labels):
            sums = _sums(drawn, label, scores)
            spread[:, 0] += (sums**2).sum(axis=1) / len(stratum.rows)
            if label == stratum.label:
                rate = -sums  # that of the wrong labels, since scores are centred
        return {f"{self.name}: rate": rate, f"{self.name}: labels": spread}


class Groups(Features):
    """Group of each row, as indicators."""

    name = "groups"

    def scores(self, rows: NDArray) -> NDArray[np.float64]:
        """Indicators of the rows of a class over the root of the group's share, centred."""
        scores = self.values / np.sqrt(self.values.mean(axis=0))
        return scores[rows] - scores[rows].mean(axis=0)


class Posteriors(Features):
    """Log-posteriors of a classifier."""

    name = "posteriors"

    def terms(self, stratum: Stratum, drawn: NDArray) -> dict[str, NDArray[np.float64]]:
        """As in `Features`, with the log-posteriors of the noisy labels in place of the rate."""
        spread = super().terms(stratum, drawn)[f"{self.name}: labels"]
        own = self.values[stratum.rows] - self.values[stratum.rows].mean(axis=0)
        direction = sum(_sums(drawn, label, own[:, [label]]) for label in np.unique(stratum.labels))
        return {f"{self.name}: direction": np.asarray(direction), f"{self.name}: labels": spread}


def _rank_polynomials(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks of each column and their squares, centred, of unit variance; 0 where all values are alike."""
    ranks = np.stack([_ranks(column) for column in values.T], axis=1)
    scores = np.hstack([ranks, 3 * ranks**2 - 1])
    scores -= scores.mean(axis=0)
    spread = scores.std(axis=0)
    return np.where(spread > _CONSTANT, scores / np.maximum(spread, _CONSTANT), 0)


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from -1 to 1; equal values share the middle of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (2 * np.cumsum(counts) - counts)[place] / len(values) - 1


def _sums(drawn: NDArray, label: int, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of the scores over the rows with a label, in each permutation."""
    blocks = np.array_split(drawn, -(-drawn.size // _BLOCK))
    return np.concatenate([(block == label).astype(np.float64) @ scores for block in blocks])


# ---------------------------------------------------------------------------- checks
def sources(
    groups: Any, features: Any, proba: Any, y: NDArray, s: NDArray
) -> tuple[list[Features], dict[str, NDArray[np.bool_]]]:
    """Return what was given, checked, and the parts of the rows whose noise is shown."""
    found: list[Features] = []
    subsets: dict[str, NDArray[np.bool_]] = {}
    if proba is not None:
        proba = check_probabilities(proba)
        for labels, name in ((y, "y_true"), (s, "y_noisy")):
            check_label_indices(labels, proba.shape[1], len(proba), name)
        log_proba = np.log(np.maximum(proba, _TINY))
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
    """Rows whose true class has a higher posterior than that of the class's median row, and the others."""
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
    given = np.asarray(groups)
    if given.shape != (n_rows,):
        raise ValueError(f"groups has shape {given.shape} for {n_rows} rows; give one group per row.")
    if missing := sum(group is None or str(group == group) != "True" for group in given.tolist()):  # NaN, NaT, NA
        raise ValueError(f"groups is missing in {missing} of {n_rows} rows; give these rows a group of their own.")
    names = given.astype(str)
    n_groups = len(np.unique(names))
    if n_groups < 2:
        raise ValueError(f"all rows are of one group, {names[:1].tolist()}; give at least two groups.")
    if n_rows * n_groups > _MOST_INDICATORS:
        raise ValueError(f"{n_groups} groups for {n_rows} rows are too many to test; join the small ones.")
    if n_groups == n_rows:
        raise ValueError(f"groups has {n_groups} groups for {n_rows} rows: one for each; give numbers as features=.")
    return names
