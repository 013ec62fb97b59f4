"""Calibration: whether the probabilities of a classifier are right as often as they say."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# bins of equal width, those of Guo et al.
_N_BINS = 10


def share_interval(k: int, n: int, level: float) -> tuple[float, float]:
    """Interval of Clopper and Pearson (1934) of a share, of which k of n were seen."""
    from scipy.stats import binomtest  # slow to import

    found = binomtest(k, n).proportion_ci(level, "exact")
    return float(found.low), float(found.high)


def calibration_facts(proba: NDArray[np.float64], y: NDArray[np.intp], level: float) -> dict[str, Any]:
    """Accuracy, expected calibration error and reliability bins of the probability of the predicted class.

    The error is ``sum_b n_b / n |accuracy_b - confidence_b|`` over bins b of equal width (Guo, Pleiss, Sun,
    Weinberger, "On Calibration of Modern Neural Networks", ICML 2017).
    """
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    of_row = np.clip(np.ceil(confidence * _N_BINS).astype(int) - 1, 0, _N_BINS - 1)
    bins = [_bin(b, confidence[of_row == b], right[of_row == b], level) for b in np.unique(of_row).tolist()]
    low, high = share_interval(int(right.sum()), len(y), level)
    return {
        "n_rows": len(y),
        "accuracy": float(right.mean()),
        "low": low,
        "high": high,
        "confidence": float(confidence.mean()),
        "expected_calibration_error": sum(b["n_rows"] * abs(b["accuracy"] - b["confidence"]) for b in bins) / len(y),
        "bins": bins,
    }


def _bin(b: int, confidence: NDArray[np.float64], right: NDArray[np.bool_], level: float) -> dict[str, Any]:
    low, high = share_interval(int(right.sum()), len(right), level)
    return {
        "from": b / _N_BINS,
        "to": (b + 1) / _N_BINS,
        "n_rows": len(right),
        "confidence": float(confidence.mean()),
        "accuracy": float(right.mean()),
        "low": low,
        "high": high,
    }
