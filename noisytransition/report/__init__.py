"""Noise reports of noise models: facts, words and an HTML page."""

from ._report import NoiseReport, noise_report

__all__ = ["NoiseReport", "noise_report"]
