"""Noise reports of noise models: facts, words and an HTML page."""

from ._make import noise_report
from ._report import NoiseReport

__all__ = ["NoiseReport", "noise_report"]
