"""Loss functions for noisy labels: torch criteria of logits, integer labels, and other columns that they name."""

from ._forward import (
    ForwardLoss,
    clean_posterior,
    corrected_cross_entropy,
    log_likelihood_by_columns,
    noisy_log_likelihood,
)
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
    "clean_posterior",
    "corrected_cross_entropy",
    "log_likelihood_by_columns",
    "noisy_log_likelihood",
]
