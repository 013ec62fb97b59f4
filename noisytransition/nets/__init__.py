"""The skorch net of a training stage, with rows, batches, callbacks, and states to resume from."""

from ._callbacks import CleanLoss, HeldOutPosteriors
from ._checks import check_sized, check_start
from ._concatenated import concatenate
from ._fit_state import FitState, SaveState
from ._half import GradientScaling
from ._loader import BatchLoader
from ._mlp import MLP
from ._net import NoisyLabelNet
from ._proportional import ProportionalSampler
from ._rows import Batch, CleanBatches, DatasetRows, Rows, SparseRows, as_rows
from ._sparse import canonical

__all__ = [
    "MLP",
    "Batch",
    "BatchLoader",
    "CleanBatches",
    "CleanLoss",
    "DatasetRows",
    "FitState",
    "GradientScaling",
    "HeldOutPosteriors",
    "NoisyLabelNet",
    "ProportionalSampler",
    "Rows",
    "SaveState",
    "SparseRows",
    "as_rows",
    "canonical",
    "check_sized",
    "check_start",
    "concatenate",
]
