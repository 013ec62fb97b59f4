"""Loss functions for noisy labels: torch criteria of logits, integer labels, and other columns that they name."""

from ._forward import ForwardLoss, GoldCorrectionLoss, PosteriorLoss, corrected_cross_entropy
from ._weighted import GeneralizedCrossEntropyLoss, ImportanceReweightedLoss, WeightedLoss

__all__ = [
    "ForwardLoss",
    "GeneralizedCrossEntropyLoss",
    "GoldCorrectionLoss",
    "ImportanceReweightedLoss",
    "PosteriorLoss",
    "WeightedLoss",
    "corrected_cross_entropy",
]
