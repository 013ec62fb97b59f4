"""Hash parameters and data, to check that a saved fit is the same fit."""

import sys
from typing import Any

import numpy as np
import torch
from joblib.hashing import NumpyHasher
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from torch import Tensor

from ..labels._columns import SourceLabels
from ..nets import Rows
from ._parameters import as_python


class _Hasher(NumpyHasher):
    """joblib's hash, of tensors and CSR matrices by value. As in a pickle, functions and classes are names."""

    def save(self, obj: Any) -> None:
        if isinstance(obj, Tensor):
            values = obj.detach().cpu().contiguous()
            obj = str(values.dtype), tuple(values.shape), values.reshape(-1).view(torch.uint8).numpy()
        elif issparse(obj):
            obj = obj.shape, obj.data, obj.indices.astype(np.int64), obj.indptr.astype(np.int64)
        super().save(obj)


def describe_fit(
    estimator: BaseEstimator, noisy: Rows, clean: Rows, sources: SourceLabels | None = None
) -> dict[str, str]:
    """Hash the class, parameters (except callbacks) and data of a fit, and versions that can affect its result.

    Raises a ValueError for what cannot be pickled.
    """
    left_out = ("verbose", "callbacks", "n_jobs")
    params = {k: as_python(v) for k, v in estimator.get_params(deep=False).items() if not k.startswith(left_out)}
    described = {"class": type(estimator)} | params
    described |= {"sources": sources, "X, y": [noisy.source, noisy.index, noisy.columns]}
    of_clean = None if clean.source is noisy.source else clean.source
    described["clean set"] = [of_clean, clean.index, clean.columns]
    described["version of Python"] = sys.version_info[:2]
    for name in ("noisytransition", "numpy", "skorch", "torch"):
        described[f"version of {name}"] = sys.modules[name].__version__
    hashes = {}
    for name, value in described.items():
        try:  # joblib memory-maps large arrays for other processes
            hashes[name] = str(_Hasher(coerce_mmap=True).hash(value))
        except Exception as error:  # the user's code may raise any exception
            raise ValueError(
                f"{name}={value!r} cannot be hashed for a saved fit: {error}. Pass an object that can be pickled."
            ) from error
    return hashes
