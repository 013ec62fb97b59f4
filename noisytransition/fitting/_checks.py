"""Validate parameters and callbacks before any training."""

import copy
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, Options, StrOptions
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback
from torch import nn

from ..meta_gradient._forward_pass import PRECISIONS
from ._parameters import MODULES, OPTIMIZERS, Callbacks

# ---------------------------------------------------------------------------- numbers
# constraints for `_parameter_constraints`, as in scikit-learn
NUMBER = Interval(Real, 0, np.inf, closed="left")
POSITIVE = Interval(Real, 0, np.inf, closed="neither")
FRACTION = Interval(Real, 0, 1, closed="left")
COUNT = Interval(Integral, 1, None, closed="left")
COUNT_FROM_0 = Interval(Integral, 0, None, closed="left")
ALL_ROWS = Options(Integral, {-1})
# names of input types
_DTYPES = {"auto", "bfloat16", "float16", "float32", "float64", "uint8", "int32", "int64"}

# initial estimates of T that need a warm-up
OF_WARM_UP = ("gold", "gold-shrunk", "anchor", "confusion")

# parameters with the same valid values in all classifiers that have them
CONSTRAINTS: dict[str, list[Any]] = {
    "module": [nn.Module, StrOptions(set(MODULES)), callable],
    "lr": [POSITIVE, StrOptions({"auto"})],
    "max_epochs": [COUNT_FROM_0, StrOptions({"auto"})],
    "batch_size": [COUNT, ALL_ROWS],
    "optimizer": [StrOptions(set(OPTIMIZERS) | {cls.__name__ for cls in OPTIMIZERS.values()}), callable],
    "dtype": [StrOptions(_DTYPES), torch.dtype],
    "precision": [StrOptions(set(PRECISIONS))],
    "batch_transform": [callable, None],
    "callbacks": [list, tuple, None],
    "train_split": [callable, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "transition_init": [StrOptions({*OF_WARM_UP, "count", "diagonal"}), "array-like"],
    "warm_up_epochs": [COUNT, None],
    "validation_fraction": [FRACTION],
    "anchor_percentile": [Interval(Real, 0, 100, closed="right"), StrOptions({"auto"}), None],
    "inner_lr": [POSITIVE, None],
    "meta_batch_size": [COUNT, ALL_ROWS, None],
    "verified_sampling": [StrOptions({"random", "stratified"})],
    "n_jobs": [COUNT, Interval(Integral, None, -1, closed="right"), None],
}


# ---------------------------------------------------------------------------- device
def check_device(device: Any) -> None:
    """Raise if torch cannot use a device."""
    try:
        torch.zeros(1, device=device).item()
    except Exception as error:
        raise ValueError(f"device={device!r} cannot be used: {error}") from error


# ---------------------------------------------------------------------------- callbacks
def named_callbacks(callbacks: Callbacks, net_params: Mapping[str, Any]) -> list[tuple[str, Callback]]:
    """Copies of the user's callbacks with their settings, and names as in skorch.

    Raise for settings of unknown callbacks, and callbacks that monitor scores without a `train_split`.
    """
    settings = {name: value for name, value in net_params.items() if name.startswith("callbacks__")}
    copies = [(cb[0], copy.copy(cb[1])) if isinstance(cb, tuple | list) else copy.copy(cb) for cb in callbacks or ()]
    net = NeuralNetClassifier(nn.Identity, callbacks=copies, **settings).initialize_callbacks()
    of_skorch = {name for name, _ in net._default_callbacks}
    names, _ = net._callbacks_grouped_by_name()
    if unknown := [setting for setting in settings if setting.split("__")[1] not in names]:
        raise ValueError(f"{unknown} set no callback of yours or of skorch. Valid names are {sorted(names)}.")
    named = [(name, callback) for name, callback in net.callbacks_ if name not in of_skorch]
    for _, callback in named:
        score = str(getattr(callback, "monitor", None))
        if net_params.get("train_split") is None and score.startswith("valid_") and "clean" not in score:
            raise ValueError(
                f"{type(callback).__name__} monitors {score!r} of held-out samples, but there are none. Use "
                "train_split=skorch.dataset.ValidSplit(10), or monitor='train_loss'."
            )
    return named
