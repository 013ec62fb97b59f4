"""Safetensors files with tensors, and with other values as JSON; checkpoints of the stages of a fit.

Each stage of a fit is saved after every epoch, and an interrupted fit resumes bit-identically. Reading a file runs no
code. A crafted file can run code in `torch.load(weights_only=True)` before torch 2.10.
"""

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from skorch.callbacks import Callback
from skorch.history import History
from torch import Tensor

from .nets._net import NoisyLabelNet, uncompiled

# content of a file, and version of the format
_FORMAT = "noisytransition {}, version 5"
_SCALARS = (bool, int, float, str, type(None))


def _parts_of_array(array: NDArray) -> list[Any]:
    """Numbers as a tensor; text and objects as a list, with their type and shape."""
    if array.dtype.kind in "biuf":
        return [torch.from_numpy(np.array(array, order="C"))]
    if array.dtype.kind not in "OU":
        raise TypeError(f"an array of {array.dtype} is not plain data")
    return [array.ravel().tolist(), array.dtype.str, array.shape]


def _array(parts: Sequence[Any]) -> NDArray:
    return parts[0].numpy() if len(parts) == 1 else np.array(*parts[:2]).reshape(parts[2])


def _epochs(history: History) -> list[dict[str, Any]]:
    """Rows of a history, without batches and without values that cannot be written."""
    return [{k: v for k, v in row.items() if is_plain(v)} | {"batches": []} for row in history]


# by type: its parts, and how a value is made of them. base/_classifier.py adds named tuples
KINDS: dict[type, tuple[Callable[[Any], Any], Callable[[list[Any]], Any]]] = {
    **{kind: (list, kind) for kind in (list, tuple, set, frozenset)},
    **{kind: (dict.items, kind) for kind in (dict, OrderedDict)},
    Counter: (dict.items, lambda items: Counter(dict(items))),
    History: (_epochs, History),
    np.ndarray: (_parts_of_array, _array),
    np.generic: (lambda scalar: [np.asarray(scalar)], lambda parts: parts[0][()]),
    torch.dtype: (lambda dtype: [torch.empty(0, dtype=dtype)], lambda parts: parts[0].dtype),
    torch.device: (lambda device: [str(device)], lambda parts: torch.device(*parts)),
}


def write(path: Path, kind: str, value: Any) -> None:
    """Write a file atomically: a killed process leaves the previous file intact.

    `kind` is "fit" or "classifier". `value` consists of tensors and `KINDS` (otherwise TypeError).
    """
    tensors: dict[str, Tensor] = {}
    text = json.dumps([_FORMAT.format(kind), _encoded(value, tensors)])
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    whole = save(tensors | {"json": torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)})
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(whole)
    part.replace(path)


def read(path: Path, kind: str) -> Any:
    """Read a value; ValueError if the file is damaged or of another kind or version."""
    content = path.read_bytes()
    try:
        tensors = load(content)
        label, value = json.loads(tensors["json"].numpy().tobytes())
        if label != _FORMAT.format(kind):
            raise ValueError(f"it is a {label}")
        return _decoded(value, tensors)
    except Exception as error:  # a crafted file can raise any error
        fact = f"{str(path)!r} is not a saved {kind} of this release, or is damaged: {error}"
        raise ValueError(f"{fact}. Use another path.") from error


def is_plain(value: Any) -> bool:
    """Whether a value can be written to a file."""
    try:
        _encoded(value, {})
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _encoded(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Value as JSON: a list of its kind and its parts, or a scalar. Its tensors are added to `tensors`."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Tensor):
        tensors[name := str(len(tensors))] = value
        return ["Tensor", name]
    kind = np.generic if isinstance(value, np.generic) else type(value)
    if kind not in KINDS:
        raise TypeError(f"{kind.__name__} is not plain data")
    return [kind.__name__, *(_encoded(part, tensors) for part in KINDS[kind][0](value))]


def _decoded(value: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(value, list):
        return value
    name, *parts = value
    if name == "Tensor":
        return tensors[parts[0]]
    make = {kind.__name__: make for kind, (_, make) in KINDS.items()}[name]
    return make([_decoded(part, tensors) for part in parts])


# ---------------------------------------------------------------------------- interrupted fits
# attributes of a net that skorch restores, or that are saved separately
_OF_SKORCH = {"callbacks_", "history_", "initialized_", "virtual_params_"}


class FitState:
    """Folder with a checkpoint file for each stage of a fit, which `fingerprint` identifies.

    A seed saved in the folder replaces `seed`.
    """

    def __init__(self, path: str | PathLike, fingerprint: dict[str, str], seed: int) -> None:
        self.path = Path(path).absolute()  # worker processes may have another working directory
        self.fingerprint = fingerprint
        self.seed = seed
        self.path.mkdir(exist_ok=True)
        for file in sorted(self.path.glob("*.stage")):
            saved = read(file, "fit")
            if changed := sorted({name for name, _ in saved["fingerprint"].items() ^ fingerprint.items()}):
                fact = f"the fit saved in {str(path)!r} differs from this one in {changed}"
                raise ValueError(f"{fact}. Use the same data and parameters, delete the folder, or use another path.")
            self.seed = saved["seed"]

    def saved(self, stage: str) -> dict[str, Any] | None:
        """Read the state of the stage, if it was saved."""
        file = self.path / f"{stage}.stage"
        return read(file, "fit") if file.exists() else None

    def save(self, stage: str, net: "NoisyLabelNet", *, complete: bool = False) -> None:
        """Replace the file of the stage by the state of the net."""
        about = {"fingerprint": self.fingerprint, "seed": self.seed, "complete": complete}
        write(self.path / f"{stage}.stage", "fit", about | net_state(net))


class SaveState(Callback):
    """Callback that restores a stage before training and saves it after each epoch. It must be the last callback."""

    def __init__(self, state: FitState, stage: str) -> None:
        self.state: FitState | None = state
        self.stage = stage

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Restore the stage after other callbacks were reset. Raise if the net has state that cannot be saved."""
        if self.state is not None:
            net_state(net)
            if saved := self.state.saved(self.stage):
                restore_net(net, saved)

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Save the stage."""
        if self.state is not None:
            self.state.save(self.stage, net)

    def release(self) -> None:
        """Stop saving after the stage."""
        self.state = None


def net_state(net: "NoisyLabelNet") -> dict[str, Any]:
    """State of a training: attributes that end with an underscore, history and random generators.

    Raises for attributes of the net, its update or selection that cannot be saved; omits those of other callbacks.
    """
    is_on_gpu = torch.device(net.device or "cpu").type == "cuda"
    return {
        "net": _learned(net, is_needed=True),
        "callbacks": {name: _learned(c, is_needed=c in (net.update, net.select)) for name, c in net.callbacks_},
        "history": net.history,
        "generators": [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if is_on_gpu else [])],
    }


def _learned(thing: Any, *, is_needed: bool) -> dict[str, tuple[bool, Any]]:
    """Attributes that end with an underscore: whether it is a part with a ``state_dict``, and its value."""
    learned = {}
    for name in [name for name in vars(thing) if name.endswith("_") and name not in _OF_SKORCH]:
        value = getattr(thing, name)
        is_part = hasattr(value, "state_dict") and not isinstance(value, type)
        saved = uncompiled(value).state_dict() if is_part else value
        if is_plain(saved):
            learned[name] = is_part, saved
        elif is_needed or is_part:
            advice = "one attribute for each module or optimiser, and numbers, text, arrays or tensors for other state"
            raise ValueError(f"{type(thing).__name__}.{name} cannot be saved. Use {advice}.")
    return learned


def restore_net(net: "NoisyLabelNet", state: dict[str, Any]) -> None:
    """Load a state into an initialised net of the same kind. A complete one is not trained further."""
    saved = [(net, state["net"])] + [(callback, state["callbacks"].get(name, {})) for name, callback in net.callbacks_]
    for thing, attributes in saved:
        for name, (is_part, value) in attributes.items():
            part = uncompiled(getattr(thing, name, None))
            if not is_part:
                setattr(thing, name, value.to(net.device) if isinstance(value, Tensor) else value)
            elif part is not None or not state["complete"]:  # schedules and optimisers of updates exist in a training
                part.load_state_dict(value)
    net.history_ = state["history"]
    of_cpu, *of_gpus = state["generators"]
    torch.set_rng_state(of_cpu)
    torch.cuda.set_rng_state_all(of_gpus)
