"""Data-parallel training by the processes of a `torch.distributed` group.

Copy this file beside your program. It imports private modules, so take it from the version of noisytransition that is
installed. `distributed_training.py` is a program that uses it.

All processes draw the same full batches. Each network computes the logits of its part of a batch, and all parts are
gathered, so that losses, updates, callbacks and the look-ahead are the same as in one process. Each process
backpropagates through its own part, and the gradients of the weights are summed over the processes.

`DistributedDataParallel` averages over equal parts and only sums gradients of its own forward pass. The look-ahead
needs gradients at other weights, and tangents.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from os import PathLike
from typing import Any
from unittest.mock import patch

import joblib
import numpy as np
import torch
import torch.distributed as dist
from skorch.callbacks import Callback
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn.modules.batchnorm import _BatchNorm

from noisytransition.base import _classifier
from noisytransition.fitting._run import FitContext, Named
from noisytransition.meta_gradient._forward_pass import called_with, each_part, first_part, logits_of, places_of
from noisytransition.nets import DatasetRows, NoisyLabelNet, Rows
from noisytransition.persistence import FitState
from noisytransition.updates import MetaGradient

_PLAIN = (bool, int, float, str, type(None))


@contextmanager
def data_parallel() -> Iterator[None]:
    """Train networks data-parallel, by all processes of the default `torch.distributed` group.

    In this context, each process calls `fit` with the same data and parameters (except ``device``) and computes its
    part of each batch. All processes get the same classifier, equal to a fit in one process up to rounding. See
    docs/long_fits.rst.

    Raises
    ------
    ValueError
        If there is no process group.

    Examples
    --------
    >>> import torch.distributed as dist
    >>> from data_parallel import data_parallel
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import CrossEntropyClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # set by torchrun
    >>> with data_parallel():
    ...     clf = CrossEntropyClassifier(max_epochs=2, random_state=0).fit(X, y)
    >>> dist.destroy_process_group()
    """
    if not (dist.is_available() and dist.is_initialized()):
        raise ValueError(
            "data_parallel() needs a process group of torch.distributed. Start the program by 'torchrun "
            "--nproc-per-node 2 program.py' and call torch.distributed.init_process_group() in it."
        )
    if dist.get_world_size() == 1:
        yield
        return
    # all processes train each fold
    with patch.object(_classifier, "FitContext", _Together), joblib.parallel_config("sequential"):
        yield


class _Together(FitContext):
    """Fit by all processes, with seed, initial weights, progress bar and saved state of the first process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        params = {k: v for k, v in self.params.items() if k not in ("device", "verbose") and isinstance(v, _PLAIN)}
        rows = [(len(rows), rows.columns, _ends(rows)) for rows in (self.noisy, self.clean)]
        if not _agree(joblib.hash([params, self.classes, rows, torch.get_default_dtype()])):
            raise ValueError(
                "the processes have different data or parameters. Pass all samples to each process, and set seeds of "
                "random functions, e.g. flip_labels(..., random_state=0)."
            )
        self.seed = _of_first(self.seed)
        if dist.get_rank():
            self.bar, self.params = None, self.params | {"verbose": 0}

    def save_in(self, path: str | PathLike, fingerprint: dict[str, str]) -> None:
        """Write files in the first process and read them in all, from a disk that all hosts share."""
        opened: Any = None
        if dist.get_rank() == 0:
            try:
                opened = _StateOfFirst(path, fingerprint | {"processes": str(dist.get_world_size())}, self.seed)
            except (ValueError, OSError) as error:
                opened = error  # raising here would leave the other processes waiting
        opened = _of_first(opened)
        if isinstance(opened, Exception):
            raise opened
        self.state, self.seed = opened, opened.seed

    def _callbacks(self, stage: str, users: Named, own: Named) -> Named:
        return super()._callbacks(stage, users, [*own, ("in_step", _InStep())])

    def _train(self, stage: str, net: NoisyLabelNet, rows: Rows) -> None:
        """Train a net from the initial weights of the first process."""
        saved = self.state and self.state.saved(stage)
        if self.state is not None and not _agree(saved and (len(saved["history"]), saved["complete"])):
            raise ValueError(
                f"the processes read different states of {stage!r} in {str(self.state.path)!r}. Use a folder on a disk "
                "that all hosts share, or omit state."
            )
        _check_normalisation(net)
        _copy_from_first(net)
        with _divided(net.plain_module_):
            super()._train(stage, net, rows)


class _StateOfFirst(FitState):
    """State of a fit that only the first process saves."""

    def save(self, *args: Any, **options: Any) -> None:
        if dist.get_rank() == 0:
            super().save(*args, **options)


class _InStep(Callback):
    """Check before each epoch that all processes draw the same batches, and copy the weights of the first process.

    Without the copy, T could diverge: rounding on a GPU depends on the order of additions.
    """

    def on_epoch_begin(self, net: NoisyLabelNet, **datasets: Any) -> None:
        rows = [getattr(dataset, "indices", None) for dataset in datasets.values()]
        if not _agree(joblib.hash([torch.get_rng_state().numpy(), *rows])):
            raise ValueError(
                "the processes hold out different samples or have drawn different random numbers. Set random_state of "
                "train_split, and let callbacks draw the same random numbers in each process."
            )
        _copy_from_first(net)


def _ends(rows: Rows) -> Any:
    """Inputs of the first and last sample, except for a Dataset."""
    if isinstance(rows, DatasetRows):
        return None
    ends = np.arange(len(rows))[:: max(len(rows) - 1, 1)]
    return rows.take(ends).X


def _agree(value: Any) -> bool:
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, value)
    return all(other == value for other in found)


def _of_first(value: Any) -> Any:
    values = [value]
    dist.broadcast_object_list(values, 0)
    return values[0]


def _copy_from_first(net: NoisyLabelNet) -> None:
    """Copy the state of a net's modules from the first process."""
    for part in (net.plain_module_, net.criterion_):
        tensors = {k: v.contiguous() for k, v in part.state_dict().items() if isinstance(v, Tensor)}
        for tensor in tensors.values():
            dist.broadcast(tensor, 0)
        part.load_state_dict(tensors, strict=False)


def _check_normalisation(net: NoisyLabelNet) -> None:
    """Raise for modules that would normalise each part of a batch separately."""
    looks_ahead = isinstance(net.update, MetaGradient)
    for name, module in net.plain_module_.train().named_modules():
        is_alone = looks_ahead or not isinstance(module, nn.SyncBatchNorm)
        if isinstance(module, _BatchNorm) and module.training and is_alone:
            raise ValueError(
                f"{name!r} of the module is a {type(module).__name__}, which would normalise the part of each process "
                "separately. Use GroupNorm or LayerNorm or, on GPUs and without a meta-gradient, convert it by "
                "torch.nn.SyncBatchNorm.convert_sync_batchnorm(module)."
            )


# ---------------------------------------------------------------------------- the network
@contextmanager
def _divided(module: nn.Module) -> Iterator[None]:
    """Replace the forward pass: compute the part of this process and gather the logits of all."""
    module.forward = partial(_forward, module)
    try:
        yield
    finally:
        del module.forward


@torch.compiler.disable
def _forward(module: nn.Module, *args: Tensor, **parts: Tensor) -> Tensor:
    x = parts or args
    n, rank, size = len(first_part(x)), dist.get_rank(), dist.get_world_size()
    own = slice(n * rank // size, n * (rank + 1) // size)
    # compute an unused row if the own part is empty
    rows = each_part(lambda part: part[own] if own.stop > own.start else part[:1], x)
    # without gradients, weights can have tangents
    weights = {k: w for k, w in module.named_parameters() if w.requires_grad or not torch.is_grad_enabled()}
    replicated = dict(zip(weights, _Replicated.apply(*weights.values()), strict=True)) if weights else {}
    divided = vars(module).pop("forward")
    try:
        with _own_draws(first_part(x), rank):
            logits = logits_of(partial(called_with, module, places_of(module, weights), replicated), rows)
    finally:
        module.forward = divided
    return _Gathered.apply(logits[: own.stop - own.start], own, n)


@contextmanager
def _own_draws(x: Tensor, rank: int) -> Iterator[None]:
    """Seed random draws of the own part (dropout) from the common generators, which stay equal in all processes."""
    devices = [x.device] if x.is_cuda else []
    with torch.random.fork_rng(devices):
        seed = int(torch.randint(2**62, ()))
        common = torch.get_rng_state()
        torch.manual_seed(seed + rank)
        before = [torch.get_rng_state(), *map(torch.cuda.get_rng_state, devices)]
        yield
        has_drawn = not all(map(torch.equal, before, [torch.get_rng_state(), *map(torch.cuda.get_rng_state, devices)]))
    if has_drawn:  # so that the next forward pass draws other numbers
        torch.set_rng_state(common)


class _Gathered(Function):
    """Gather the parts of all processes."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, own: slice, n: int) -> Tensor:
        ctx.own, ctx.n = own, n
        return _gathered(part, own, n)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _Part.apply(gradient, ctx.own), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *others: None) -> Tensor:
        return _gathered(tangent, ctx.own, ctx.n)


def _gathered(part: Tensor, own: slice, n: int) -> Tensor:
    whole = torch.zeros((n, *part.shape[1:]), dtype=part.dtype, device=part.device)
    whole[own] = part
    dist.all_reduce(whole)  # supports any sizes and backend, and is exact: adds zeros
    return whole


class _Part(Function):
    """Select the own part of a tensor that is equal in all processes."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, own: slice) -> Tensor:
        ctx.own, ctx.n = own, len(whole)
        return whole[own].clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _Gathered.apply(gradient, ctx.own, ctx.n), None


class _Replicated(Function):
    """Weights that are equal in all processes; their gradients are summed over the processes."""

    @staticmethod
    def forward(ctx: Any, *weights: Tensor) -> tuple[Tensor, ...]:
        return tuple(w.view_as(w) for w in weights)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return _Summed.apply(*gradients)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> tuple[Tensor | None, ...]:
        return tuple(None if t is None else t.view_as(t) for t in tangents)


class _Summed(Function):
    """Sum tensors over the processes; the gradient is equal in all processes."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        dist.all_reduce(flat)
        parts = flat.split([tensor.numel() for tensor in tensors])
        return tuple(part.view(t.shape).to(t.dtype) for part, t in zip(parts, tensors, strict=True))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return gradients
