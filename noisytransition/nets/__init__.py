"""The skorch net of a training stage, with its samples, batches and callbacks."""

from ._batches import CleanBatches
from ._mlp import MLP
from ._net import NoisyLabelNet, Update
from ._rows import DatasetRows, Rows, SparseRows

__all__ = ["MLP", "CleanBatches", "DatasetRows", "NoisyLabelNet", "Rows", "SparseRows", "Update"]
