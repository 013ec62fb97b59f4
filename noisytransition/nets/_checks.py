"""Errors for modules that cannot be trained, and for losses, weights and probabilities that are not finite."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..meta_gradient._forward_pass import each_part, logits_of
from ._rows import Rows

if TYPE_CHECKING:
    from ._net import NoisyLabelNet

# Tolerance for sums of softmax outputs, far above float32 rounding; a choice, not measured
_SUM_TO_ONE = 1e-4


def uncompiled(part: Any) -> Any:
    """Module without the wrapper of `torch.compile`; other objects are unchanged."""
    return getattr(part, "_orig_mod", part)


# ---------------------------------------------------------------------------- before a training
def check_sized(module: nn.Module) -> None:
    """Raise if a module has lazy weights or buffers."""
    if lazy := [name for name, value in [*module.named_parameters(), *module.named_buffers()] if is_lazy(value)]:
        raise ValueError(
            f"{type(module).__name__} has lazy weights {lazy}. Use layers with a size (nn.Linear for nn.LazyLinear), "
            "or pass an instance that was called with a batch."
        )


def check_start(net: "NoisyLabelNet", rows: Rows, classes: NDArray) -> None:
    """Raise if an initialised net has invalid weights, or invalid outputs for two samples."""
    module = net.plain_module_
    check_sized(module)
    if bad := _not_finite(net):
        raise ValueError(
            f"{type(module).__name__} has initial weights that are not finite: {bad}. Check its initialisation."
        )
    _check_logits(_logits_of_two(net, rows), module, 2 if len(rows) > 1 else 1, classes)


def _logits_of_two(net: "NoisyLabelNet", rows: Rows) -> object:
    """Output of a module for the first and last sample."""
    try:
        x = rows.take(sorted({0, len(rows) - 1})).inputs()
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"samples cannot be collated: {error}. Pass samples of one shape.") from error
    module = net.plain_module_.eval()
    try:
        with torch.no_grad():
            x = net.prepare(x)
            return logits_of(module, x)
    except Exception as error:
        found = each_part(lambda part: f"shape {tuple(part.shape)} and type {part.dtype}", x)
        raise ValueError(
            f"{type(module).__name__} does not accept a batch of {found}: {error}. "
            "Check the module's inputs, or cast batches by dtype=."
        ) from error
    finally:
        module.train()


def _check_logits(logits: object, module: nn.Module, n: int, classes: NDArray) -> None:
    name = type(module).__name__
    if not isinstance(logits, Tensor) or logits.shape != (n, len(classes)):
        shape = tuple(getattr(logits, "shape", ())) or type(logits).__name__
        listed = f"{classes[:10].tolist()}{' ...' if len(classes) > 10 else ''}"
        raise ValueError(
            f"{name} returns shape {shape} for {n} samples. With {len(classes)} classes {listed}, it must "
            f"return one logit per class, shape {(n, len(classes))}."
        )
    if not logits.is_floating_point():
        raise ValueError(f"{name} returns {logits.dtype}; it must return floating-point logits.")
    if bool(torch.isnan(logits).any()) or bool(torch.isposinf(logits).any()):
        raise ValueError(
            f"{name} returns NaN or infinite logits before training. Scale X (StandardScaler; images to 0..1), and "
            "check the module."
        )
    if bool((logits >= 0).all()) and bool(((logits.double().sum(1) - 1).abs() < _SUM_TO_ONE).all()):
        raise ValueError(
            f"{name} returns probabilities (non-negative, with sum 1), but must return logits. Remove its last "
            "softmax; predict_proba applies one."
        )


# ---------------------------------------------------------------------------- in a training and after it
class DivergenceError(ValueError):
    """Training resulted in a loss, weight or probability that is not finite."""


def check_epoch(net: "NoisyLabelNet") -> None:
    """Raise if an epoch has no training batch, or a training loss that is not finite."""
    if not net.history[-1, "train_batch_count"]:
        raise ValueError(
            "an epoch has no batch: iterator_train__drop_last=True with fewer samples than batch_size="
            f"{net.batch_size}. Lower batch_size, or omit drop_last."
        )
    losses = [batch["train_loss"] for batch in net.history[-1]["batches"] if "train_loss" in batch]
    if bad := [loss for loss in losses if not np.isfinite(loss)]:
        raise DivergenceError(f"the training loss is {bad[0]} in epoch {len(net.history)}: {_advice(net)}")


def check_weights(net: "NoisyLabelNet") -> None:
    """Raise if trained weights, or parameters of the loss, are not finite."""
    if bad := _not_finite(net):
        raise DivergenceError(f"weights are not finite after epoch {len(net.history)}, in {bad}: {_advice(net)}")
    if bad := [name for name, w in net.criterion_.named_parameters() if w.sum().isnan() and w.isnan().any()]:
        raise DivergenceError(
            f"{type(net.criterion_).__name__} has NaN in {bad} after epoch {len(net.history)}. Lower the learning rate "
            "of its parameters."
        )


def check_proba(net: "NoisyLabelNet", proba: NDArray) -> None:
    """Raise if a probability is not finite."""
    if np.isfinite(proba).all():
        return
    rows = np.flatnonzero(~np.isfinite(proba).all(axis=tuple(range(1, proba.ndim))))
    raise DivergenceError(
        f"{type(net.plain_module_).__name__} returns outputs that are not finite for {len(rows)} of {len(proba)} "
        f"samples, the first at position {rows[0]}. Scale X as for fit."
    )


def _advice(net: "NoisyLabelNet") -> str:
    return f"lr={net.lr} is too large for these inputs. Scale X (StandardScaler; images to 0..1) or lower lr."


def _not_finite(net: "NoisyLabelNet") -> list[str]:
    """Names of trained weights that are not finite; others can be infinite on purpose, such as a mask."""
    parts = [uncompiled(getattr(net, f"{name}_")) for name in net._modules]
    named = [named for part in parts for named in part.named_parameters()]
    return [name for name, weight in named if weight.requires_grad and not bool(torch.isfinite(weight).all())]
