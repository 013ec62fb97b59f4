"""The skorch net of a training stage, with rows, batches, callbacks, and states to resume from."""

from ._callbacks import CleanLoss, HeldOutPosteriors
from ._fit_state import FitState, SaveState
from ._global_state import GlobalState, draw_seed
from ._interrupts import raise_interrupt
from ._mlp import MLP
from ._net import NoisyLabelNet
from ._rows import Batch, BatchLoader, CleanBatches, DatasetRows, Rows, concatenate

__all__ = [
    "MLP",
    "Batch",
    "BatchLoader",
    "CleanBatches",
    "CleanLoss",
    "DatasetRows",
    "FitState",
    "GlobalState",
    "HeldOutPosteriors",
    "NoisyLabelNet",
    "Rows",
    "SaveState",
    "concatenate",
    "draw_seed",
    "raise_interrupt",
]
