"""Where T starts: by name, what each start needs, and how it is made."""

import warnings
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..nets import NoisyLabelNet
from ..transition import (
    anchor_transition_matrix,
    confusion_transition_matrix,
    count_transition_matrix,
    gold_transition_matrix,
    shrunk_to_symmetric,
    symmetric_noise,
)
from ._run import Run
from ._sampling import classes_without_clean_rows

# noise rate of "diagonal": a choice, about that of labels from crowds and rules
_DIAGONAL_RATE = 0.2

WarmUp = Callable[[], NoisyLabelNet]


class Start:
    """A start of T: `refusal` says why it cannot be made, before any training; `matrix` makes it."""

    #: whether `matrix` trains a net by cross-entropy
    needs_warm_up = True

    def refusal(self, run: Run) -> str | None:
        """Say what data is missing, or None."""
        return None

    def matrix(self, run: Run, warm_up: WarmUp) -> NDArray[np.float64]:
        """Return T, of shape (n_classes, n_classes).

        Parameters
        ----------
        run : Run
        warm_up : callable
            Trains a net by cross-entropy on the noisy rows, a model of the noisy labels, and returns it.
        """
        raise NotImplementedError


class Anchor(Start):
    """The warm-up's posterior at each class's most typical rows; parameters as in `anchor_transition_matrix`."""

    def __init__(self, percentile: float | Literal["auto"] | None = None, n_anchors: int = 1) -> None:
        self.percentile, self.n_anchors = percentile, n_anchors

    def refusal(self, run: Run) -> str | None:
        """At least as many rows as anchors are needed."""
        if self.n_anchors <= len(run.noisy):
            return None
        return f"with n_anchors={self.n_anchors} for {len(run.noisy)} rows: give at most one anchor per row"

    def matrix(self, run: Run, warm_up: WarmUp) -> NDArray[np.float64]:
        """Look for the anchor points."""
        return self.of(warm_up(), run)

    def of(self, net: NoisyLabelNet, run: Run) -> NDArray[np.float64]:
        """T of a trained net."""
        proba = net.predict_proba(run.noisy)
        return anchor_transition_matrix(proba, percentile=self.percentile, n_anchors=self.n_anchors)


class Gold(Start):
    """Mean posterior of the clean rows of each class; a class without clean rows gets its anchor point.

    `shrunk`: towards symmetric noise, as far as the clean rows say too little of each class.
    """

    def __init__(self, anchor: Anchor, *, shrunk: bool = False) -> None:
        self.anchor, self.shrunk = anchor, shrunk

    def refusal(self, run: Run) -> str | None:
        """Clean rows are needed."""
        return None if run.has_clean else "needs clean data: fit(..., meta=(X_meta, y_meta)); or 'auto'"

    def matrix(self, run: Run, warm_up: WarmUp) -> NDArray[np.float64]:
        """Average the warm-up's posteriors."""
        clean = run.clean
        net, missing = warm_up(), None
        if absent := classes_without_clean_rows(run):
            warnings.warn(
                f"no clean row of class {absent}: its row of T starts from an anchor point.",
                UserWarning,
                stacklevel=6,
            )
            missing = self.anchor.of(net, run)
        proba = net.predict_proba(clean)
        T = gold_transition_matrix(proba, clean.label, missing=missing)
        return shrunk_to_symmetric(T, proba, clean.label) if self.shrunk else T


class Confusion(Start):
    """Noisy labels counted by the warm-up's prediction, or by its posterior."""

    def __init__(self, *, soft: bool) -> None:
        self.soft = soft

    def matrix(self, run: Run, warm_up: WarmUp) -> NDArray[np.float64]:
        """Count."""
        return confusion_transition_matrix(warm_up().predict_proba(run.noisy), run.noisy.label, soft=self.soft)


class Count(Start):
    """Counts of clean rows whose noisy labels are known."""

    needs_warm_up = False

    def refusal(self, run: Run) -> str | None:
        """Pairs of labels are needed."""
        known = run.has_clean and "noisy_label" in run.clean.columns
        return (
            None
            if known
            else "needs the noisy labels of the clean rows: fit(trusted=mask, y_meta=...), or y_meta_noisy"
        )

    def matrix(self, run: Run, warm_up: WarmUp) -> NDArray[np.float64]:
        """Count, with one pseudo-count for each row of T: unseen flips stay possible."""
        c, clean = len(run.classes), run.clean
        return count_transition_matrix(clean.label, clean.columns["noisy_label"], c, smoothing=1 / c)


class Diagonal(Start):
    """Symmetric noise of a fifth: 0.8 on the diagonal."""

    needs_warm_up = False

    def matrix(self, run: Run, warm_up: WarmUp) -> NDArray[np.float64]:
        """Return it."""
        return symmetric_noise(len(run.classes), _DIAGONAL_RATE)


class Identity(Start):
    """No noise at all, but for the floor."""

    needs_warm_up = False

    def matrix(self, run: Run, warm_up: WarmUp) -> NDArray[np.float64]:
        """Return it, with a warning."""
        warnings.warn("transition_init='identity' hardly moves; try 'diagonal'.", UserWarning, stacklevel=6)
        return np.eye(len(run.classes))


def starts(anchor: Anchor) -> dict[str, Start]:
    """All starts by name, with the anchor points that the method looks for."""
    return {
        "gold": Gold(anchor),
        "gold-shrunk": Gold(anchor, shrunk=True),
        "anchor": anchor,
        "confusion": Confusion(soft=False),
        "confusion-soft": Confusion(soft=True),
        "count": Count(),
        "diagonal": Diagonal(),
        "identity": Identity(),
    }
