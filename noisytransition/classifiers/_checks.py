"""Checks of parameters, callbacks and modules, made before any training."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import torch
from numpy.typing import NDArray
from sklearn.utils import check_scalar
from skorch.callbacks import Checkpoint
from torch import nn

from ..nets import NoisyLabelNet, Rows
from ..transition import check_count
from ._parameters import Callbacks

# tolerance for the sum of a row of softmax outputs, far above the rounding of float32; a choice, not measured
_SUM_TO_ONE = 1e-4


def check_number(estimator: object, name: str, *, low: float = 0.0, high: float | None = None) -> None:
    """Raise if a parameter is no finite number of at least `low` (and at most `high`)."""
    check_scalar(getattr(estimator, name), name, Real, min_val=low, max_val=float("inf") if high is None else high)
    if getattr(estimator, name) == float("inf"):
        raise ValueError(f"{name} == inf, must be finite.")


def check_batch_size(estimator: object, name: str) -> None:
    """Raise if a parameter is no integer of at least 1, nor -1 (all rows), nor None."""
    size = getattr(estimator, name)
    if size is not None and size != -1:
        check_count(size, 1, name)


def check_fraction(estimator: object, name: str) -> None:
    """Raise if a parameter is no number of at least 0 and below 1."""
    check_scalar(getattr(estimator, name), name, Real, min_val=0, max_val=1, include_boundaries="left")
    if getattr(estimator, name) != getattr(estimator, name):
        raise ValueError(f"{name} == nan, must be a number.")


# ---------------------------------------------------------------------------- callbacks
def named_callbacks(callbacks: Sequence | None) -> list[tuple[str | None, Any]]:
    """The user's callbacks as pairs of name and callback; the name is None where none is given."""
    return [tuple(cb) if isinstance(cb, tuple | list) else (None, cb) for cb in callbacks or ()]


def check_callbacks(callbacks: Callbacks, net_params: dict[str, Any]) -> None:
    """Raise if `callbacks` is a string, or if ``callbacks__...`` names a callback that does not exist."""
    if isinstance(callbacks, str):
        raise ValueError(f"callbacks={callbacks!r}: give a list of callbacks, or None.")
    asked = [name for name in net_params if name.startswith("callbacks__")]
    known = set(NoisyLabelNet(nn.Identity, callbacks=callbacks)._callbacks_grouped_by_name()[0]) if asked else set()
    for name in asked:
        if name.split("__")[1] not in known:
            raise ValueError(f"{name!r}: there is no such callback; there are {sorted(known)}.")


def callback_setting(name: str | None, callback: object, attribute: str, params: Mapping[str, Any]) -> Any:
    """Value of a callback's attribute, or of ``callbacks__name__attribute`` among the parameters."""
    name = name or (callback if isinstance(callback, type) else type(callback)).__name__
    return params.get(f"callbacks__{name}__{attribute}", getattr(callback, attribute, None))


def check_checkpoints(callbacks: Sequence | None, net_params: Mapping[str, Any]) -> None:
    """Raise if a Checkpoint would restore the module without its T."""
    for name, callback in named_callbacks(callbacks):
        load_best, f_criterion = (
            callback_setting(name, callback, attribute, net_params) for attribute in ("load_best", "f_criterion")
        )
        if isinstance(callback, Checkpoint) and load_best and f_criterion is None:
            raise ValueError(
                "Checkpoint(load_best=True, f_criterion=None) would restore the module without its transition "
                "matrix, which the criterion holds: give f_criterion a file name (default 'criterion.pt')."
            )


# ---------------------------------------------------------------------------- modules
def check_output(net: NoisyLabelNet, rows: Rows, classes: NDArray) -> None:
    """Run two rows through an initialised module, and raise if it does not return one logit per class."""
    module, x = net.plain_module_.eval(), rows.take([0, len(rows) - 1]).inputs()
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
