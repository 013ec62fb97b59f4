"""scikit-learn classifiers: how each method trains, one recipe per file."""

from ._base import NoisyLabelClassifier
from ._cross_entropy import CrossEntropyClassifier
from ._em_transition import EMTransitionClassifier
from ._fine_tuning import FineTuningClassifier
from ._forward import ForwardClassifier
from ._gce import GCEClassifier
from ._glc import GLCClassifier
from ._meta_transition import MetaTransitionClassifier
from ._mw_net import MWNetClassifier
from ._s_model import SModelClassifier
from ._t_revision import TRevisionClassifier
from ._transition import TransitionClassifier

#: the methods, by the names that tables give them
METHODS: dict[str, type[NoisyLabelClassifier]] = {
    "cross-entropy": CrossEntropyClassifier,
    "fine-tuning": FineTuningClassifier,
    "GCE": GCEClassifier,
    "forward": ForwardClassifier,
    "GLC": GLCClassifier,
    "S-Model": SModelClassifier,
    "T-Revision": TRevisionClassifier,
    "MW-Net": MWNetClassifier,
    "meta-transition": MetaTransitionClassifier,
    "EM": EMTransitionClassifier,
}

__all__ = [
    "METHODS",
    "CrossEntropyClassifier",
    "EMTransitionClassifier",
    "FineTuningClassifier",
    "ForwardClassifier",
    "GCEClassifier",
    "GLCClassifier",
    "MWNetClassifier",
    "MetaTransitionClassifier",
    "NoisyLabelClassifier",
    "SModelClassifier",
    "TRevisionClassifier",
    "TransitionClassifier",
]
