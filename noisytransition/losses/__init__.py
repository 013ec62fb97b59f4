"""What a noisy label costs: torch criteria that take logits and integer labels."""

from ._em import EMLoss
from ._forward import ForwardLoss, clean_posterior, corrected_cross_entropy
from ._generalized import GeneralizedCrossEntropyLoss
from ._gold import GoldCorrectionLoss
from ._importance import ImportanceReweightedLoss
from ._judged import JudgedLoss
from ._weighted import WeightedLoss

__all__ = [
    "EMLoss",
    "ForwardLoss",
    "GeneralizedCrossEntropyLoss",
    "GoldCorrectionLoss",
    "ImportanceReweightedLoss",
    "JudgedLoss",
    "WeightedLoss",
    "clean_posterior",
    "corrected_cross_entropy",
]
