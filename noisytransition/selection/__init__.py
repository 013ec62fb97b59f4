"""What of a training is kept: the last epoch, the best one by a score, or a T that held-out labels speak for."""

from ._best_epoch import BestEpoch
from ._held_out_likelihood import HeldOutLikelihood
from ._selection import Last, Selection

__all__ = ["BestEpoch", "HeldOutLikelihood", "Last", "Selection"]
