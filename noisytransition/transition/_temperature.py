"""Temperature at which probabilities make true labels most likely (Guo et al., 2017), and the loss there."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from ._calibration import SMALLEST_PROBA, Calibration

# of a temperature: from a twentieth of the logarithms to seven times as much
_LOG_SCALES = (-3.0, 2.0)


def tempered_log_loss(proba: NDArray, y: NDArray, weights: NDArray | float = 1.0) -> NDArray[np.float64]:
    """Log-loss of each row at the temperature of `fitted_temperature`, times its weight.

    Parameters
    ----------
    proba : ndarray of shape (n, c)
    y : ndarray of int, shape (n,)
    weights : ndarray of shape (n,) or float, default=1.0

    Returns
    -------
    ndarray of shape (n,)
    """
    return _tempered_log_loss(proba, y, weights)[1]


def fitted_temperature(proba: NDArray, y: NDArray, weights: NDArray | float = 1.0) -> Calibration:
    """Map by the temperature of the logarithms that makes the log-loss of labels lowest (Guo et al., 2017).

    Parameters
    ----------
    proba, y, weights
        As in `tempered_log_loss`.

    Returns
    -------
    Calibration
        Its matrix is a multiple of the identity, its bias 0.
    """
    c = proba.shape[1]
    return Calibration(_tempered_log_loss(proba, y, weights)[0] * np.eye(c), np.zeros(c))


def _tempered_log_loss(proba: NDArray, y: NDArray, weights: NDArray | float) -> tuple[float, NDArray[np.float64]]:
    """Best factor of the logarithms, and the log-loss of each row there."""
    u, rows = np.log(np.maximum(proba, SMALLEST_PROBA)), np.arange(len(y))

    def loss(log_scale: float) -> NDArray[np.float64]:
        return -weights * special.log_softmax(u * np.exp(log_scale), axis=1)[rows, y]

    best: Any = optimize.minimize_scalar(lambda s: loss(s).sum(), bounds=_LOG_SCALES, method="bounded")
    return float(np.exp(best.x)), loss(best.x)
