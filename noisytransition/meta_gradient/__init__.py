"""One-step look-ahead of a network and the gradient of the clean loss after it."""

from ._look_ahead import LookAhead, look_ahead

__all__ = ["LookAhead", "look_ahead"]
