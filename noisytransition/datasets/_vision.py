"""torchvision, imported when it is needed."""

from importlib import import_module
from typing import Any


def torchvision(module: str) -> Any:
    """Import a module of torchvision; raise with the command that installs it."""
    try:
        return import_module(f"torchvision.{module}")
    except ImportError as error:
        raise ImportError(
            f"images are read by torchvision, which could not be imported ({error}): pip install "
            "'noisytransition[vision]'"
        ) from error
