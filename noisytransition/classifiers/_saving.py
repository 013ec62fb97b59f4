"""Save a fitted classifier, and load it: plain data and tensors in one file, which runs no code."""

import copy
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ..nets import MLP, NoisyLabelNet, check_sized, restore_unlisted, unlisted
from ..storage import check_kind, check_plain, is_plain, plain_history, read, safe_attributes, write
from ..transition import Calibration, TransitionUncertainty, in_class_order
from ._checks import check_device
from ._parameters import MODULES, is_default

if TYPE_CHECKING:
    from ._base import NoisyLabelClassifier

# the kind of file, and the named tuples that fitted attributes may be
_KIND, _NAMED = "classifier", (Calibration, TransitionUncertainty)
# methods of a net that predictions go through
_PREDICTION = (
    "infer",
    "prepare",
    "evaluation_step",
    "forward",
    "forward_iter",
    "predict",
    "predict_proba",
    "predict_log_proba",
)
# parameters of a net that predictions depend on
_OF_PREDICTION = (
    "module",
    "batch_size",
    "device",
    "dtype",
    "precision",
    "compile",
    "iterator_valid",
    "classes",
)


def save(clf: "NoisyLabelClassifier", path: str | PathLike) -> None:
    """Write a fitted classifier: its class, its parameters that are plain data, fitted attributes and weights."""
    check_is_fitted(clf, "net_")
    if changed := [name for name in _PREDICTION if getattr(type(clf.net_), name) is not getattr(NoisyLabelNet, name)]:
        raise ValueError(
            f"{type(clf).__name__} predicts with {changed} of its own net, {type(clf.net_).__name__}, which cannot be "
            "saved. Pickle the classifier."
        )
    path = Path(path)
    if not path.parent.is_dir():
        raise ValueError(f"the folder of {str(path)!r} does not exist; make it, or use another path.")
    if path.exists():
        check_kind(path, _KIND)  # a file of another kind is not overwritten
    module, given = clf.net_.plain_module_, _params(clf).get("module", clf.module)
    content = {
        "class": _name_of(type(clf)),
        "module": None if is_default(given) else _name_of(type(module)),
        "default_module": given if is_default(given) else None,
        "sizes": _sizes(module) if is_default(given) else [],
        "params": _plain_params(clf),
        "not_saved": _not_saved(clf),
        "fitted": _fitted(clf),
        "weights": module.state_dict(),
        "unlisted": unlisted("the module", module),
        "loss": _loss_state(clf),
    }
    write(path, _KIND, content, _NAMED)


def load(
    path: str | PathLike,
    module: type[nn.Module] | nn.Module | None = None,
    *,
    cls: "type[NoisyLabelClassifier] | None" = None,
    **net_params: Any,
) -> Any:
    """Load a classifier that `NoisyLabelClassifier.save` wrote. Reading the file runs no code, whoever wrote it.

    The classifier predicts as the one that was saved, to the bit on the same processor with the same torch. It has its
    fitted attributes and those parameters that are plain data. `net_` predicts, and does not go on training.

    Parameters
    ----------
    path : str or Path
        File that `save` wrote.
    module : nn.Module class or instance, optional
        The module that was fitted, if it was not the default one: the file has its weights and not its code. An
        instance is copied. A class is called with the parameters ``module__...``.
    cls : class, optional
        The classifier's class, if it is not one of the library's.
    **net_params
        Parameters that are set in the loaded classifier: those that were not saved (callbacks, functions, optimiser
        classes), or others, such as ``device="cpu"``.

    Returns
    -------
    NoisyLabelClassifier

    Raises
    ------
    ValueError
        If the file is not a saved classifier or is damaged, if the module, the class, or a parameter of the module
        that is no plain data (``module__act=nn.Tanh``) is missing, if the module has other weights than the file, or if
        this machine does not have the `device` (give ``device="cpu"``).

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
    path = Path(path)
    content = read(path, _KIND, _NAMED)
    _check_given(content["not_saved"], module, net_params)
    params = {name: value for name, value in content["params"].items() if name != "module"}
    default = content.get("default_module")  # files of earlier versions have none
    clf = _class_of(content, cls)(default if module is None else module, **(params | net_params))
    if clf.device is not None:
        check_device(clf.device)
    _set(clf, content["fitted"])
    if content["module"] is not None and module is None:
        raise ValueError(
            f"{str(path)!r} has the weights of {content['module']}, and not its code: give the class or an instance as "
            "load(path, module=...)."
        )
    with torch.random.fork_rng(devices=()):  # the weights are drawn, before they are replaced
        clf.net_ = _net(clf, content["sizes"])
    check_sized(clf.net_.plain_module_)
    _load_state(clf.net_.plain_module_, content["weights"], "module")
    restore_unlisted(clf.net_.plain_module_, content["unlisted"], clf.net_.device)
    _load_state(clf.net_.criterion_, content["loss"], "loss")
    clf.net_.history_, clf._params_of_fit = list(clf.histories_.values())[-1], of_network(clf)
    return clf


# ---------------------------------------------------------------------------- what is saved
def of_network(clf: "NoisyLabelClassifier") -> dict[str, Any]:
    """Parameters that predictions depend on, but for the device, which another machine may not have."""
    params = clf.get_params(deep=False)
    return {k: value for k, value in params.items() if k.startswith(_OF_PREDICTION) and k != "device"}


def _params(clf: "NoisyLabelClassifier") -> dict[str, Any]:
    """Parameters of the classifier; those that predictions depend on as they were in `fit`, if they were set later."""
    params, now = clf.get_params(deep=False), of_network(clf)
    fitted = getattr(clf, "_params_of_fit", now)  # pickles of earlier versions do not have them
    return {name: value for name, value in params.items() if name not in now} | fitted


def _plain_params(clf: "NoisyLabelClassifier") -> dict[str, Any]:
    """Parameters that are plain data: no functions, classes or callbacks; of what is of pandas, the values."""
    params = _params(clf)
    frames = {k: np.asarray(in_class_order(v, clf.classes_)) for k, v in params.items() if hasattr(v, "iloc")}
    params |= frames
    return {name: value for name, value in params.items() if name != "module" and is_plain(value, _NAMED)}


def _not_saved(clf: "NoisyLabelClassifier") -> list[str]:
    """Parameters that predictions depend on and that are no plain data, but for the module."""
    missing = _params(clf).keys() - _plain_params(clf).keys() - {"module"}
    return sorted(name for name in missing if name.startswith(_OF_PREDICTION))


def _check_given(names: list[str], module: type[nn.Module] | nn.Module | None, given: dict[str, Any]) -> None:
    """Raise if a parameter that predictions depend on is neither in the file nor given."""
    of_instance = isinstance(module, nn.Module)  # which needs no parameters
    if missing := [k for k in names if k not in given and not (of_instance and k.startswith("module__"))]:
        raise ValueError(
            f"the classifier had {missing}, which are not plain data and were not saved: give them again, as "
            f"load(path, {missing[0]}=...)."
        )


def _fitted(clf: "NoisyLabelClassifier") -> dict[str, Any]:
    """Fitted attributes, but for the net."""
    left_out = {*clf.get_params(deep=False), "net_"}
    names = [k for k in vars(clf) if k not in left_out and k.endswith("_") and not k.startswith("_")]
    fitted = {name: getattr(clf, name) for name in names}
    fitted["histories_"] = {stage: plain_history(history) for stage, history in clf.histories_.items()}
    for name, value in fitted.items():
        try:
            check_plain(value, _NAMED)
        except TypeError as error:
            raise ValueError(f"{type(clf).__name__}.{name} cannot be saved: {error}. Pickle the classifier.") from error
    return fitted


def _loss_state(clf: "NoisyLabelClassifier") -> dict[str, Tensor]:
    """Weights of the loss, where methods of the classifier need it."""
    loss = clf.net_.criterion_
    with torch.random.fork_rng(devices=()):
        made = clf._loss()
    if type(loss) is not type(made):
        return {}
    if _kinds(made.state_dict()) != _kinds(state := loss.state_dict()):
        raise ValueError(
            f"parameters of {type(clf).__name__} were changed after fit, and make a {type(loss).__name__} with other "
            "weights than the fitted one: set them back, or fit again."
        )
    return state


def _name_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _class_of(content: dict[str, Any], cls: "type[NoisyLabelClassifier] | None") -> "type[NoisyLabelClassifier]":
    """Class of the classifier: the user's, or one of the table of methods."""
    from . import METHODS  # which has classes that save themselves

    name, known = content["class"], {_name_of(method): method for method in METHODS.values()}
    if cls is None and name not in known:
        raise ValueError(f"the classifier is a {name}, which is not one of the library's: give load(path, cls=...).")
    if cls is not None and _name_of(cls) != name:
        raise ValueError(f"the classifier is a {name}, not a {_name_of(cls)}.")
    return known[name] if cls is None else cls


# ---------------------------------------------------------------------------- the net
def _sizes(module: nn.Module) -> list[int]:
    """Inputs and outputs of an MLP."""
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    return [layers[0].in_features, layers[-1].out_features]


def _net(clf: "NoisyLabelClassifier", sizes: list[int]) -> NoisyLabelNet:
    """Net that predicts, with the classifier's module."""
    params = {k: v for k, v in clf._shared_params(clf.classes_).items() if k.startswith(_OF_PREDICTION)}
    if is_default(clf.module):
        sized = {"module": MLP, "module__n_in": sizes[0], "module__n_out": sizes[1]}
        params |= sized | MODULES[clf.module]
    elif isinstance(clf.module, nn.Module):
        params = {k: v for k, v in params.items() if not k.startswith("module__")}
        params["module"] = copy.deepcopy(clf.module)
    return NoisyLabelNet(**params, criterion=clf._loss(), callbacks__print_log=None).initialize()


def _load_state(part: nn.Module, state: dict[str, Tensor], name: str) -> None:
    """Load weights; raise if names, shapes or types differ."""
    if name == "loss" and not state:
        return
    mine, theirs = _kinds(part.state_dict()), _kinds(state)
    if differ := sorted(key for key in {*mine, *theirs} if mine.get(key) != theirs.get(key)):
        key = differ[0]
        saved, given = (kinds.get(key, "nothing") for kinds in (theirs, mine))
        raise ValueError(
            f"the {name} has other weights than the saved one, in {differ[:3]}: {key} is {given}, and {saved} was "
            "saved. Give the module that was fitted."
        )
    part.load_state_dict(state)


def _set(thing: object, values: dict[str, Any]) -> None:
    for name, value in safe_attributes(values).items():
        setattr(thing, name, value)


def _kinds(state: dict[str, Tensor]) -> dict[str, str]:
    """Type and shape of each tensor."""
    return {k: f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}" for k, value in state.items()}
