"""Errors for losses, weights and probabilities that are not finite, and for weights without a size; what to do."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import get_total_norm

from ._net_state import uncompiled
from ._rows import Rows

if TYPE_CHECKING:
    from ._net import NoisyLabelNet

# training rows, of one batch, whose outputs are looked at after a training; a choice, not measured
_SAMPLE = 256


def check_sized(module: nn.Module) -> None:
    """Raise if a module has weights or buffers that get their size from a first batch."""
    if lazy := [name for name, value in [*module.named_parameters(), *module.named_buffers()] if is_lazy(value)]:
        raise ValueError(
            f"{type(module).__name__} has weights without a size before its first batch, in {lazy}: give layers their "
            "sizes (nn.Linear for nn.LazyLinear), or an instance that has been called with a batch."
        )


def check_start(net: "NoisyLabelNet") -> None:
    """Raise if an initialised net cannot be trained: weights without a size, not finite, or of a type that is wrong."""
    check_sized(net.plain_module_)
    if bad := _not_finite(net):
        raise ValueError(
            f"{type(net.plain_module_).__name__} has weights that are not finite before any training, in {bad}: give a "
            "module whose weights are numbers."
        )
    found = {weight.dtype for weight in net.plain_module_.parameters()} - {torch.float32}
    if net.precision != "float32" and found:
        raise ValueError(
            f"precision={net.precision!r} is for float32 modules; {type(net.plain_module_).__name__} has "
            f"{sorted(map(str, found))}. Make its weights float32, or leave precision out."
        )
    for group in net.optimizer_.param_groups:
        is_half = any(weight.dtype is torch.float16 for weight in group["params"])
        if is_half and "eps" in group and np.float16(group["eps"]) == 0:
            raise ValueError(
                f"{type(net.optimizer_).__name__} cannot train weights of float16: its eps={group['eps']} is 0 there. "
                "Take SGD, a module in bfloat16 or float32, or float32 with torch.autocast inside its forward."
            )


def check_losses(net: "NoisyLabelNet") -> None:
    """Raise if a loss of the epoch's training batches is not finite."""
    losses = [batch["train_loss"] for batch in net.history[-1]["batches"] if "train_loss" in batch]
    if bad := [loss for loss in losses if not np.isfinite(loss)]:
        raise ValueError(f"the training loss is {bad[0]} in epoch {len(net.history)}: {_advice(net)}")


def check_weights(net: "NoisyLabelNet") -> None:
    """Raise if a training has made weights of the module, or parameters of the loss, that are not finite."""
    if bad := _not_finite(net):
        raise ValueError(f"weights are not finite after epoch {len(net.history)}, in {bad}: {_advice(net)}")
    if bad := [name for name, value in _of_loss(net.criterion_) if _has_nan(value)]:
        raise ValueError(
            f"{type(net.criterion_).__name__} has NaN in {bad} after epoch {len(net.history)}: lower the step size of "
            "its parameters."
        )


def check_outputs(net: "NoisyLabelNet", rows: Rows) -> None:
    """Raise if a trained net overflows for rows that it was trained on, though its weights are finite."""
    size = min(len(rows), _SAMPLE if net.batch_size < 0 else min(net.batch_size, _SAMPLE))  # in one forward pass
    sample = rows.take(range(size))
    if not all(bool(torch.softmax(logits, 1).isfinite().all()) for logits, _ in net.evaluated(sample)):
        raise ValueError(
            f"the module's outputs are not finite for rows it was trained on, after epoch {len(net.history)}: "
            f"{_advice(net)}"
        )


def check_proba(net: "NoisyLabelNet", proba: NDArray) -> None:
    """Raise if a probability is not finite."""
    if np.isfinite(proba).all():
        return
    if bad := _not_finite(net):
        raise ValueError(f"the module cannot predict: its weights are not finite, in {bad}. {_advice(net)}")
    rows = np.flatnonzero(~np.isfinite(proba).all(axis=tuple(range(1, proba.ndim))))
    raise ValueError(
        f"{type(net.plain_module_).__name__} gives outputs that are not finite for {len(rows)} of {len(proba)} rows, "
        f"the first at {rows[0]}: these inputs are too large for its type {_dtype(net.plain_module_)}. Scale X as it "
        "was scaled for fit."
    )


def _advice(net: "NoisyLabelNet") -> str:
    return f"the step lr={net.lr} is too large for these inputs. Scale X (StandardScaler; images to 0..1) or lower lr."


def _not_finite(net: "NoisyLabelNet") -> list[str]:
    """Names of weights that are trained and are not finite; a GPU is waited for once, if all are finite."""
    weights = [(name, weight.detach()) for name, weight in _trained(net) if weight.numel()]
    if bool(torch.isfinite(get_total_norm([weight for _, weight in weights], np.inf))):
        return []
    return [name for name, weight in weights if not bool(torch.isfinite(weight).all())]


def _trained(net: "NoisyLabelNet") -> Iterator[tuple[str, Tensor]]:
    """Weights that are trained, of all modules; what is fixed may be infinite on purpose, such as a mask."""
    for part in net._modules:
        weights = uncompiled(getattr(net, f"{part}_")).named_parameters()
        yield from ((name, weight) for name, weight in weights if weight.requires_grad)


def _of_loss(loss: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers of a loss; its state_dict may be a copy."""
    yield from loss.named_parameters()
    yield from loss.named_buffers()


def _has_nan(value: Tensor) -> bool:
    """Whether an entry is NaN; the largest of them is, if one is."""
    largest = value.amax() if value.numel() and value.is_floating_point() else value
    return bool(torch.isnan(largest).any())


def _dtype(module: nn.Module) -> torch.dtype:
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)
