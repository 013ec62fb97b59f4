"""The one-step look-ahead of a network and the exact gradient of the clean loss after it."""

from ._factored import is_relu_mlp
from ._look_ahead import LookAhead, look_ahead
from ._methods import METHODS, candidate_methods

__all__ = ["METHODS", "LookAhead", "candidate_methods", "is_relu_mlp", "look_ahead"]
