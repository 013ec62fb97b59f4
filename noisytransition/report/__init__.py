"""A report of the noise in labels, from a fitted classifier with T: facts, then words, then a page."""

from ._report import NoiseReport

__all__ = ["NoiseReport"]
