"""scikit-learn classifiers: how each method trains, one recipe per file."""

from ._base import NoisyLabelClassifier
from ._cross_entropy import CrossEntropyClassifier
from ._fine_tuning import FineTuningClassifier
from ._meta_transition import MetaTransitionClassifier

__all__ = [
    "CrossEntropyClassifier",
    "FineTuningClassifier",
    "MetaTransitionClassifier",
    "NoisyLabelClassifier",
]
