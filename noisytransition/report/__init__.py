"""A report of the noise in labels, from a fitted classifier with T: facts, then words, then a page."""

from ._facts import Clean, Judged, make_facts
from ._report import NoiseReport
from ._samples import sample_facts

__all__ = ["Clean", "Judged", "NoiseReport", "make_facts", "sample_facts"]
