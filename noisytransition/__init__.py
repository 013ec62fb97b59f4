"""scikit-learn classifiers for noisy labels that learn the noise transition matrix from a small clean set.

Everywhere in this library ``T[i, j] = P(noisy label = j | true label = i)``: rows sum to 1, rows and columns
follow the sorted class labels.

Public names are imported on first use, so that ``import noisytransition.transition`` needs numpy and scipy alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# where each public name lives
_HOME = {
    "CrossEntropyClassifier": "classifiers",
    "EMTransitionClassifier": "classifiers",
    "FineTuningClassifier": "classifiers",
    "MetaTransitionClassifier": "classifiers",
    "ForwardClassifier": "classifiers",
    "GCEClassifier": "classifiers",
    "GLCClassifier": "classifiers",
    "MWNetClassifier": "classifiers",
    "SModelClassifier": "classifiers",
    "TRevisionClassifier": "classifiers",
    "Comparison": "comparison",
    "ComparisonData": "comparison",
    "compare": "comparison",
    "FitState": "nets",
    "TrustedKFold": "model_selection",
    "make_transition_scorer": "model_selection",
    "TransitionMatrixDisplay": "plotting",
    "plot_comparison": "plotting",
    "plot_transition_history": "plotting",
    "anchor_transition_matrix": "transition",
    "class_conditional_test": "transition",
    "confident_transition_matrix": "transition",
    "confusion_transition_matrix": "transition",
    "count_transition_matrix": "transition",
    "em_transition_matrix": "transition",
    "flip_labels": "transition",
    "gold_transition_matrix": "transition",
    "label_posterior": "transition",
    "sampling_limit": "transition",
    "transition_error": "transition",
}
__all__ = [
    "Comparison",
    "ComparisonData",
    "CrossEntropyClassifier",
    "EMTransitionClassifier",
    "FineTuningClassifier",
    "FitState",
    "ForwardClassifier",
    "GCEClassifier",
    "GLCClassifier",
    "MWNetClassifier",
    "MetaTransitionClassifier",
    "SModelClassifier",
    "TRevisionClassifier",
    "TransitionMatrixDisplay",
    "TrustedKFold",
    "anchor_transition_matrix",
    "class_conditional_test",
    "compare",
    "confident_transition_matrix",
    "confusion_transition_matrix",
    "count_transition_matrix",
    "em_transition_matrix",
    "flip_labels",
    "gold_transition_matrix",
    "label_posterior",
    "make_transition_scorer",
    "plot_comparison",
    "plot_transition_history",
    "sampling_limit",
    "transition_error",
]

if TYPE_CHECKING:
    from .classifiers import (
        CrossEntropyClassifier,
        EMTransitionClassifier,
        FineTuningClassifier,
        ForwardClassifier,
        GCEClassifier,
        GLCClassifier,
        MetaTransitionClassifier,
        MWNetClassifier,
        SModelClassifier,
        TRevisionClassifier,
    )
    from .comparison import Comparison, ComparisonData, compare
    from .model_selection import TrustedKFold, make_transition_scorer
    from .nets import FitState
    from .plotting import TransitionMatrixDisplay, plot_comparison, plot_transition_history
    from .transition import (
        anchor_transition_matrix,
        class_conditional_test,
        confident_transition_matrix,
        confusion_transition_matrix,
        count_transition_matrix,
        em_transition_matrix,
        flip_labels,
        gold_transition_matrix,
        label_posterior,
        sampling_limit,
        transition_error,
    )


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
