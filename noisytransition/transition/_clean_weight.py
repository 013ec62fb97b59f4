"""How much a clean row counts in the calibration behind T, by cross-validation on the clean rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._calibration import CalibratedLikelihood
from ._class_offset import tilted
from ._em import MAX_ITER, off_zero
from ._estimation import finite_log


class HeldOutLoss:
    """Loss of each clean row at the map that all noisy rows and the clean rows of the other folds make most likely.

    Each map is sought as in `em_transition_matrix`, from `init` and in as many steps. With many classes these end
    before the maximum; with few, where one T is not true for all rows, there are several maxima. A start from the map
    of another weight, or of all clean rows, would show in the result.

    Parameters
    ----------
    likelihood : CalibratedLikelihood
        Of all rows, not maximised; its weight of a clean row is not used.
    init : ndarray of shape (c, c)
        T to start from.
    proba_meta, y_meta : ndarray of shape (n_meta, c), and of int, shape (n_meta,)
        The clean rows.
    folds : ndarray of shape (n_meta,)
        Fold of each clean row.
    """

    def __init__(
        self, likelihood: CalibratedLikelihood, init: NDArray, proba_meta: NDArray, y_meta: NDArray, folds: NDArray
    ) -> None:
        self.init, self.proba, self.y = off_zero(init), proba_meta, y_meta
        self.offset = likelihood.meta_offset
        self.parts = [(likelihood.without(folds == fold), np.flatnonzero(folds == fold)) for fold in np.unique(folds)]

    def __call__(self, meta_weight: float) -> NDArray[np.float64]:
        """Loss of each clean row, if the others count `meta_weight` times.

        Parameters
        ----------
        meta_weight : float

        Returns
        -------
        ndarray of shape (n_meta,)
        """
        loss = np.empty(len(self.y))
        for likelihood, outside in self.parts:
            likelihood.meta_weight, likelihood.x = meta_weight, None
            found: Any = likelihood.maximise(self.init, np.zeros_like(self.init), MAX_ITER, 0.0)
            calibrated = tilted(found.calibration(self.proba[outside]), self.offset)
            loss[outside] = -finite_log(calibrated[np.arange(len(outside)), self.y[outside]])
        return loss
