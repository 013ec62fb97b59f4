"""Checks that a parameter can be what it is, before any training."""

from numbers import Integral, Real
from typing import Any

import torch
from sklearn.utils import check_scalar
from torch import nn

from ..nets import NoisyLabelNet, Rows

_SUM_TO_ONE = 1e-4


def check_number(estimator: Any, name: str, *, low: float = 0.0, high: float | None = None) -> None:
    """Raise if a parameter is no finite number of at least `low` (and at most `high`)."""
    check_scalar(getattr(estimator, name), name, Real, min_val=low, max_val=float("inf") if high is None else high)
    if getattr(estimator, name) == float("inf"):
        raise ValueError(f"{name} == inf, must be finite.")


def check_count(estimator: Any, name: str, *, low: int = 0) -> None:
    """Raise if a parameter is no integer of at least `low`."""
    check_scalar(getattr(estimator, name), name, Integral, min_val=low)


def check_batch_size(estimator: Any, name: str) -> None:
    """Raise if a parameter is no integer of at least 1, nor -1 (all rows), nor None."""
    if getattr(estimator, name) not in (None, -1):
        check_count(estimator, name, low=1)


def check_fraction(estimator: Any, name: str) -> None:
    """Raise if a parameter is no number of at least 0 and below 1."""
    check_scalar(getattr(estimator, name), name, Real, min_val=0, max_val=1, include_boundaries="left")
    if getattr(estimator, name) != getattr(estimator, name):
        raise ValueError(f"{name} == nan, must be a number.")


def check_output(net: NoisyLabelNet, data: Rows, classes: Any) -> None:
    """Run two rows through an initialised module and raise if it does not give one logit per class."""
    module, x = net.plain_module_.eval(), data.batch([0, len(data) - 1])[0]
    try:
        with torch.no_grad():
            x = net.prepare(x)
            logits = module(x)
    except Exception as error:
        raise ValueError(
            f"{type(module).__name__} cannot take a batch of shape {tuple(x.shape)} and type {x.dtype}: {error}. "
            "Check the module's input size; dtype= sets the type that batches are cast to."
        ) from error
    finally:
        module.train()
    if not isinstance(logits, torch.Tensor) or logits.ndim != 2 or logits.shape[1] != len(classes):
        shape = tuple(getattr(logits, "shape", ())) or type(logits).__name__
        raise ValueError(
            f"{type(module).__name__} gives an output of shape {shape} for {len(x)} rows, but there are "
            f"{len(classes)} classes {list(classes)}: it must give one logit per class, {(len(x), len(classes))}."
        )
    _check_logits(logits, module)


def _check_logits(logits: torch.Tensor, module: nn.Module) -> None:
    sums = logits.double().sum(1)
    if bool((logits >= 0).all()) and bool(((sums - 1).abs() < _SUM_TO_ONE).all()):
        raise ValueError(
            f"{type(module).__name__} gives probabilities (no output is negative, rows sum to 1): it must give "
            "logits. Remove its last softmax; predict_proba applies one."
        )
