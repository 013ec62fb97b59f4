"""Noise reports of classifiers that estimate T: facts, words and an HTML page."""

from ._report import NoiseReport

__all__ = ["NoiseReport"]
