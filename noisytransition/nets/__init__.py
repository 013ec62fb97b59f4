"""What skorch's own loop lacks: batches from memory, the look-ahead step, a default module, states to resume from."""

from ._batches import BatchLoader, DatasetRows, Rows
from ._callbacks import TransitionTrace
from ._fit_state import FitState
from ._look_ahead import LookAheadNet, MetaStep
from ._mlp import MLP
from ._net import NoisyLabelNet

__all__ = [
    "MLP",
    "BatchLoader",
    "DatasetRows",
    "FitState",
    "LookAheadNet",
    "MetaStep",
    "NoisyLabelNet",
    "Rows",
    "TransitionTrace",
]
