"""What skorch's own loop lacks: batches from memory, the look-ahead step, a default module, states to resume from."""

from ._batches import BatchLoader, DatasetRows, Rows, concatenate
from ._callbacks import CleanLoss, HeldOut, KeepBest, TransitionJudge, TransitionTrace, Truncation
from ._fit_state import FitState, SaveState
from ._joint import CleanBatches, JointNet
from ._look_ahead import LookAheadNet, MetaStep
from ._mlp import MLP
from ._net import NoisyLabelNet

__all__ = [
    "MLP",
    "BatchLoader",
    "CleanBatches",
    "CleanLoss",
    "DatasetRows",
    "FitState",
    "HeldOut",
    "JointNet",
    "KeepBest",
    "LookAheadNet",
    "MetaStep",
    "NoisyLabelNet",
    "Rows",
    "SaveState",
    "TransitionJudge",
    "TransitionTrace",
    "Truncation",
    "concatenate",
]
