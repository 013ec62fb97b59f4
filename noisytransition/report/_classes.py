"""Classes whose labels or whose row of T should not be trusted."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Thresholds of risks; choices, not measured.
# a noise rate that is high: this one, or this share of wrong labels and so many times the mean
_WRONG, _HIGH, _TIMES_MEAN = 0.5, 0.3, 1.5
# few expected rows, and few clean rows
_FEW_ROWS, _FEW_CLEAN_ROWS = 30, 5


def class_facts(
    T: NDArray[np.float64],
    counts: NDArray[np.float64],
    bars: tuple[NDArray, NDArray] | str,
    names: list,
    n_given: NDArray[np.intp],
    n_clean: NDArray[np.intp] | None,
) -> list[dict[str, Any]]:
    """Noise rate, numbers of rows and risks of every class."""
    low, high = (T, T) if isinstance(bars, str) else bars
    rivals = _rivals(T, low, high)
    mean = float(counts @ (1 - T.diagonal()) / counts.sum())
    return [
        {
            "class": name,
            "noise": (noise := 1 - float(T[i, i])),
            "low": None if isinstance(bars, str) else 1 - float(high[i, i]),
            "high": None if isinstance(bars, str) else 1 - float(low[i, i]),
            "n_rows": float(counts[i]),
            "n_given": int(n_given[i]),
            "n_clean": None if n_clean is None else int(n_clean[i]),
            "risks": [
                *_noise_risk(noise, mean),
                *_rival_risk(names, rivals[i]),
                *_row_risks(counts[i], None if n_clean is None else n_clean[i]),
            ],
        }
        for i, name in enumerate(names)
    ]


def riskiest(classes: list[dict[str, Any]], most: int) -> list[int]:
    """Indices of at most so many classes, those with the most risks and then with the most noise first."""
    order = sorted(range(len(classes)), key=lambda k: (-len(classes[k]["risks"]), -classes[k]["noise"]))
    return order[:most]


def _rivals(T: NDArray, low: NDArray, high: NDArray) -> list[int | None]:
    """For each class the label that may be more frequent among its rows than its own, by the error bars."""
    own, other = low.diagonal(), np.where(np.eye(len(T), dtype=bool), -1.0, high)
    return [int(j) if other[i, j] >= own[i] else None for i, j in enumerate(other.argmax(axis=1))]


def _noise_risk(noise: float, mean: float) -> list[str]:
    if noise >= _WRONG:
        return ["more labels are wrong than right"]
    return ["high noise"] if noise >= _HIGH and noise >= _TIMES_MEAN * mean else []


def _rival_risk(names: list, rival: int | None) -> list[str]:
    return [] if rival is None else [f"could swap with {names[rival]}"]


def _row_risks(count: float, n_clean: int | None) -> list[str]:
    found = ["few rows"] if count < _FEW_ROWS else []
    return found if n_clean is None or n_clean >= _FEW_CLEAN_ROWS else [*found, "few clean rows"]
