"""Comparison of methods with the same net, data and seeds."""

from ._compare import ComparisonData, compare
from ._table import Comparison

__all__ = ["Comparison", "ComparisonData", "compare"]
