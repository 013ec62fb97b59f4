"""scikit-learn classifiers: how each method trains, one recipe per file."""

from ._base import NoisyLabelClassifier as NoisyLabelClassifier
from ._cross_entropy import CrossEntropyClassifier as CrossEntropyClassifier
from ._data_parallel import data_parallel as data_parallel
from ._em_transition import EMTransitionClassifier as EMTransitionClassifier
from ._fine_tuning import FineTuningClassifier as FineTuningClassifier
from ._forward import ForwardClassifier as ForwardClassifier
from ._gce import GCEClassifier as GCEClassifier
from ._glc import GLCClassifier as GLCClassifier
from ._meta_transition import MetaTransitionClassifier as MetaTransitionClassifier
from ._mw_net import MWNetClassifier as MWNetClassifier
from ._s_model import SModelClassifier as SModelClassifier
from ._saving import load as load
from ._t_revision import TRevisionClassifier as TRevisionClassifier
from ._transition import TransitionClassifier as TransitionClassifier

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
