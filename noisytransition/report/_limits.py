"""What the labels leave open, and how many verified rows would tell."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..transition import sampling_limit

# classes that are listed: those that need the most rows
_MOST_CLASSES = 10


def rows_needed(
    kept: NDArray[np.float64], half_widths: NDArray[np.float64] | None, z: float, precision: float
) -> NDArray[np.intp]:
    r"""Rows of each class to verify, so that the interval of its noise rate is at most ± precision.

    The noise rate r of a class, counted in m of its rows whose true and noisy labels are known, has the standard error
    ``sqrt(r (1 - r) / m)``, and an interval of half width ``h = z sqrt(r (1 - r) / m)``. Information adds up: with what
    is known already, an interval of half width h0, ::

        1 / h^2 = 1 / h0^2 + m / (z^2 r (1 - r)),    so    m = z^2 r (1 - r) (1 / precision^2 - 1 / h0^2)

    A rate below `precision`, or above ``1 - precision``, is taken as that, since at 0 the formula asks for no row.

    Parameters
    ----------
    kept : ndarray of shape (c,)
        Diagonal of T.
    half_widths : ndarray of shape (c,) or None
        h0; None: nothing is known.
    z : float
        Quantile of the normal distribution at ``(1 + level) / 2``.
    precision : float

    Returns
    -------
    ndarray of int, shape (c,)
    """
    rate = np.clip(1 - kept, min(precision, 0.5), max(1 - precision, 0.5))
    known = 0.0 if half_widths is None else 1 / np.maximum(half_widths, 1e-12) ** 2
    m = z**2 * rate * (1 - rate) * (1 / precision**2 - known)
    return np.ceil(np.maximum(m, 0) - 1e-9).astype(np.intp)


def limit_facts(
    T: NDArray[np.float64],
    counts: NDArray[np.float64],
    bars: tuple[NDArray, NDArray] | str,
    names: list,
    z: float,
    precision: float,
) -> dict[str, Any]:
    """Width of the intervals now, rows to verify, and the error of T by counting all rows."""
    half = None if isinstance(bars, str) else (bars[1].diagonal() - bars[0].diagonal()) / 2
    needed = rows_needed(T.diagonal(), half, z, precision)
    shares = np.maximum(counts, 1e-12) / counts.sum()
    order = np.lexsort((T.diagonal(), -needed))[:_MOST_CLASSES]
    listed = [
        {"class": names[k], "half_width": None if half is None else float(half[k]), "n_more": int(needed[k])}
        for k in order
        if needed[k]
    ]
    at_random = needed / shares
    return {
        "precision": precision,
        "n_classes": int((needed > 0).sum()),
        "n_of_classes": int(needed.sum()),
        "n_at_random": math.ceil(min(at_random.max(), 1e15)),
        "widest": str(names[int(at_random.argmax())]),
        "listed": listed,
        "sampling_limit": sampling_limit(T, np.maximum(counts.round(), 1).astype(int)),
    }
