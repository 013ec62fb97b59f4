"""Loss functions for noisy labels: torch criteria of logits, integer labels, and other columns that they name."""

from ._forward import ForwardLoss, corrected_cross_entropy
from ._generalized import GeneralizedCrossEntropyLoss
from ._gold import GoldCorrectionLoss
from ._importance import ImportanceReweightedLoss
from ._weighted import WeightedLoss

__all__ = [
    "ForwardLoss",
    "GeneralizedCrossEntropyLoss",
    "GoldCorrectionLoss",
    "ImportanceReweightedLoss",
    "WeightedLoss",
    "corrected_cross_entropy",
]
