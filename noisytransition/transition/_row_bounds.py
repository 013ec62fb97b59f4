"""Bounds of T's entries that fit together: rows of T sum to 1."""

import numpy as np
from numpy.typing import NDArray

# rounding of a sum of a row, which must not raise a lower bound from 0
_ROUNDING = 1e-12


def largest_of_rows(T: NDArray) -> NDArray[np.bool_]:
    """Where the largest entry of each row is."""
    return np.arange(len(T)) == T.argmax(axis=1)[:, None]


def fit_together(T: NDArray, low: NDArray, high: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds that hold T, each of which is that of some row of sum 1 within the bounds.

    The largest entry of a row is what the others leave, but its standard error does not tell how far those that are
    cut off at 0 reach upwards: its lower bound follows their upper bounds, and never the reverse.

    Parameters
    ----------
    T : ndarray of shape (c, c)
        The estimate.
    low, high : ndarray of shape (c, c)
        Bounds of each entry by itself, around T and within 0 and 1.

    Returns
    -------
    low, high : ndarray of shape (c, c)
    """
    largest = largest_of_rows(T)
    low_of_others = np.where(largest, 0, low).sum(axis=1, keepdims=True)
    left = 1 - (low_of_others - np.where(largest, 0, low))  # by the others' lower bounds, if the largest may be 0
    high = np.clip(high, T, np.maximum(left, T))
    lowest = np.maximum(np.where(largest, np.inf, left - high).min(axis=1, keepdims=True), 0)
    low = np.where(largest, np.minimum(low, lowest), low)
    left = 1 - _ROUNDING - (high.sum(axis=1, keepdims=True) - high)  # by the others' upper bounds
    return np.clip(low, np.minimum(left, T), T), high
