"""Describe parameters and data as text, so that a saved fit or result is recognised."""

import platform
from typing import Any

import joblib
import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from ..nets import DatasetRows, Rows
from ..transition import blocks_of_rows
from ._fingerprint import Fingerprint, NotDescribable, version_of

# numbers of inputs that are hashed at once: 4 or 8 MB
_BLOCK = 1_000_000


def describe_fit(estimator: BaseEstimator, noisy: Rows, clean: Rows | None) -> dict[str, str]:
    """Describe a fit: its class, its parameters except callbacks, its data, and the versions that it runs with.

    Raises
    ------
    ValueError
        For a parameter or a torch Dataset that cannot be described.
    """
    data = {"X, y": noisy, "clean set": clean}
    params = describe_params(estimator, leave_out=("verbose", "callbacks", "n_jobs"))
    return params | {name: "" if rows is None else _content(rows, name) for name, rows in data.items()}


def describe_params(estimator: BaseEstimator, *, leave_out: tuple[str, ...] = ("verbose",)) -> dict[str, str]:
    """Describe a classifier: its class, its parameters, except those left out, and versions.

    Raises
    ------
    ValueError
        For a parameter that cannot be described.
    """
    params = {k: v for k, v in estimator.get_params(deep=False).items() if not k.startswith(leave_out)}
    described = {name: describe(value, name) for name, value in params.items()}
    return {"class": describe(type(estimator), "the classifier"), **described, **versions()}


def versions() -> dict[str, str]:
    """Versions that may change the result of a fit."""
    python = ".".join(platform.python_version_tuple()[:2])
    libraries = {name: version_of(name) for name in ("noisytransition", "numpy", "skorch", "torch")}
    return {f"version of {name}": version for name, version in {"Python": python, **libraries}.items()}


def describe(value: Any, name: str = "value") -> str:
    """Describe a value as text; values that a fit tells apart have different texts.

    Numbers, text, lists, dictionaries and arrays are described by their content; a module by its class, weights and
    attributes; another object by its class and attributes. A function or class of the user's is described by its code,
    and by the values of its module that the code names; one of a library by its name and the library's version. An
    object with an attribute ``fit_name`` is described by that alone.

    Parameters
    ----------
    value : object
    name : str
        Name of the value in errors.

    Raises
    ------
    ValueError
        For what cannot be described and has no ``fit_name``: a function or class that cannot be imported by its module
        and name (a lambda, or one made inside another), or an object that cannot be pickled.
    """
    try:
        return Fingerprint(name).of(value)
    except NotDescribable as error:
        raise ValueError(str(error)) from error.__cause__
    except Exception as error:  # code of the user's may raise anything
        raise ValueError(
            f"{name} is or has {value!r}, which cannot be described: {error}. Give it an attribute fit_name, a text "
            "that identifies it."
        ) from error


def _content(rows: Rows, name: str) -> str:
    """Hash of a data set: inputs, block by block, or the description of a torch Dataset, and columns."""
    if isinstance(rows, DatasetRows):
        return joblib.hash((describe(rows.X, name), rows.columns))
    blocks = blocks_of_rows(len(rows), max(int(np.prod(rows.source.shape[1:])), 1), _BLOCK)
    inputs = (rows.take(np.arange(block.start, block.stop)).X for block in blocks)
    hashes = [describe(X, name) if issparse(X) else joblib.hash(np.ascontiguousarray(X)) for X in inputs]
    return joblib.hash((rows.source.shape[1:], hashes, rows.columns))
