"""scikit-learn classifiers for noisy labels that learn the noise transition matrix from a small clean set.

Everywhere in this library ``T[i, j] = P(noisy label = j | true label = i)``: rows sum to 1, rows and columns
follow the sorted class labels.

Public names are imported on first use, so that ``import noisytransition.transition`` needs numpy and scipy alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

# every public name, once
__all__ = [
    "ComparisonData",
    "CrossEntropyClassifier",
    "EMTransitionClassifier",
    "FineTuningClassifier",
    "ForwardClassifier",
    "GCEClassifier",
    "GLCClassifier",
    "LabelNoiseModel",
    "MWNetClassifier",
    "MetaTransitionClassifier",
    "SModelClassifier",
    "TRevisionClassifier",
    "TransitionClassifierCV",
    "TransitionMatrixDisplay",
    "TrustedKFold",
    "anchor_transition_matrix",
    "class_conditional_test",
    "compare",
    "confusion_transition_matrix",
    "count_transition_matrix",
    "data_parallel",
    "em_transition_matrix",
    "flip_labels",
    "gold_transition_matrix",
    "label_posterior",
    "load",
    "make_transition_scorer",
    "make_verified_scorer",
    "plot_transition_history",
    "sampling_limit",
    "show_versions",
    "transition_error",
]

# where the public names live; what needs the least comes first
_HOMES = ("_show_versions", "transition", "plotting", "model_selection", "methods", "nets", "datasets", "comparison")

if TYPE_CHECKING:
    from ._show_versions import *
    from .comparison import *
    from .datasets import *
    from .methods import *
    from .model_selection import *
    from .nets import *
    from .plotting import *
    from .transition import *
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        homes = (import_module(f"{__name__}.{home}") for home in _HOMES)
        return next(getattr(home, name) for home in homes if hasattr(home, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
