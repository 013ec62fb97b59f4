"""How much a clean row counts in the calibration behind T, by cross-validation on the clean rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._calibration import CalibratedLikelihood
from ._em import MAX_ITER, off_zero
from ._estimation import finite_log


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

    Each map is sought as in `em_transition_matrix`, from `init` and in as many steps: with many classes these end
    before the maximum, and a start from the fit of all clean rows would show in the result.

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
    loss, start, none = np.empty(len(y_meta)), off_zero(init), np.zeros_like(pairs)
    for fold in np.unique(folds):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        likelihood = CalibratedLikelihood(proba, y, proba_meta[inside], y_meta[inside], pairs, meta_weight)
        calibration: Any = likelihood.maximise(start, none, MAX_ITER, 0.0).calibration
        calibrated = calibration(proba_meta[outside])
        loss[outside] = -finite_log(calibrated[np.arange(len(outside)), y_meta[outside]])
    return loss
