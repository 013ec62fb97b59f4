"""How much a clean row counts in the calibration behind T, by cross-validation on the clean rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._calibration import CalibratedLikelihood
from ._estimation import finite_log

# of the maximisation, which ends before by its tolerance
_MAX_ITER = 1000


def held_out_log_loss(
    proba: NDArray,
    y: NDArray,
    proba_meta: NDArray,
    y_meta: NDArray,
    folds: NDArray[np.intp],
    *,
    init: NDArray,
    pairs: NDArray,
    meta_weight: float,
) -> NDArray[np.float64]:
    """Loss of each clean row at the map that all noisy rows and the clean rows of the other folds make most likely.

    Parameters
    ----------
    proba, y, proba_meta, y_meta, pairs, meta_weight
        As in `CalibratedLikelihood`.
    folds : ndarray of shape (n_meta,)
        Fold of each clean row.
    init : ndarray of shape (c, c)
        T to start from.

    Returns
    -------
    ndarray of shape (n_meta,)
    """
    none = np.zeros_like(pairs)

    def fitted(rows: NDArray, start: NDArray | None = None) -> tuple[NDArray | None, Any]:
        likelihood = CalibratedLikelihood(proba, y, proba_meta[rows], y_meta[rows], pairs, meta_weight)
        likelihood.x = start
        found = likelihood.maximise(init, none, _MAX_ITER, 0.0)
        return likelihood.x, found.calibration

    loss, (whole, _) = np.empty(len(y_meta)), fitted(np.arange(len(y_meta)))
    for fold in np.unique(folds):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        _, calibration = fitted(inside, whole)  # a short way from there
        calibrated = calibration(proba_meta[outside])
        loss[outside] = -finite_log(calibrated[np.arange(len(outside)), y_meta[outside]])
    return loss
