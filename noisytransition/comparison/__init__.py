"""Methods side by side: the same net, data and seeds for all, in one table."""

from ._compare import METHODS, ComparisonData, compare
from ._table import Comparison

__all__ = ["METHODS", "Comparison", "ComparisonData", "compare"]
