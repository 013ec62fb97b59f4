"""The one-step look-ahead of a network and the exact gradient of the clean loss after it."""

from ._look_ahead import LookAhead, look_ahead
from ._routes import ROUTES, route_ladder

__all__ = ["ROUTES", "LookAhead", "look_ahead", "route_ladder"]
