"""Processes that train a net together stay in step: same weights, same order of batches, own random numbers."""

from typing import Any
from zlib import crc32

import numpy as np
import torch
from skorch.callbacks import Callback
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.data import Dataset, Subset

from .._processes import Processes
from ..updates import MetaGradient
from ._net import NoisyLabelNet

# methods of a net in which it is decided which rows go through the network
_DIVIDED = ("train_step", "train_step_single", "infer", "evaluation_step", "validation_step", "backward")


class InStep(Callback):
    """Check before each epoch that all processes draw the same batches, and give all the weights of the first.

    Rounding on a GPU depends on the order of additions, so that T could drift apart.
    """

    def __init__(self, processes: Processes) -> None:
        self.processes = processes

    def on_epoch_begin(
        self,
        net: NoisyLabelNet,
        dataset_train: Dataset | None = None,
        dataset_valid: Dataset | None = None,
        **kwargs: Any,
    ) -> None:
        """Check, copy the weights, and seed what each process draws for its part."""
        known = [torch.get_rng_state().numpy(), _rows_of(dataset_train), _rows_of(dataset_valid)]
        if not self.processes.agree(crc32(b"".join(part.tobytes() for part in known))):
            raise ValueError(
                "the processes are not in step: they hold out other rows, or have drawn other random numbers. Give "
                "train_split a random_state, and let callbacks draw the same from torch's generator in each process."
            )
        self.processes.from_first(net.plain_module_, net.criterion_)
        self.processes.begin_epoch()


def _rows_of(dataset: Dataset | None) -> np.ndarray:
    """Which rows a data set has."""
    if dataset is None:
        return np.arange(0)
    return np.asarray(dataset.indices if isinstance(dataset, Subset) else len(dataset), dtype=np.int64)  # type: ignore[arg-type]


def check_divisible(net: NoisyLabelNet) -> None:
    """Raise for a net that would not give the result of one process."""
    if own := [name for name in _DIVIDED if getattr(type(net), name) is not getattr(NoisyLabelNet, name)]:
        raise ValueError(
            f"{type(net).__name__} has {own} of its own, which may take each process's part of a batch for the whole: "
            "distributed=True is for methods whose net takes the steps of NoisyLabelNet. Leave it out."
        )
    looks_ahead = isinstance(net.update, MetaGradient)
    for name, module in net.plain_module_.train().named_modules():
        if _normalises_batches(module) and (looks_ahead or not isinstance(module, nn.SyncBatchNorm)):
            raise ValueError(
                f"{name!r} of the module is a {type(module).__name__}, by which each process would normalise its part "
                f"of a batch alone. {_NO_SYNC if looks_ahead else _SYNC}, or normalise rows (GroupNorm, LayerNorm)."
            )


_SYNC = "On GPUs give torch.nn.SyncBatchNorm.convert_sync_batchnorm(module)"
_NO_SYNC = "The look-ahead cannot differentiate SyncBatchNorm. Take a method without a meta-gradient"


def _normalises_batches(module: nn.Module) -> bool:
    """Whether a module in training mode uses the statistics of a batch."""
    return isinstance(module, _BatchNorm) and module.training
