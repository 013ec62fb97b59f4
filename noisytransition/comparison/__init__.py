"""Comparison of methods with the same net, data and seeds."""

from ._compare import METHODS, ComparisonData, compare
from ._table import Comparison

__all__ = ["METHODS", "Comparison", "ComparisonData", "compare"]
