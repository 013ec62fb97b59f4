"""Load a saved classifier."""

import copy
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..base._classifier import NoisyLabelClassifier, name_of, with_attributes
from ..fitting._parameters import built_in, check_device
from ..nets import MLP, NoisyLabelNet
from ..persistence import read

# net parameters that affect predictions
_OF_PREDICTION = ("module", "batch_size", "device", "dtype", "precision", "compile", "iterator_valid")


def load(
    path: str | PathLike,
    module: type[nn.Module] | nn.Module | None = None,
    *,
    cls: type[NoisyLabelClassifier] | None = None,
    **net_params: Any,
) -> Any:
    """Load a classifier saved by `NoisyLabelClassifier.save`. Loading never runs code from the file.

    The loaded classifier has the fitted attributes and all parameters that are plain data. Its predictions are
    bit-identical on the same processor with the same torch version. Its `net_` cannot continue training.

    Parameters
    ----------
    path : str or Path
        File written by `save`.
    module : nn.Module class or instance, optional
        Module that was fitted, unless it was a built-in one: the file contains its weights but not its code. An
        instance is copied. A class is called with the ``module__...`` parameters.
    cls : class, optional
        Class of the classifier, if it is not part of this library.
    **net_params
        Parameters to set: those that cannot be saved (callbacks, functions, optimiser classes), or new values such as
        ``device="cpu"``.

    Returns
    -------
    NoisyLabelClassifier

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from noisytransition import CrossEntropyClassifier, load
    >>> X, y = np.eye(4).repeat(10, axis=0), np.arange(40) // 20
    >>> path = os.path.join(tempfile.mkdtemp(), "clf.safetensors")
    >>> clf = CrossEntropyClassifier(random_state=0).fit(X, y)
    >>> clf.save(path)
    >>> load(path).predict(X[::10])
    array([0, 0, 1, 1])
    """
    content = read(Path(path), "classifier")
    if content["module"] is not None and module is None:
        fact = f"{str(path)!r} contains the weights of {content['module']} but not its code"
        raise ValueError(f"{fact}. Pass its class or an instance: load(path, module=...).")
    if missing := [k for k in content["not_saved"] if k not in net_params and not isinstance(module, nn.Module)]:
        raise ValueError(f"{missing} cannot be saved. Pass them again: load(path, {missing[0]}=...).")
    from . import METHODS  # at module level, the import would be circular

    classes = {name_of(known): known for known in ([cls] if cls else METHODS.values())}
    if content["class"] not in classes:
        raise ValueError(f"the saved classifier is a {content['class']}. Pass this class: load(path, cls=...).")
    params = content["params"] | net_params | ({} if module is None else {"module": module})
    clf = with_attributes(classes[content["class"]](**params), content["fitted"])
    if clf.device is not None:
        check_device(clf.device)
    with torch.random.fork_rng(devices=()):  # keep the user's random state: initial weights are drawn
        clf.net_ = _net(clf, content["weights"])
    clf.net_.plain_module_.load_state_dict(content["weights"])
    if content["loss"]:
        clf.net_.criterion_.load_state_dict(content["loss"])
    clf.net_.history_ = list(clf.histories_.values())[-1]
    return clf


def _net(clf: NoisyLabelClassifier, weights: dict[str, Tensor]) -> NoisyLabelNet:
    params = {k: v for k, v in clf._shared_params().items() if k.startswith(_OF_PREDICTION)}
    params["classes"] = np.arange(len(clf.classes_))
    if isinstance(clf.module, str):
        layers = [weight for weight in weights.values() if weight.ndim == 2]
        n_in = layers[0].shape[1]
        params |= {"module": MLP, **built_in(clf.module, n_in, layers[-1].shape[0], np.zeros(n_in), np.ones(n_in))}
    elif isinstance(clf.module, nn.Module):
        params = {k: v for k, v in params.items() if not k.startswith("module__")}
        params["module"] = copy.deepcopy(clf.module)
    return NoisyLabelNet(**params, criterion=clf._loss, callbacks__print_log=None).initialize()
