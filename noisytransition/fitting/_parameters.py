"""Parameters of a fit and of its nets: valid values, and automatic defaults."""

import copy
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, Options, StrOptions
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback
from torch import nn

from ..meta_gradient._forward_pass import PRECISIONS
from ..nets import MLP, Rows
from ..nets._net import Standardise

Module = type[nn.Module] | nn.Module | str
Optimizer = Callable[..., torch.optim.Optimizer] | str
Callbacks = Sequence[Callback | type[Callback] | tuple[str, Callback]] | None
RandomState = int | np.random.RandomState | None

# torch optimisers by lower-case name
OPTIMIZERS = {
    name.lower(): value
    for name, value in vars(torch.optim).items()
    if isinstance(value, type) and issubclass(value, torch.optim.Optimizer) and value is not torch.optim.Optimizer
}
# built-in networks and their parameters
MODULES: dict[str, dict[str, Any]] = {"mlp": {}, "linear": {"module__hidden": ()}}

# ---------------------------------------------------------------------------- valid values
# constraints for `_parameter_constraints`, as in scikit-learn
NUMBER = Interval(Real, 0, np.inf, closed="left")
POSITIVE = Interval(Real, 0, np.inf, closed="neither")
COUNT = Interval(Integral, 1, None, closed="left")
COUNT_FROM_0 = Interval(Integral, 0, None, closed="left")
ALL_ROWS = Options(Integral, {-1})
# names of input types
_DTYPES = {"auto", "bfloat16", "float16", "float32", "float64", "uint8", "int32", "int64"}

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
    "transition_init": [StrOptions({"gold", "gold-shrunk", "anchor", "confusion", "count", "diagonal"}), "array-like"],
    "warm_up_epochs": [COUNT, None],
    "validation_fraction": [Interval(Real, 0, 1, closed="left")],
    "anchor_percentile": [Interval(Real, 0, 100, closed="right"), StrOptions({"auto"}), None],
    "inner_lr": [POSITIVE, None],
    "meta_batch_size": [COUNT, ALL_ROWS, None],
    "verified_sampling": [StrOptions({"random", "stratified"})],
    "n_jobs": [COUNT, Interval(Integral, None, -1, closed="right"), None],
}


def check_device(device: Any) -> None:
    """Raise if torch cannot use a device."""
    try:
        torch.zeros(1, device=device).item()
    except Exception as error:
        raise ValueError(f"device={device!r} cannot be used: {error}") from error


def named_callbacks(params: Mapping[str, Any]) -> list[tuple[str, Callback]]:
    """Copies of the user's callbacks with their settings, and names as in skorch.

    Raise for settings of unknown callbacks, and callbacks that monitor scores without a `train_split`.
    """
    settings = {name: value for name, value in params.items() if name.startswith("callbacks__")}
    given = params["callbacks"] or ()
    copies = [(cb[0], copy.copy(cb[1])) if isinstance(cb, tuple | list) else copy.copy(cb) for cb in given]
    net = NeuralNetClassifier(nn.Identity, callbacks=copies, **settings).initialize_callbacks()
    of_skorch = {name for name, _ in net._default_callbacks}
    names, _ = net._callbacks_grouped_by_name()
    if unknown := [setting for setting in settings if setting.split("__")[1] not in names]:
        raise ValueError(f"{unknown} set no callback of yours or of skorch. Valid names are {sorted(names)}.")
    named = [(name, callback) for name, callback in net.callbacks_ if name not in of_skorch]
    for _, callback in named:
        score = str(getattr(callback, "monitor", None))
        if params.get("train_split") is None and score.startswith("valid_") and "clean" not in score:
            fact = f"{type(callback).__name__} monitors {score!r} of held-out samples, but there are none"
            raise ValueError(f"{fact}. Use train_split=skorch.dataset.ValidSplit(10), or monitor='train_loss'.")
    return named


# ---------------------------------------------------------------------------- nets
def net_params_of(shared: dict[str, Any], module: nn.Module | None, of_stage: dict[str, Any]) -> dict[str, Any]:
    """Merge the parameters of a fit with a trained module and parameters of a stage, which take precedence."""
    module = shared["module"] if module is None else module
    left_out = ["optimizer__"] if "optimizer" in of_stage else []
    if isinstance(module, nn.Module):
        left_out += ["module__"]
        module = copy.deepcopy(module)
    params = {name: value for name, value in shared.items() if not name.startswith(tuple(left_out))}
    params |= {"module": module} | of_stage
    is_adam = params["optimizer"] is torch.optim.Adam
    is_fused = is_adam and not any(f"optimizer__{name}" in params for name in _IMPLEMENTATIONS)
    return params | ({"optimizer__fused": True} if is_fused else {})


# ---------------------------------------------------------------------------- automatic defaults
# minimum epochs and steps with max_epochs="auto", measured by examples/benchmarks/defaults.py
_LEAST_EPOCHS, _LEAST_STEPS = 30, 500
# learning rates with lr="auto"; the rates of Adam were measured by the same script
_LR, _LR_OF_LINEAR, _LR_OF_SGD = 1e-3, 5e-3, 0.1
# Sum of the absolute values of a sample up to which these hold. A step of Adam changes a unit by lr times this sum, so
# lr decreases for wider samples. With 10, EM is worse on generated embeddings (design half of examples/benchmarks/zoo)
_WIDTH = 40.0
# Variance of a logit before training: that of the logistic distribution, as if features and chance explained labels
# equally. It gives the weight decay of built-in networks
_LOGIT_VARIANCE = np.pi**2 / 3
# samples and values from which scaling and width are computed: enough for means, with little memory
_SCALED_ROWS, _SCALED_VALUES = 2000, 2**22
# the spread of a feature is its standard deviation, or its largest distance from the mean divided by this if that is
# more, as for almost constant features such as the margin of an image
_LARGEST = 5.0
# features with a spread in this interval are not scaled: small principal components, for example, are noise
_LEAST_SPREAD, _MOST_SPREAD = 0.3, 3.0
# features with a smaller ratio of spread to mean are constant in float32
_CONSTANT_SPREAD = 1e-6
# parameters of torch's Adam that select an implementation; by default one fused loop, which takes 0.75 of a step's time
# (MLP of 64, 128 and 10 units, batches of 32)
_IMPLEMENTATIONS = ("fused", "foreach", "capturable", "differentiable")


def params_of_fit(params: dict[str, Any], noisy: Rows, n_classes: int) -> dict[str, Any]:
    """Replace names of optimisers and built-in networks, and "auto" by values that depend on samples and network.

    Callbacks are copied and named. Raise for a device that cannot be used, and parameters without effect.
    """
    check_device(params["device"])
    params = params | {"callbacks": named_callbacks(params), "classes": np.arange(n_classes)}
    if isinstance(params["optimizer"], str):
        params["optimizer"] = OPTIMIZERS[params["optimizer"].lower()]
    of_module = [name for name in params if name.startswith("module__")]
    if of_module and isinstance(params["module"], nn.Module):
        raise ValueError(f"{of_module} require a module class, but module is an instance. Set them in the instance.")
    if isinstance(params["module"], str):
        n_in = _n_values(noisy)
        if n_in is None:
            raise ValueError(f"module={params['module']!r} takes one array, but X has several parts. Pass a module.")
        sized = built_in(params["module"], n_in, n_classes, *_column_scale(noisy, n_in))
        params = sized | params | {"module": MLP}
    if params["max_epochs"] == "auto":
        steps = 1 if params["batch_size"] == -1 else ceil(len(noisy) / params["batch_size"])
        params["max_epochs"] = max(_LEAST_EPOCHS, ceil(_LEAST_STEPS / steps))
    if params["lr"] == "auto":
        params["lr"] = _lr(params, noisy)
    return params


def prior_precision(params: dict[str, Any], noisy: Rows) -> float:
    """Precision of a normal prior of the weights, for built-in networks and Adam; 0 for others, or with a weight decay.

    Under the prior, logits of a linear network have the variance `_LOGIT_VARIANCE`. It is also 0 for sparse inputs, in
    which a feature is in less than one sample of a batch on average: Adam divides by the size of gradients, most of
    which are then 0. `params` are those of `params_of_fit`.
    """
    is_built_in = params["module"] is MLP and params.get("module__mean") is not None
    is_adam = params["optimizer"] is torch.optim.Adam
    if not is_built_in or not is_adam or "optimizer__weight_decay" in params:
        return 0.0
    x = _some(noisy, params["module__n_in"]).inputs().to("cpu", torch.float32)
    size = len(noisy) if params["batch_size"] == -1 else params["batch_size"]
    if size * x.count_nonzero() < x.numel():
        return 0.0
    x = Standardise(params["module__mean"], params["module__scale"])(x)
    return float(x.square().sum(dim=1).mean()) / _LOGIT_VARIANCE


def _lr(params: dict[str, Any], noisy: Rows) -> float:
    """Learning rate for the optimiser and the network, which is created without changing torch's random state."""
    optimizer = params["optimizer"]
    if getattr(optimizer, "func", optimizer) is torch.optim.SGD:  # or a partial of it
        return _LR_OF_SGD
    arguments = {name.removeprefix("module__"): value for name, value in params.items() if name.startswith("module__")}
    with torch.random.fork_rng(devices=[]):
        module = params["module"] if isinstance(params["module"], nn.Module) else params["module"](**arguments)
    matrices = [weight for weight in module.parameters() if weight.requires_grad and weight.ndim > 1]
    is_linear = len(matrices) == 1
    lr = _LR_OF_LINEAR if is_linear else _LR
    return lr * min(1.0, _WIDTH / _width(module, noisy)) if is_linear or isinstance(module, MLP) else lr


def _width(module: nn.Module, noisy: Rows) -> float:
    """Mean sum of the absolute values of a sample; 1 if the first layer does not take all values of a sample."""
    first = next((layer for layer in module.modules() if isinstance(layer, nn.Linear)), None)
    if first is None or first.in_features != _n_values(noisy):
        return 1.0
    x = _some(noisy, first.in_features).inputs().to(first.weight.device, torch.float32).flatten(1)
    x = module[0](x) if isinstance(module, MLP) else x  # standardised
    return max(float(x.abs().sum(dim=1).mean()), 1.0)


def _n_values(rows: Rows) -> int | None:
    """Number of values of a sample; None if it has several parts."""
    shape = rows.sample_shape
    return int(np.prod(shape)) if all(isinstance(size, int) for size in shape) else None


def built_in(name: str, n_in: int, n_out: int, mean: NDArray[np.float64], scale: NDArray[np.float64]) -> dict[str, Any]:
    """Parameters of a built-in network of a given size and input scaling."""
    sized = {"n_in": n_in, "n_out": n_out, "mean": mean, "scale": scale}
    return {f"module__{key}": value for key, value in sized.items()} | MODULES[name]


def _some(rows: Rows, n_columns: int) -> Rows:
    """Subset of samples, equally spaced."""
    n_rows = min(len(rows), _SCALED_ROWS, max(_SCALED_VALUES // n_columns, 100))
    return rows.take(np.linspace(0, len(rows) - 1, n_rows).astype(int))


def _column_scale(rows: Rows, n_columns: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute mean and scale that give each feature a spread of the order of 1, from a subset of samples.

    Features that are mostly 0 (words, one-hot categories, image margins) keep their zeros and are scaled if values
    exceed 1. Arrays, sparse matrices and Datasets with equal float32 values give the same result.
    """
    X = _some(rows, n_columns).inputs().numpy(force=True)
    X = X.reshape(len(X), -1).astype(np.float32, copy=False)
    scale = np.maximum(1.0, np.maximum(X.max(axis=0), -X.min(axis=0))).astype(np.float64)
    filled = np.flatnonzero(2 * np.count_nonzero(X, axis=0) > len(X))
    X = X[:, filled].astype(np.float64, order="C")
    mean = np.zeros(n_columns)
    mean[filled] = X.mean(axis=0)
    X -= mean[filled]
    spread = np.maximum(X.std(axis=0), np.abs(X).max(axis=0) / _LARGEST)
    is_constant = spread <= _CONSTANT_SPREAD * np.abs(mean[filled])
    scale[filled] = np.where(is_constant, 1.0, spread / spread.clip(_LEAST_SPREAD, _MOST_SPREAD))
    return mean, scale
