"""Save a fitted classifier, and load it: tensors and JSON in one safetensors file, which runs no code."""

import copy
import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from sklearn.utils.validation import check_is_fitted
from skorch.history import History
from skorch.utils import to_device
from torch import Tensor, nn

from .._files import checksum, replace
from ..nets import MLP, NoisyLabelNet
from ._packing import pack, unpack

if TYPE_CHECKING:
    from ._base import NoisyLabelClassifier

_FORMAT, _VERSION = "noisytransition classifier", 1
# methods of a net that predictions go through
_PREDICTION = ("infer", "prepare", "evaluation_step", "forward", "forward_iter", "predict", "predict_proba")
# parameters of a net that predictions depend on
_OF_PREDICTION = ("module", "batch_size", "device", "dtype", "compile", "iterator_valid", "classes")


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
        _read_header(path)  # a file of another kind is not overwritten
    tensors: dict[str, Tensor] = {}
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "class": _name_of(type(clf)),
        "module": None if clf.module is None else _name_of(type(clf.net_.plain_module_)),
        "sizes": _sizes(clf.net_.plain_module_) if clf.module is None else [],
        "params": _plain_params(clf, tensors),
        "fitted": _fitted(clf, tensors),
        "weights": pack(dict(clf.net_.plain_module_.state_dict()), tensors),
        "unlisted": pack(_unlisted(clf.net_.plain_module_), tensors),
        "loss": pack(_loss_state(clf), tensors),
    }
    text = json.dumps(content)
    metadata = {_FORMAT: text, "checksum": _checksum(text, tensors)}
    replace(path, [to_bytes(tensors, metadata)])


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
        If the file is not a saved classifier or is damaged, if the module or the class is missing, or if the module
        has other weights than the file.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from noisytransition import CrossEntropyClassifier, load
    >>> X, y = np.eye(4).repeat(10, axis=0), np.arange(40) // 20
    >>> path = os.path.join(tempfile.mkdtemp(), "clf.safetensors")
    >>> clf = CrossEntropyClassifier(random_state=0).fit(X, y)
    >>> clf.save(path)
    >>> bool((load(path).predict_proba(X) == clf.predict_proba(X)).all())
    True
    """
    path = Path(path)
    content, tensors = _read(path)
    clf = _class_of(content, cls)(module, **(unpack(content["params"], tensors) | net_params))
    _set(clf, unpack(content["fitted"], tensors))
    if content["module"] is not None and module is None:
        raise ValueError(
            f"{str(path)!r} has the weights of {content['module']}, and not its code: give the class or an instance as "
            "load(path, module=...)."
        )
    with torch.random.fork_rng(devices=()):  # the weights are drawn, before they are replaced
        clf.net_ = _net(clf, content["sizes"])
    _load_state(clf.net_.plain_module_, unpack(content["weights"], tensors), "module")
    for inner, values in unpack(content["unlisted"], tensors).items():
        moved = {k: to_device(v, clf.net_.device) if isinstance(v, Tensor) else v for k, v in values.items()}
        _set(clf.net_.plain_module_.get_submodule(inner), moved)
    _load_state(clf.net_.criterion_, unpack(content["loss"], tensors), "loss")
    clf.net_.history_ = list(clf.histories_.values())[-1]
    return clf


# ---------------------------------------------------------------------------- what is saved
def _plain_params(clf: "NoisyLabelClassifier", tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Parameters that are plain data."""
    packed = []
    for name, value in clf.get_params(deep=False).items():
        try:
            packed.append([name, pack(value, tensors)])
        except TypeError:  # a function, a class, a callback
            continue
    return {"dict": [pair for pair in packed if pair[0] != "module"]}


def _fitted(clf: "NoisyLabelClassifier", tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Fitted attributes, but for the net."""
    params, packed = clf.get_params(deep=False), []
    for name, value in vars(clf).items():
        if name in params or name == "net_" or name.startswith("_") or not name.endswith("_"):
            continue
        try:
            packed.append([name, pack(_plain_histories(value) if name == "histories_" else value, tensors)])
        except TypeError as error:
            raise ValueError(f"{type(clf).__name__}.{name} cannot be saved: {error}. Pickle the classifier.") from error
    return {"dict": packed}


def _plain_histories(histories: dict[str, History]) -> dict[str, History]:
    """Histories without what callbacks of the user's recorded that is not plain data."""
    plain = {stage: [{k: v for k, v in row.items() if _is_plain(v)} for row in h] for stage, h in histories.items()}
    return {stage: History(rows) for stage, rows in plain.items()}


def _is_plain(value: object) -> bool:
    try:
        pack(value, {})
    except TypeError:
        return False
    return True


def _loss_state(clf: "NoisyLabelClassifier") -> dict[str, Tensor]:
    """Weights of the loss, where methods of the classifier need it."""
    loss = clf.net_.criterion_
    with torch.random.fork_rng(devices=()):
        kind = type(clf._loss())
    return dict(loss.state_dict()) if type(loss) is kind else {}


def _unlisted(module: nn.Module) -> dict[str, dict[str, Any]]:
    """Arrays and tensors of a module and those inside it that its ``state_dict`` leaves out."""
    found = {}
    for path, inner in module.named_modules():
        values = {name: inner._buffers[name] for name in inner._non_persistent_buffers_set}
        found[path] = values | {k: v for k, v in vars(inner).items() if isinstance(v, np.ndarray | Tensor)}
    return {path: values for path, values in found.items() if values}


def _name_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


# ---------------------------------------------------------------------------- the file
def _checksum(text: str, tensors: dict[str, Tensor]) -> str:
    whole = to_bytes({name: tensors[name] for name in sorted(tensors)})
    return checksum(text.encode() + whole)


def _read_header(path: Path) -> tuple[dict[str, Any], str]:
    """Content of the JSON and the checksum."""
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
        content = json.loads(metadata[_FORMAT])
        version = content["version"]
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"{str(path)!r} is not a saved classifier, or is damaged.") from error
    if version != _VERSION:
        raise ValueError(
            f"{str(path)!r} has version {version} of the format, and this version of noisytransition reads version "
            f"{_VERSION}."
        )
    return content, metadata.get("checksum", "") + metadata[_FORMAT]


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """JSON and tensors of a file whose checksum is right."""
    content, signed = _read_header(path)
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{str(path)!r} is damaged: {error}.") from error
    text = signed[len(checksum(b"")) :]
    if signed != _checksum(text, tensors) + text:
        raise ValueError(f"{str(path)!r} is damaged: its checksum is wrong.")
    return content, tensors


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
    if clf.module is None:
        params |= {"module": MLP, "module__n_in": sizes[0], "module__n_out": sizes[1]}
    elif isinstance(clf.module, nn.Module):
        params = {k: v for k, v in params.items() if not k.startswith("module__")}
        params["module"] = copy.deepcopy(clf.module)
    return NoisyLabelNet(**params, criterion=clf._loss(), callbacks__print_log=None).initialize()


def _load_state(part: nn.Module, state: dict[str, Tensor], name: str) -> None:
    """Load weights; raise if names, shapes or types differ."""
    mine = part.state_dict()
    if name == "loss" and not state:
        return
    differ = sorted(
        key for key in {*mine, *state} if key not in mine or key not in state or _kind(mine[key]) != _kind(state[key])
    )
    if differ:
        key = differ[0]
        saved, given = (f"{_kind(s[key])}" if key in s else "nothing" for s in (state, mine))
        raise ValueError(
            f"the {name} has other weights than the saved one, in {differ[:3]}: {key} is {given}, and {saved} was "
            "saved. Give the module that was fitted."
        )
    part.load_state_dict(state)


def _set(thing: object, values: dict[str, Any]) -> None:
    """Set attributes, but for Python's own, such as ``__dict__``, which a file of someone else's may name."""
    for name, value in values.items():
        if not name.startswith("__"):
            setattr(thing, name, value)


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
