"""Updates of the parameters of a loss: skorch callbacks that also run before and after each step."""

from ..nets import Update
from ._by_gradient import ByGradient
from ._meta_gradient import MetaGradient
from ._posterior_counts import PosteriorCounts
from ._truncation import Truncation

__all__ = ["ByGradient", "MetaGradient", "PosteriorCounts", "Truncation", "Update"]
