"""T in words and with error bars."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..transition import MOST_CLASSES, MOST_CLASSES_OF_PAIRS, TransitionUncertainty, check_count, check_rate

# a flip from one class to another, by their indices
Flip = tuple[int, int]
# bounds of T's entries
Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]


class TransitionSummaryMixin:
    """Methods of a classifier with T that say what T is, with error bars where `fit` has set them."""

    classes_: NDArray
    transition_matrix_: NDArray[np.float64]
    transition_uncertainty_: TransitionUncertainty

    @property
    def transition_frame_(self) -> Any:
        """`transition_matrix_` as a pandas DataFrame: a row for each true class, a column for each noisy label.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ImportError
            If pandas is not installed.
        """
        check_is_fitted(self, "transition_matrix_")
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("transition_frame_ needs pandas: pip install pandas.") from error
        true, noisy = (pd.Index(self.classes_, name=name) for name in ("true", "noisy"))
        return pd.DataFrame(self.transition_matrix_, index=true, columns=noisy, copy=True)

    @property
    def transition_std_(self) -> NDArray[np.float64]:
        """Standard errors of T's entries, of shape (n_classes, n_classes), where there are error bars.

        Raises
        ------
        AttributeError
            Before `fit`, and without error bars (see `transition_interval`).
        """
        try:
            return self._error_bars().std
        except ValueError as error:
            raise AttributeError(str(error)) from None

    def transition_interval(self, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds of T in the population that the rows come from, in `EMTransitionClassifier`.

        They include the chance in the labels and the uncertainty of the classifier that the clean rows show
        (`noisytransition.transition.transition_uncertainty`). That needs probabilities of rows that the network was
        not trained on, which other methods do not have.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Probability that the population's entry is within its bounds.

        Returns
        -------
        low, high : ndarray of shape (n_classes, n_classes)
            Where `low` is 0, the flip may not happen at all, and `high` is an upper bound.

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1, or if there are no error bars: in another method, for more than
            1,000 classes, and for more than 50 where verified pairs contradict one T.
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

        Raises
        ------
        ValueError
            If `least` is no probability, `top` no number of flips, or `level` not between 0 and 1.
        """
        check_rate(least, "least")
        check_count(top, 0, "top")
        check_is_fitted(self, "transition_matrix_")
        bounds = self.transition_interval(level) if hasattr(self, "transition_uncertainty_") else None
        T = self.transition_matrix_
        flips: list[Flip] = sorted(((i, j) for i, j in np.argwhere(~np.eye(len(T), dtype=bool))), key=lambda f: -T[f])
        n = min(sum(T[f] >= least for f in flips), top)
        lines = [self._line(flip, bounds) for flip in flips[:n]]
        return "\n".join([*lines, self._rest(flips[n:], least, bounds)] if flips[n:] else lines)

    def _line(self, flip: Flip, bounds: Bounds | None) -> str:
        """One flip, with its error bars."""
        true, noisy = (self.classes_[k] for k in flip)
        line = f"{true} -> {noisy} {self.transition_matrix_[flip]:.2f}"
        return line if bounds is None else f"{line} [{bounds[0][flip]:.2f}, {bounds[1][flip]:.2f}]"

    def _rest(self, flips: list[Flip], least: float, bounds: Bounds | None) -> str:
        """The flips that are not listed, in one line."""
        largest = self.transition_matrix_[flips[0]]
        each = f"below {least:g}" if largest < least else f"{largest:.2f} or less"
        at_most = "" if bounds is None else f", at most {max(bounds[1][f] for f in flips):.2f}"
        return f"{len(flips)} other flips: each {each}{at_most}"

    def _error_bars(self) -> TransitionUncertainty:
        check_is_fitted(self, "transition_matrix_")
        if not hasattr(self, "transition_uncertainty_"):
            raise ValueError(
                f"no error bars of T of {type(self).__name__} with {len(self.classes_)} classes: they need "
                "probabilities of rows that the network was not trained on, which EMTransitionClassifier has, and at "
                f"most {MOST_CLASSES} classes, or {MOST_CLASSES_OF_PAIRS} where "
                "verified pairs contradict one T."
            )
        return self.transition_uncertainty_
