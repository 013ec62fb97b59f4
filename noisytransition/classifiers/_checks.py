"""Checks of parameters and callbacks, made before any training."""

import difflib
import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_scalar
from skorch import NeuralNetClassifier
from skorch.callbacks import (
    BatchScoring,
    Callback,
    Checkpoint,
    EarlyStopping,
    EpochScoring,
    LoadInitState,
    LRScheduler,
    TrainEndCheckpoint,
)
from torch import nn

from .._precision import PRECISIONS
from ..nets import NoisyLabelNet, check_sized
from ..transition import check_count, is_number
from ._parameters import MODULES, OPTIMIZERS, Callbacks, Optimizer, as_optimizer, is_default, merged_signature

# names of callbacks that a fit adds to those of its nets
_OF_FITS = {"held_out_posteriors", "in_step", "save_state", "show_progress", "valid_clean_loss"}
# callbacks that compute or follow the scores or the epochs of a training, or write and read its files
_BOUND = (BatchScoring, Checkpoint, EarlyStopping, EpochScoring, LoadInitState, LRScheduler, TrainEndCheckpoint)


def check_number(estimator: object, name: str, *, high: float | None = None) -> None:
    """Raise if a parameter is no finite number of at least 0 (and at most `high`)."""
    value = getattr(estimator, name)
    if not is_number(value):
        raise TypeError(f"{name}={value!r}; give a number.")
    check_scalar(value, name, Real, min_val=0.0, max_val=float("inf") if high is None else high)
    if not math.isfinite(value):
        raise ValueError(f"{name} == {value}, must be finite.")


def check_flag(estimator: object, name: str, *, auto: bool = False) -> None:
    """Raise if a parameter is neither True nor False, nor "auto" where that is allowed."""
    value = getattr(estimator, name)
    if not isinstance(value, bool | np.bool_) and not (auto and isinstance(value, str) and value == "auto"):
        valid = "True or False, or 'auto'" if auto else "True or False"
        raise TypeError(f"{name}={value!r}; give {valid}.")


def check_batch_size(estimator: object, name: str) -> None:
    """Raise if a parameter is no integer of at least 1, nor -1 (all rows), nor None."""
    size = getattr(estimator, name)
    if size is not None and size != -1:
        check_count(size, 1, name)


def check_n_jobs(estimator: Any) -> None:
    """Raise if `n_jobs` is no number of processes, nor None."""
    n_jobs = estimator.n_jobs
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise ValueError(f"n_jobs={n_jobs!r}; give a number of processes, -1 for one per core, or None.")


def check_weight(estimator: object, name: str, valid: str) -> None:
    """Raise unless a parameter is "auto" or a finite number that is `valid`: "above 0" or "of at least 0"."""
    weight = getattr(estimator, name)
    number = is_number(weight) and (0 < weight < np.inf or (weight == 0 and valid != "above 0"))
    if not (weight == "auto" if isinstance(weight, str) else number):
        raise ValueError(f"{name}={weight!r}; give a number {valid}, or 'auto'.")


def check_fraction(estimator: object, name: str) -> None:
    """Raise if a parameter is no number of at least 0 and below 1."""
    check_number(estimator, name)
    check_scalar(getattr(estimator, name), name, Real, min_val=0, max_val=1, include_boundaries="left")


def check_net_parameters(estimator: Any) -> None:
    """Raise if a parameter that all nets share is of no valid kind."""
    _check_module(estimator.module)
    for name, parameter in merged_signature(type(estimator)).parameters.items():
        value = getattr(estimator, name, None)
        if name.endswith("optimizer") and not (value is None and parameter.default is None):
            _check_optimizer(value, name)
    if estimator.device is not None:
        check_device(estimator.device)
    if estimator.dtype != "auto":
        _check_dtype(estimator.dtype)
    _check_precision(estimator)
    for name in ("batch_transform", "train_split"):
        if (value := getattr(estimator, name, None)) is not None and not callable(value):
            raise TypeError(f"{name}={value!r}; give a function, or None.")
    if not isinstance(estimator.verbose, int | np.integer | np.bool_):
        raise TypeError(f"verbose={estimator.verbose!r}; give 0 (silent), 1 (a bar) or 2 (a line for each epoch).")


def _check_module(module: Any) -> None:
    valid = "give an nn.Module class or instance that returns logits, 'mlp' (or None) or 'linear'"
    if isinstance(module, nn.Module):
        if not any(p.requires_grad for p in module.parameters()):
            raise ValueError(
                f"{type(module).__name__} has no trainable parameter: all are frozen, or there is none; set "
                "requires_grad for those that should be learned."
            )
        check_sized(module)
    elif is_default(module):
        if module not in MODULES:
            raise ValueError(f"module={module!r}; {valid}.")
    elif not (issubclass(module, nn.Module) if isinstance(module, type) else callable(module)):
        raise TypeError(f"module={module!r}; {valid}.")


def _check_optimizer(value: Any, name: str) -> None:
    if isinstance(value, str):
        if value.lower() not in OPTIMIZERS:
            near = difflib.get_close_matches(value.lower(), OPTIMIZERS, 1)
            guess = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{name}={value!r}; give a class, or the name of one in torch.optim.{guess}")
        return
    is_class = isinstance(value, type)
    if not (issubclass(value, torch.optim.Optimizer) if is_class else callable(value)):
        raise TypeError(
            f"{name}={value if is_class else type(value).__name__!r}; give a class such as torch.optim.SGD or a name "
            "such as 'sgd', no instance; its parameters are given as optimizer__..., or by functools.partial."
        )


def check_device(device: Any) -> None:
    """Raise if torch cannot compute on a device."""
    try:
        torch.zeros(1, device=device).item()
    except Exception as error:
        usable = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        raise ValueError(
            f"device={device!r} cannot be used: {_why_not(device, error)}; give one of {usable}, or leave device out."
        ) from None


def _why_not(device: Any, error: Exception) -> str:
    if str(device).startswith("cuda") and not torch.cuda.is_available():
        return "torch finds no CUDA GPU here" if torch.version.cuda else "this torch is built without CUDA"
    return str(error).splitlines()[0].partition(". ")[0]


def _check_dtype(dtype: Any) -> None:
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or found.is_complex or found is torch.bool:
        raise ValueError(f"dtype={dtype!r}; give 'auto', or a real type of torch such as 'float32' or torch.float64.")


def _check_precision(estimator: Any) -> None:
    precision, module = estimator.precision, estimator.module
    if not isinstance(precision, str) or precision not in PRECISIONS:
        raise ValueError(f"precision={precision!r}; give one of {[*PRECISIONS]}.")
    if precision == "float32":
        return
    found = {p.dtype for p in module.parameters()} if isinstance(module, nn.Module) else {torch.float32}
    if found - {torch.float32} or estimator.dtype not in ("auto", "float32", torch.float32):
        raise ValueError(
            f"precision={precision!r} is for float32 modules and inputs; this one has {sorted(map(str, found))}, with "
            f"dtype={estimator.dtype!r}. Give module.float() and dtype='auto', or leave precision out."
        )
    if precision == "fp16" and _is_lbfgs(estimator.optimizer):
        raise ValueError("precision='fp16' scales gradients, which LBFGS cannot take; give 'bf16' or 'float32'.")


def _is_lbfgs(optimizer: Optimizer) -> bool:
    optimizer = as_optimizer(optimizer)
    kind = getattr(optimizer, "func", optimizer)  # of a partial
    return isinstance(kind, type) and issubclass(kind, torch.optim.LBFGS)


def check_takes_step_sizes(estimator: Any, name: str) -> None:
    """Raise for LBFGS where T has a step size of its own in the module's optimiser."""
    if _is_lbfgs(getattr(estimator, name)):
        raise ValueError(
            f"{name} is LBFGS, which has one step size for all parameters: {type(estimator).__name__} learns T with "
            "another than the network's. Give an optimiser such as torch.optim.SGD or Adam."
        )


# ---------------------------------------------------------------------------- callbacks
def named_callbacks(callbacks: Sequence | None) -> list[tuple[str | None, Any]]:
    """The user's callbacks as pairs of name and callback; the name is None where none is given."""
    return [tuple(cb) if isinstance(cb, tuple | list) else (None, cb) for cb in callbacks or ()]


def check_callbacks(callbacks: Callbacks, net_params: dict[str, Any]) -> None:
    """Raise if `callbacks` is a string, or takes a name of the library's; or if ``callbacks__...`` names none."""
    if isinstance(callbacks, str):
        raise ValueError(f"callbacks={callbacks!r}: give a list of callbacks, or None.")
    if not (callbacks is None or (isinstance(callbacks, Sequence) and all(map(_is_callback, callbacks)))):
        raise TypeError(f"callbacks={callbacks!r}: give a list of skorch callbacks, or of pairs (name, callback).")
    of_skorch = {name for name, _ in NeuralNetClassifier(nn.Identity)._default_callbacks}
    ours = _callback_names(()) | _callback_names((), labels="clean") | _OF_FITS
    for name, _ in named_callbacks(callbacks):
        if name in ours:
            instead = f"set that of skorch by callbacks__{name}=..." if name in of_skorch else "give another name"
            raise ValueError(f"callbacks has one named {name!r}, a name that the library itself uses: {instead}.")
    asked = [name for name in net_params if name.startswith("callbacks__")]
    known = _callback_names(callbacks) - (ours - of_skorch) if asked else set()
    for name in asked:
        if (named := name.split("__")[1]) in ours - of_skorch:
            raise ValueError(
                f"{name!r}: the callback {named!r} is the library's own, which the method needs; leave it out. Those "
                f"that can be set are {sorted(known)}."
            )
        if named not in known:
            raise ValueError(f"{name!r}: there is no such callback; there are {sorted(known)}.")


def _is_callback(given: Any) -> bool:
    if isinstance(given, tuple | list):
        return len(given) == 2 and isinstance(given[0], str) and _is_callback(given[1])
    return issubclass(given, Callback) if isinstance(given, type) else isinstance(given, Callback)


def kind_of(callback: Any) -> type:
    """Class of a callback, which may be given as a class."""
    return callback if isinstance(callback, type) else type(callback)


def callback_setting(name: str | None, callback: object, attribute: str, params: Mapping[str, Any]) -> Any:
    """Value of a callback's attribute, or of ``callbacks__name__attribute`` among the parameters."""
    name = name or kind_of(callback).__name__
    return params.get(f"callbacks__{name}__{attribute}", getattr(callback, attribute, None))


def _callback_names(callbacks: Callbacks, labels: str = "noisy") -> set[str]:
    """Names of a net's callbacks, skorch's own among them."""
    return set(NoisyLabelNet(nn.Identity, callbacks=callbacks, labels=labels)._callbacks_grouped_by_name()[0])


def without_bound_callbacks(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a net without callbacks that are made for another training, and without their settings."""
    given = params["callbacks"] or ()
    kinds = [kind_of(callback) for _, callback in named_callbacks(given)]
    kept = [callback for callback, kind in zip(given, kinds, strict=True) if not issubclass(kind, _BOUND)]
    known = _callback_names(kept)
    others = {k: v for k, v in params.items() if not k.startswith("callbacks__") or k.split("__")[1] in known}
    return others | {"callbacks": kept}


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
