"""Parameters of a classifier: those that its constructor names, and those of skorch, under skorch's names."""

import copy
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from skorch import NeuralNet, NeuralNetClassifier
from skorch.callbacks import Callback
from torch import nn

Module = type[nn.Module] | nn.Module | str
Optimizer = Callable[..., torch.optim.Optimizer] | str
Callbacks = Sequence[Callback | type[Callback] | tuple[str, Callback]] | None
RandomState = int | np.random.RandomState | None

# skorch's prefixes of nested parameters that the user may set
_PREFIXES = ("module", "optimizer", "iterator_train", "iterator_valid", "callbacks", "compile")
# parameters of skorch that the classifiers set themselves
_RESERVED = {"criterion", "predict_nonlinearity", "classes", "warm_start", "dataset", "torch_load_kwargs"}
# parameters of skorch that the user may set
NET_NAMES = {name for net in (NeuralNet, NeuralNetClassifier) for name in inspect.signature(net).parameters}
NET_NAMES -= {"args", "kwargs", *_RESERVED}

# optimisers of torch by their names in small letters
OPTIMIZERS = {
    name.lower(): value
    for name, value in vars(torch.optim).items()
    if isinstance(value, type) and issubclass(value, torch.optim.Optimizer) and value is not torch.optim.Optimizer
}
# the default network by its names, and what each sets of it
MODULES: dict[str, dict[str, Any]] = {"mlp": {}, "linear": {"module__hidden": ()}}

# attribute of a constructor: its signature as written, without the parameters of parents
_WRITTEN = "__written_signature__"


class NetParameters(BaseEstimator):
    """An estimator whose ``**net_params`` are parameters like the named ones: in `get_params`, clones and searches."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if (init := vars(cls).get("__init__")) is not None:
            setattr(init, _WRITTEN, inspect.signature(init))
            init.__signature__ = merged_signature(cls)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Names for `get_params`, clones and searches; also of classes that combine parents without a constructor."""
        return sorted(name for name in merged_signature(cls).parameters if name != "self")

    def _set_net_params(self, net_params: dict[str, Any]) -> None:
        """Store what the constructor received beyond its named parameters."""
        self._check_names(net_params, TypeError)
        for name, value in net_params.items():
            setattr(self, name, value)

    def _check_names(self, given: Iterable[str], error: type[Exception]) -> None:
        """Raise for a name that neither the class nor skorch has; as Python in a constructor, else as scikit-learn."""
        own = self._get_param_names()
        for name in given:
            if name not in own and not is_net_name(name):
                raise error(
                    f"{type(self).__name__} has no parameter {name!r}. It has {own}, and those of "
                    "skorch.NeuralNetClassifier that it does not set itself, such as module__... and optimizer__..."
                )

    @property
    def _net_params(self) -> dict[str, Any]:
        named = set(self._get_param_names())
        return {name: value for name, value in vars(self).items() if is_net_name(name) and name not in named}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters, including those of skorch that were given.

        Parameters
        ----------
        deep : bool, default=True
            As in scikit-learn.

        Returns
        -------
        dict of str to object
        """
        return super().get_params(deep) | self._net_params

    def set_params(self, **params: Any) -> "NetParameters":
        """Set parameters, of the classifier or of its nets (``lr``, ``module__hidden``, ``optimizer__momentum``).

        Parameters
        ----------
        **params
            Names and values.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For an unknown name.
        """
        self._check_names(params, ValueError)
        for name, value in params.items():
            setattr(self, name, value)
        return self


def as_python(value: Any) -> Any:
    """Convert a number of numpy's, as grids of arrays give them: torch's loaders take no other integers than int."""
    return value.item() if isinstance(value, np.generic) else value


def as_optimizer(given: Optimizer) -> Callable[..., torch.optim.Optimizer]:
    """Class of an optimiser that may be named, such as "adamw"."""
    return OPTIMIZERS[given.lower()] if isinstance(given, str) else given


def is_net_name(name: str) -> bool:
    """Whether a name is a parameter of skorch that the user may set."""
    head, dunder, tail = name.partition("__")
    return (head in _PREFIXES and bool(tail)) if dunder else name in NET_NAMES


def merged_signature(cls: type) -> inspect.Signature:
    """Parameters of the constructors of a class and of all its parents, in place of each ``**net_params``.

    The constructors are those that Python calls, in the order of calls: one without ``**`` passes nothing on.
    """
    found: dict[str, inspect.Parameter] = {}
    for init in (vars(base)["__init__"] for base in cls.__mro__ if base is not object and "__init__" in vars(base)):
        own = (getattr(init, _WRITTEN, None) or inspect.signature(init)).parameters
        kept = [
            p for p in own.values() if p.kind is p.KEYWORD_ONLY or (not found and p.kind is p.POSITIONAL_OR_KEYWORD)
        ]
        found = found | {p.name: p for p in kept if p.name not in found}
        if all(p.kind is not p.VAR_KEYWORD for p in own.values()):
            break
    return inspect.Signature(list(found.values()))


def net_params_of(shared: dict[str, Any], module: nn.Module | None, own: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a net.

    Parameters
    ----------
    shared : dict
        Those of the fit.
    module : nn.Module or None
        Trained module to continue from; None: that of the fit.
    own : dict
        Those of the stage, which override.
    """
    params = {name: value for name, value in shared.items() if name != "callbacks"}
    if "optimizer" in own:
        params = {name: value for name, value in params.items() if not name.startswith("optimizer__")}
    given = params["module"] if module is None else module
    if isinstance(given, nn.Module):
        params = {name: value for name, value in params.items() if not name.startswith("module__")}
        params["module"] = copy.deepcopy(given)
    params |= own
    return params | {"optimizer": as_optimizer(params["optimizer"])}
