"""Describe parameters and data as text, so that a saved fit or result is recognised."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import joblib
import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import nn

from ..nets import Rows

# types whose repr describes a value completely
_PLAIN = (str, bytes, bool, int, float, complex, type(None), np.generic, torch.dtype, torch.device)


def describe_fit(estimator: BaseEstimator, noisy: Rows, clean: Rows | None) -> dict[str, str]:
    """Describe a fit: its class, its parameters except callbacks, and its data.

    Raises
    ------
    ValueError
        For a parameter that cannot be described.
    """
    data = {"X, y": noisy, "clean set": clean}
    params = describe_params(estimator, leave_out=("verbose", "callbacks", "n_jobs"))
    return params | {name: "" if rows is None else joblib.hash(_content(rows)) for name, rows in data.items()}


def describe_params(estimator: BaseEstimator, *, leave_out: tuple[str, ...] = ("verbose",)) -> dict[str, str]:
    """Describe a classifier: its class and its parameters, except those left out.

    Raises
    ------
    ValueError
        For a parameter that cannot be described.
    """
    params = {k: v for k, v in estimator.get_params(deep=False).items() if not k.startswith(leave_out)}
    described = {name: describe(value, name) for name, value in params.items()}
    return {"class": _named(type(estimator), "the classifier"), **described}


def describe(value: object, name: str = "value") -> str:
    """Describe a value as text; different values have different texts.

    Numbers, text, lists, dictionaries, arrays and the weights of modules are described by their content; a function or
    a class by its module, name and source; another object by its class and attributes. An object with an attribute
    ``fit_name`` is described by that alone.

    Parameters
    ----------
    value : object
    name : str
        Name of the value in errors.

    Raises
    ------
    ValueError
        For a function that cannot be imported by its module and name (a lambda, or one made inside another) and that
        has no ``fit_name``.
    """
    if isinstance(given := getattr(value, "fit_name", None), str):
        return f"fit_name {given!r}"
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, Mapping):
        return repr({str(k): describe(v, name) for k, v in value.items()})
    if isinstance(value, list | tuple | set | frozenset | range):
        return repr([describe(v, name) for v in value])
    if isinstance(value, np.ndarray):
        return joblib.hash(value)
    if isinstance(value, torch.Tensor):
        return joblib.hash(value.detach().cpu().numpy())
    if isinstance(value, nn.Module):
        return _named(type(value), name) + repr(value) + describe(value.state_dict(), name)
    if isinstance(value, partial):
        return "partial" + describe([value.func, value.args, value.keywords], name)
    if inspect.ismethod(value):
        return describe([value.__func__, value.__self__], name)
    if callable(value) and hasattr(value, "__qualname__"):
        return _named(value, name)
    try:
        return _named(type(value), name) + joblib.hash(value)
    except Exception as error:  # pickling calls user code, which may raise anything
        raise ValueError(f"{name} is or has {value!r}, which cannot be described: {error}.") from error


def _named(value: Callable, name: str) -> str:
    """Return module, name and source of a function or class; raise if it cannot be imported by module and name."""
    try:
        found: Any = import_module(value.__module__)
        for part in value.__qualname__.split("."):
            found = getattr(found, part)
    except (AttributeError, ImportError, ValueError):
        found = None
    if found is not value:
        raise ValueError(
            f"{name} is or has {value!r}, which a later fit could not recognise: it is a lambda, or was made inside a "
            "function. Define it at the top of a module, or give it a name of its own: f.fit_name = 'crop and flip, 2'."
        )
    try:
        source = inspect.getsource(value)
    except (OSError, TypeError):  # built in, or typed in a shell
        source = ""
    return f"{value.__module__}.{value.__qualname__} {joblib.hash(source)}"


def _content(rows: Rows) -> tuple:
    """Return what is hashed of a data set: inputs (of a torch Dataset only the length) and columns."""
    return rows.X if isinstance(rows.X, np.ndarray) else len(rows), rows.columns
