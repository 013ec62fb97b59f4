"""How much a clean row counts in the calibration behind T, by cross-validation on the clean rows."""

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
    proba, proba_meta : ndarray of shape (n, c) and (n_meta, c)
        Of the noisy rows and of the clean ones, from a classifier that was not trained on them.
    y, y_meta : ndarray of int
        Noisy labels, and true ones.
    folds : ndarray of shape (n_meta,)
        Fold of each clean row.
    init : ndarray of shape (c, c)
        T to start from.
    pairs : ndarray of shape (c, c)
        Counts of rows of which both labels are known.
    meta_weight : float
        How often a clean row counts.

    Returns
    -------
    ndarray of shape (n_meta,)
    """
    none = np.zeros_like(pairs)

    def fitted(rows: NDArray, start: NDArray | None = None) -> CalibratedLikelihood:
        likelihood = CalibratedLikelihood(proba, y, proba_meta[rows], y_meta[rows], pairs, meta_weight)
        likelihood.x = start
        likelihood.maximise(init, none, _MAX_ITER, 0.0)
        return likelihood

    whole, loss = fitted(np.arange(len(y_meta))).x, np.empty(len(y_meta))
    for fold in np.unique(folds):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        part = fitted(inside, whole)  # a short way from there
        assert part.x is not None
        calibrated = part.calibration(part.x)(proba_meta[outside])
        loss[outside] = -finite_log(calibrated[np.arange(len(outside)), y_meta[outside]])
    return loss
