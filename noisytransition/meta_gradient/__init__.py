"""One-step look-ahead of a network and the gradient of the clean loss after it."""

from ._methods import LookAhead, look_ahead

__all__ = ["LookAhead", "look_ahead"]
