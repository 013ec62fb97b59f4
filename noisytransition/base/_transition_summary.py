"""T in words and with error bars."""

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..transition._checks import check_count, check_rate
from ..transition._uncertainty import TransitionUncertainty


class TransitionSummaryMixin:
    """Methods of a classifier with T that say what T is, with error bars where `fit` has set them."""

    classes_: NDArray
    transition_matrix_: NDArray[np.float64]
    transition_uncertainty_: TransitionUncertainty

    @property
    def transition_std_(self) -> NDArray[np.float64]:
        """Standard errors of T's entries, of shape (n_classes, n_classes), where there are error bars."""
        try:
            return self._error_bars().std
        except ValueError as error:
            raise AttributeError(str(error)) from None

    def transition_interval(self, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds of T in the population that the rows come from; `EMTransitionClassifier` has them.

        They need probabilities of rows that the network was not trained on, and at most 50 classes
        (`noisytransition.transition.transition_uncertainty`).

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Probability that the population's entry is within its bounds.

        Returns
        -------
        low, high : ndarray of shape (n_classes, n_classes)
            Where `low` is 0, the flip may not happen at all, and `high` is an upper bound.
        """
        return self._error_bars().interval(level)

    def transition_summary(self, level: float = 0.9, *, least: float = 0.01, top: int = 15) -> str:
        """List the flips of T, with their error bars if there are any (see `transition_interval`).

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Level of the error bars.
        least : float, default=0.01
            Flips that are less probable are not listed one by one.
        top : int, default=15
            Number of flips that are listed one by one.

        Returns
        -------
        str
            A line for each flip, the most probable first, such as ``cat -> dog 0.38 [0.35, 0.42]``; without error bars
            ``cat -> dog 0.38``.
        """
        check_rate(least, "least")
        check_count(top, 0, "top")
        check_is_fitted(self, "transition_matrix_")
        T, c = self.transition_matrix_, len(self.classes_)
        bounds = self.transition_interval(level) if hasattr(self, "transition_uncertainty_") else None
        order = np.argsort(np.where(np.eye(c, dtype=bool), np.inf, -T), axis=None, kind="stable")[: c * (c - 1)]
        flips = [divmod(int(at), c) for at in order]
        n = min(int(sum(T[flip] >= least for flip in flips)), top)
        lines = [
            f"{self.classes_[i]} -> {self.classes_[j]} {T[i, j]:.2f}"
            + ("" if bounds is None else f" [{bounds[0][i, j]:.2f}, {bounds[1][i, j]:.2f}]")
            for i, j in flips[:n]
        ]
        if rest := flips[n:]:
            each = f"below {least:g}" if T[rest[0]] < least else f"{T[rest[0]]:.2f} or less"
            at_most = "" if bounds is None else f", at most {max(bounds[1][flip] for flip in rest):.2f}"
            lines.append(f"{len(rest)} other flips: each {each}{at_most}")
        return "\n".join(lines)

    def _error_bars(self) -> TransitionUncertainty:
        check_is_fitted(self, "transition_matrix_")
        if not hasattr(self, "transition_uncertainty_"):
            raise ValueError(
                f"no error bars of T of {type(self).__name__} with {len(self.classes_)} classes: they need "
                "EMTransitionClassifier and at most 50 classes."
            )
        return self.transition_uncertainty_
