"""Model of the label noise for probabilities of any classifier: T, posteriors, label issues, shares and plans."""

from ._model import LabelNoiseModel

__all__ = ["LabelNoiseModel"]
