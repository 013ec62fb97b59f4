"""Scikit-learn classifiers, one method per file."""

from ..base._classifier import NoisyLabelClassifier as NoisyLabelClassifier
from ..base._noise_model_mixin import NoiseModelMixin as NoiseModelMixin
from ..fitting._starts import keep_transition as keep_transition
from ..fitting._starts import start_of_transition as start_of_transition
from ._cross_entropy import CrossEntropyClassifier as CrossEntropyClassifier
from ._em_transition import EMTransitionClassifier as EMTransitionClassifier
from ._fine_tuning import FineTuningClassifier as FineTuningClassifier
from ._forward import ForwardClassifier as ForwardClassifier
from ._gce import GCEClassifier as GCEClassifier
from ._glc import GLCClassifier as GLCClassifier
from ._load import load as load
from ._meta_transition import MetaTransitionClassifier as MetaTransitionClassifier
from ._mw_net import MWNetClassifier as MWNetClassifier
from ._s_model import SModelClassifier as SModelClassifier
from ._t_revision import TRevisionClassifier as TRevisionClassifier
from ._transition_classifier_cv import TransitionClassifierCV as TransitionClassifierCV

#: classifier of each method, by its name in result tables
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
