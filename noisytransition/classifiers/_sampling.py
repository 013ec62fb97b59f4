"""How the clean rows were drawn: at random, or class by class."""

from typing import Any

import numpy as np

from ..transition._class_offset import seem_drawn_by_class
from ._data import DRAWS
from ._run import Run

#: valid values of `meta_sampling`
SAMPLINGS = ("auto", "random", "by_class")
#: what to say where neither the numbers nor the looks of the clean rows tell
UNKNOWN_SHARES = (
    "there are equally many clean rows of each class, and the classes of the noisy rows may have other shares: say "
    "meta_sampling='by_class' if the clean rows were drawn "
    "class by class, meta_sampling='random' if not"
)


class SamplingMixin:
    """Method that may allow for clean rows that were drawn class by class."""

    meta_sampling: str

    def _allows_for_drawing_by_class(self, run: Run) -> bool:
        return self.meta_sampling != "auto" or seem_drawn_by_class(run.clean.label, len(run.classes))

    def _check_shares(self: Any, run: Run) -> None:
        """Raise if shares are asked for that cannot be found."""
        if self.meta_sampling != "by_class":
            return
        if own := sorted(name for name in DRAWS if name in self._net_params):
            raise ValueError(f"meta_sampling='by_class' decides how clean rows are drawn, and so do {own}; give one.")
        if missing := classes_without_clean_rows(run):
            raise ValueError(f"meta_sampling='by_class' needs clean rows of each class; there are none of {missing}.")


def classes_without_clean_rows(run: Run) -> list[Any]:
    """Labels of which there is no clean row."""
    absent = np.setdiff1d(np.arange(len(run.classes)), run.clean.label)
    labels: list[Any] = run.classes[absent].tolist()
    return labels
