"""Likelihood of T and of a calibration, given probabilities and labels: maximum, prior, error bars. numpy and scipy."""

from ._calibration import EMResult
from ._em import em_transition_matrix
from ._uncertainty import transition_uncertainty

__all__ = ["EMResult", "em_transition_matrix", "transition_uncertainty"]
