"""The skorch net of a training stage, with its samples, batches and callbacks."""

from ._net import MLP, NoisyLabelNet, Update
from ._rows import CleanBatches, DatasetRows, Rows

__all__ = ["MLP", "CleanBatches", "DatasetRows", "NoisyLabelNet", "Rows", "Update"]
