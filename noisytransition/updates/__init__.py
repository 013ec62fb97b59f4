"""Updates of the parameters of a loss: skorch callbacks that also run before and after each step."""

from ..nets import Update
from ._by_noisy_labels import ByGradient, PosteriorCounts, Truncation
from ._meta_gradient import MetaGradient

__all__ = ["ByGradient", "MetaGradient", "PosteriorCounts", "Truncation", "Update"]
