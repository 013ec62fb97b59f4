"""What is kept of a training: the last epoch, the best epoch by a score, or the T of the best held-out likelihood."""

from ._best_epoch import BestEpoch
from ._held_out_likelihood import HeldOutLikelihood
from ._selection import Last, Selection

__all__ = ["BestEpoch", "HeldOutLikelihood", "Last", "Selection"]
