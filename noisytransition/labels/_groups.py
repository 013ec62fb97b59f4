"""Groups of samples that are not independent, such as images of a patient or sentences of a document."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._columns import read_names


def read_groups(groups: Any, n: int, n_separate: int = 0) -> NDArray[np.intp] | None:
    """Read the groups of n samples of X as codes; each of the separate clean samples that follow is a group.

    None if no group has several samples. Raises a ValueError if the group of a sample is missing.
    """
    if groups is None:
        return None
    names, codes = read_names(groups, n, "groups")
    if n_missing := int((codes < 0).sum()):
        raise ValueError(f"groups is missing for {n_missing} of {n} samples. Pass a group for each sample.")
    if len(names) == n:
        return None
    return np.append(codes, len(names) + np.arange(n_separate))


def of_samples(both: tuple[NDArray, NDArray] | None, noisy: Any, clean: Any) -> tuple[NDArray, NDArray] | None:
    """Values of some noisy and of some clean samples; None without values."""
    return None if both is None else (both[0][noisy], both[1][clean])


def in_order_of_appearance(groups: NDArray) -> NDArray[np.intp]:
    """Number the groups by their first sample."""
    _, first, codes = np.unique(groups, return_index=True, return_inverse=True)
    return first.argsort().argsort()[codes]


def sums_by_group(values: NDArray, groups: NDArray | None) -> NDArray[np.float64]:
    """Sums of the rows of each group, shape (n_groups, k); without groups, the rows."""
    if groups is None:
        return values
    names, codes = np.unique(groups, return_inverse=True)
    sums = np.zeros((len(names), *values.shape[1:]))
    np.add.at(sums, codes, values)
    return sums


def design_effect(residuals: NDArray, groups: NDArray | None) -> float:
    """Variance of the sum of residuals by groups, relative to that of independent samples, at least 1.

    It is between 1 and the size of the groups, which have as much information as the number of samples divided by it.
    See Kish, "Survey Sampling", 1965, and Rao, Scott, "The Analysis of Categorical Data from Complex Sample Surveys",
    1981, whose mean design effect of several quantities this is.
    """
    total = (residuals**2).sum()
    if not total:
        return 1.0
    return max(float((sums_by_group(residuals, groups) ** 2).sum() / total), 1.0)
