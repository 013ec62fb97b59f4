"""Validate parameters and callbacks before any training."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, Options, StrOptions
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

from ..meta_gradient._forward_pass import PRECISIONS
from ..nets import NoisyLabelNet
from ..nets._checks import check_sized
from ._parameters import MODULES, OPTIMIZERS, Callbacks, Optimizer, as_optimizer

# ---------------------------------------------------------------------------- numbers
# constraints for `_parameter_constraints`, as in scikit-learn
NUMBER = Interval(Real, 0, np.inf, closed="left")
POSITIVE = Interval(Real, 0, np.inf, closed="neither")
FRACTION = Interval(Real, 0, 1, closed="left")
COUNT = Interval(Integral, 1, None, closed="left")
COUNT_FROM_0 = Interval(Integral, 0, None, closed="left")
ALL_ROWS = Options(Integral, {-1})

# parameters with the same valid values in all classifiers that have them
CONSTRAINTS: dict[str, list[Any]] = {
    "module": [nn.Module, StrOptions(set(MODULES)), callable],
    "lr": [POSITIVE, StrOptions({"auto"})],
    "max_epochs": [COUNT_FROM_0, StrOptions({"auto"})],
    "batch_size": [COUNT, ALL_ROWS],
    "precision": [StrOptions(set(PRECISIONS))],
    "batch_transform": [callable, None],
    "train_split": [callable, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "warm_up_epochs": [COUNT, None],
    "validation_fraction": [FRACTION],
    "anchor_percentile": [Interval(Real, 0, 100, closed="right"), StrOptions({"auto"}), None],
    "inner_lr": [POSITIVE, None],
    "meta_batch_size": [COUNT, ALL_ROWS, None],
}


# ---------------------------------------------------------------------------- the network
def check_net_parameters(estimator: Any, net_params: Mapping[str, Any]) -> None:
    """Raise for invalid parameters of the nets; `net_params` are parameters of skorch."""
    _check_callbacks(estimator.callbacks, net_params)
    _check_module(estimator.module, [name for name in net_params if name.startswith("module__")])
    _check_optimizer(estimator.optimizer)
    if estimator.device is not None:
        check_device(estimator.device)
    if estimator.dtype != "auto":
        _check_dtype(estimator.dtype)
    if estimator.precision != "float32" and estimator.dtype not in ("auto", "float32", torch.float32):
        raise ValueError(
            f"precision={estimator.precision!r} needs float32 inputs, got dtype={estimator.dtype!r}. Omit dtype."
        )
    if estimator.precision == "fp16" and _is_lbfgs(estimator.optimizer):
        raise ValueError("precision='fp16' scales gradients, which LBFGS does not support. Use 'bf16' or 'float32'.")


def _check_module(module: Any, given: list[str]) -> None:
    if isinstance(module, type) and not issubclass(module, nn.Module):
        raise TypeError(f"module={module!r} is not valid. Pass an nn.Module class or instance that returns logits.")
    if module == "linear" and "module__hidden" in given:
        raise ValueError("module='linear' has no hidden layer, but module__hidden was given. Use module='mlp'.")
    if not isinstance(module, nn.Module):
        return
    if given:
        raise ValueError(f"{given} require a module class, but module is an instance. Set them in the instance.")
    if not any(p.requires_grad for p in module.parameters()):
        raise ValueError(
            f"{type(module).__name__} has no trainable parameter: all are frozen, or there are none. Set requires_grad "
            "of the parameters to train."
        )
    check_sized(module)


def _check_optimizer(value: Any) -> None:
    if isinstance(value, str) and value.lower() in OPTIMIZERS:
        return
    is_class = isinstance(value, type)
    if isinstance(value, str) or not (issubclass(value, torch.optim.Optimizer) if is_class else callable(value)):
        given = value if is_class or isinstance(value, str) else f"instance of {type(value).__name__}"
        raise ValueError(
            f"optimizer={given!r} is not valid. Pass a class such as torch.optim.SGD or its name (no instance), and "
            "its parameters as optimizer__... or by functools.partial."
        )


def check_device(device: Any) -> None:
    """Raise if torch cannot use a device."""
    try:
        torch.zeros(1, device=device).item()
    except Exception as error:
        usable = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        why = str(error).splitlines()[0].partition(". ")[0]
        raise ValueError(f"device={device!r} cannot be used: {why}. Use one of {usable}, or omit device.") from None


def _check_dtype(dtype: Any) -> None:
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or found.is_complex or found is torch.bool:
        raise ValueError(f"dtype={dtype!r} is not valid. Use 'auto' or a real torch type such as torch.float64.")


def _is_lbfgs(optimizer: Optimizer) -> bool:
    optimizer = as_optimizer(optimizer)
    kind = getattr(optimizer, "func", optimizer)  # unwrap a partial
    return isinstance(kind, type) and issubclass(kind, torch.optim.LBFGS)


def refuse_lbfgs(estimator: Any) -> None:
    """Raise for LBFGS if T is updated with each gradient: LBFGS computes several per step, without parameter groups."""
    if _is_lbfgs(estimator.optimizer):
        raise ValueError(
            f"optimizer is LBFGS, which evaluates the loss several times per step: {type(estimator).__name__} would "
            "update T each time. Use an optimiser such as torch.optim.SGD or Adam."
        )


# ---------------------------------------------------------------------------- callbacks
# internal callbacks, which users cannot set
_OURS = {
    *("update", "select", "held_out_posteriors", "in_step", "save_state", "show_progress"),
    *(f"valid_{labels}_{score}" for labels in ("noisy", "clean") for score in ("loss", "acc")),
}
# callbacks that depend on the scores, epochs or files of one training
_BOUND = (BatchScoring, Checkpoint, EarlyStopping, EpochScoring, LoadInitState, LRScheduler, TrainEndCheckpoint)
# fraction of `lr` near the end of usual schedules: steps of 0.1, cosine, linear
_AFTER_SCHEDULE = 0.01
# scores that skorch computes on the samples held out by `train_split`
_HELD_OUT = {f"valid_{score}{best}" for score in ("loss", "acc", "noisy_loss", "noisy_acc") for best in ("", "_best")}


def named_callbacks(callbacks: Sequence | None) -> list[tuple[str | None, Any]]:
    """Convert the user's callbacks to pairs (name or None, callback)."""
    return [tuple(cb) if isinstance(cb, tuple | list) else (None, cb) for cb in callbacks or ()]


def _check_callbacks(callbacks: Callbacks, net_params: Mapping[str, Any]) -> None:
    """Raise for invalid callbacks, for settings of unknown callbacks, and for scores without a `train_split`."""
    is_list = isinstance(callbacks, Sequence) and not isinstance(callbacks, str)
    if not (callbacks is None or (is_list and all(map(_is_callback, callbacks)))):
        raise TypeError(f"callbacks={callbacks!r}; pass a list of skorch callbacks or pairs (name, callback).")
    for setting in (name for name in net_params if name.startswith("callbacks__")):
        if setting.split("__")[1] not in (known := _callback_names(callbacks) - _OURS):
            raise ValueError(f"{setting!r} sets no callback of yours or of skorch. Valid names are {sorted(known)}.")
    if net_params.get("train_split") is not None:
        return
    for name, callback in named_callbacks(callbacks):
        if _follows_held_out_rows(name, callback, net_params):
            raise ValueError(
                f"{kind_of(callback).__name__} needs scores on held-out samples, but there are none. Use "
                "train_split=skorch.dataset.ValidSplit(10), monitor='train_loss' or on_train=True."
            )


def _follows_held_out_rows(name: str | None, callback: Any, net_params: Mapping[str, Any]) -> bool:
    made = callback
    if isinstance(callback, type):
        made = callback() if issubclass(callback, EarlyStopping | Checkpoint) else callback
    if issubclass(kind_of(callback), EpochScoring | BatchScoring):
        return not callback_setting(name, made, "on_train", net_params)
    monitor = callback_setting(name, made, "monitor", net_params)
    return isinstance(monitor, str) and monitor in _HELD_OUT


def _is_callback(given: Any) -> bool:
    if isinstance(given, tuple | list):
        return len(given) == 2 and isinstance(given[0], str) and _is_callback(given[1])
    return issubclass(given, Callback) if isinstance(given, type) else isinstance(given, Callback)


def kind_of(callback: Any) -> type:
    """Class of a callback, given as a class or instance."""
    return callback if isinstance(callback, type) else type(callback)


def callback_setting(name: str | None, callback: object, attribute: str, params: Mapping[str, Any]) -> Any:
    """Value of a callback's attribute, or of the parameter ``callbacks__name__attribute``."""
    name = name or kind_of(callback).__name__
    return params.get(f"callbacks__{name}__{attribute}", getattr(callback, attribute, None))


def _callback_names(callbacks: Callbacks) -> set[str]:
    """Names of a net's callbacks, including the default callbacks of skorch."""
    return set(NoisyLabelNet(nn.Identity, callbacks=callbacks)._callbacks_grouped_by_name()[0])


def without_bound_callbacks(params: Mapping[str, Any]) -> dict[str, Any]:
    """Remove callbacks that belong to another training, and their settings.

    A learning-rate schedule is replaced by a rate near its end.
    """
    given = params["callbacks"] or ()
    kinds = [kind_of(callback) for _, callback in named_callbacks(given)]
    kept = [one for one, kind in zip(given, kinds, strict=True) if not issubclass(kind, _BOUND)]
    rate = {"lr": _AFTER_SCHEDULE * params["lr"]} if any(issubclass(kind, LRScheduler) for kind in kinds) else {}
    settings = [name for name in params if name.startswith("callbacks__")]
    without = {name for name in settings if name.split("__")[1] not in _callback_names(kept)}
    return {name: value for name, value in params.items() if name not in without} | {"callbacks": kept} | rate


def check_checkpoints(callbacks: Sequence | None, net_params: Mapping[str, Any]) -> None:
    """Raise if a Checkpoint would restore the module without its T."""
    for name, callback in named_callbacks(callbacks):
        load_best = callback_setting(name, callback, "load_best", net_params)
        f_criterion = callback_setting(name, callback, "f_criterion", net_params)
        if isinstance(callback, Checkpoint) and load_best and f_criterion is None:
            raise ValueError(
                "Checkpoint(load_best=True, f_criterion=None) would restore the module without the transition matrix "
                "in the criterion. Set f_criterion to a file name (default 'criterion.pt')."
            )
