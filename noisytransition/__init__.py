"""scikit-learn classifiers for noisy labels that estimate the noise transition matrix T, using verified samples.

Entry (i, j) of T is P(noisy = j | true = i), in sorted order of the classes.

Public names are imported on first use: ``import noisytransition.transition`` requires only numpy and scipy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.4.0"

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
    "VerifiedKFold",
    "anchor_transition_matrix",
    "class_conditional_test",
    "compare",
    "confusion_transition_matrix",
    "count_transition_matrix",
    "em_transition_matrix",
    "flip_labels",
    "gold_transition_matrix",
    "label_posterior",
    "load",
    "make_transition_scorer",
    "make_verified_scorer",
    "pair_noise",
    "sampling_limit",
    "symmetric_noise",
    "transition_error",
]

# modules of the public names, in ascending order of their requirements
_HOMES = "transition likelihood noise_model model_selection methods nets datasets comparison"

if TYPE_CHECKING:
    from .comparison import *
    from .datasets import *
    from .likelihood import *
    from .methods import *
    from .model_selection import *
    from .nets import *
    from .noise_model import *
    from .transition import *
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        homes = (import_module(f"{__name__}.{home}") for home in _HOMES.split())
        return next(getattr(home, name) for home in homes if hasattr(home, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
