"""What methods with a transition matrix share: where T starts, and what can be read off it."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..nets import NoisyLabelNet, Rows
from ..transition import (
    anchor_transition_matrix,
    check_transition_matrix,
    count_transition_matrix,
    floor_transition_matrix,
    gold_transition_matrix,
    label_posterior,
    symmetric_noise,
)
from ._callbacks import check_checkpoints

# noise rate of "diagonal", for want of any knowledge
_DIAGONAL_RATE = 0.2
_STARTS = ("gold", "anchor", "count", "diagonal", "identity")


class TransitionMixin:
    """Classifiers that hold T: a start for it, and predictions of noisy labels."""

    transition_init: Any
    transition_floor: float | None
    callbacks: Any
    transition_matrix_: NDArray[np.float64]
    classes_: NDArray

    def predict_noisy_proba(self, X: Any) -> NDArray:
        """Posterior of the noisy label, ``predict_proba(X) @ transition_matrix_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...) or torch Dataset

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self.predict_proba(X) @ self.transition_matrix_  # type: ignore[attr-defined]

    def label_posterior(self, X: Any, y_noisy: ArrayLike) -> NDArray:
        """P(true class | x, noisy label): what a row's label should have been.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...) or torch Dataset
        y_noisy : array-like of shape (n_samples,)
            Noisy labels, out of `classes_`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns as in `classes_`; rows sum to 1.

        Raises
        ------
        ValueError
            For a label that is not in `classes_`.
        """
        check_is_fitted(self, "transition_matrix_")
        y_noisy = np.asarray(y_noisy)
        if unknown := sorted(set(y_noisy.tolist()) - set(self.classes_.tolist())):
            raise ValueError(f"y_noisy has labels {unknown} that are not among classes_ {self.classes_.tolist()}.")
        codes = np.searchsorted(self.classes_, y_noisy)
        return label_posterior(self.predict_proba(X), codes, self.transition_matrix_)  # type: ignore[attr-defined]

    # ---- the start of T
    def _check_start(self) -> None:
        """Raise for a start, or for callbacks, that no data could make valid."""
        check_checkpoints(self.callbacks)
        if isinstance(self.transition_init, str):
            if self.transition_init not in _STARTS:
                raise ValueError(
                    f"transition_init={self.transition_init!r}; valid are {_STARTS} or an array of shape "
                    "(n_classes, n_classes) whose rows sum to 1."
                )
        else:
            check_transition_matrix(self.transition_init, name="transition_init")

    def _transition_start(
        self, noisy: Rows, meta: Rows | None, warm_up: Callable[[], NoisyLabelNet]
    ) -> NDArray[np.float64]:
        """T to start from, floored: at exactly the identity its meta-gradient is exactly zero."""
        c = len(self.classes_)
        if not isinstance(self.transition_init, str):
            T = check_transition_matrix(self.transition_init, n_classes=c, name="transition_init")
        elif self.transition_init == "diagonal":
            T = symmetric_noise(c, _DIAGONAL_RATE)
        elif self.transition_init == "identity":
            warnings.warn("transition_init='identity' hardly moves; try 'diagonal'.", UserWarning, stacklevel=5)
            T = np.eye(c)
        elif self.transition_init == "count":
            T = self._counted(meta)
        else:
            T = self._estimated(warm_up(), noisy, meta)
        return floor_transition_matrix(T, 1e-3 / c if self.transition_floor is None else self.transition_floor)

    def _counted(self, meta: Rows | None) -> NDArray[np.float64]:
        if meta is None or meta.y_noisy is None:
            raise ValueError("transition_init='count' needs the noisy labels of the clean rows: fit(y_meta_noisy=...).")
        # one pseudo-count per row of T keeps unseen flips possible
        return count_transition_matrix(meta.y, meta.y_noisy, len(self.classes_), smoothing=1 / len(self.classes_))

    def _estimated(self, warm_up: NoisyLabelNet, noisy: Rows, meta: Rows | None) -> NDArray[np.float64]:
        if self.transition_init == "anchor" or meta is None:
            return anchor_transition_matrix(warm_up.predict_proba(noisy))
        absent = np.setdiff1d(np.arange(len(self.classes_)), meta.y)
        if len(absent) == 0:
            return gold_transition_matrix(warm_up.predict_proba(meta), meta.y)
        warnings.warn(
            f"no clean row of class {self.classes_[absent].tolist()}: its row of T starts from an anchor point.",
            UserWarning,
            stacklevel=5,
        )
        anchors = anchor_transition_matrix(warm_up.predict_proba(noisy))
        return gold_transition_matrix(warm_up.predict_proba(meta), meta.y, missing=anchors)
