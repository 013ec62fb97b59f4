"""Checkpoints: each stage of a fit is saved after every epoch, and an interrupted fit resumes bit-identically."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import torch
from skorch.callbacks import Callback
from torch import Tensor

from ..nets._checks import uncompiled
from ._storage import about, is_plain, plain_history, read, write

if TYPE_CHECKING:
    from ..nets._net import NoisyLabelNet

_STAGE = ".stage"
# attributes of a net that skorch restores, or that are saved separately
_OF_SKORCH = {"callbacks_", "history_", "initialized_", "virtual_params_"}


class FitState:
    """Folder with a checkpoint file for each stage of a fit.

    `path` is a saved fit, an empty folder, or a folder to create after the first epoch. `fingerprint` identifies the
    fit. A seed saved in the folder replaces `seed`.
    """

    def __init__(self, path: str | os.PathLike, fingerprint: dict[str, str], seed: int) -> None:
        self.path = Path(path).absolute()  # worker processes may have another working directory
        self.fingerprint, self.seed = fingerprint, seed
        self.writes = True  # False for all but the first of several processes
        self._check_folder()
        for file in sorted(self.path.glob(f"*{_STAGE}")):
            saved = about(file, "fit")
            theirs = saved["fingerprint"]
            if changed := sorted(k for k in {*theirs, *fingerprint} if theirs.get(k) != fingerprint.get(k)):
                raise ValueError(
                    f"the fit saved in {str(self.path)!r} differs from this one in {changed}. Use the same data and "
                    "parameters, delete the folder, or use another path."
                )
            self.seed = saved["seed"]
        for file in self.path.glob(f"*{_STAGE}.*.part"):  # from a killed process
            file.unlink(missing_ok=True)

    def _check_folder(self) -> None:
        """Raise unless the path is free, or a folder without files of the user."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{str(self.path)!r} is a file, not the folder of a saved fit. Use another path.")
        names = [file.name for file in self.path.glob("[!.]*")]
        if foreign := [name for name in names if not name.endswith((_STAGE, ".part"))]:
            raise ValueError(f"{str(self.path)!r} is not a saved fit, it contains {foreign[:3]}. Use another path.")
        made_in = self.path if self.path.exists() else self.path.parent
        if not (made_in.is_dir() and os.access(made_in, os.W_OK)):
            raise ValueError(f"{str(made_in)!r} does not exist or is not writable. Use another path.")

    def _file(self, stage: str) -> Path:
        return self.path / (quote(stage, safe=" ()=,+") + _STAGE)

    def _about(self, stage: str) -> dict[str, Any]:
        return about(self._file(stage), "fit") if self._file(stage).exists() else {"epochs": 0, "complete": False}

    def epochs_done(self, stage: str) -> int:
        """Number of saved epochs of the stage."""
        return int(self._about(stage)["epochs"])

    def is_complete(self, stage: str) -> bool:
        """Whether the stage has ended."""
        return bool(self._about(stage)["complete"])

    def save(self, stage: str, net: "NoisyLabelNet", *, complete: bool = False) -> None:
        """Replace the file of the stage by the state of the net."""
        if not self.writes:
            return
        self.path.mkdir(exist_ok=True)
        says = {"fingerprint": self.fingerprint, "seed": self.seed, "epochs": len(net.history), "complete": complete}
        write(self._file(stage), "fit", net_state(net), says)

    def restore(self, stage: str, net: "NoisyLabelNet") -> None:
        """Load the saved state, if any, into an initialised net."""
        if self._file(stage).exists():
            restore_net(net, read(self._file(stage), "fit"), is_complete=self.is_complete(stage))


class SaveState(Callback):
    """Callback that restores a stage before training and saves it after each epoch. It must be the last callback."""

    def __init__(self, state: FitState, stage: str) -> None:
        self.state: FitState | None = state
        self.stage = stage

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Restore the stage after other callbacks were reset. Raise if the net has state that cannot be saved."""
        if self.state is not None:
            net_state(net)
            self.state.restore(self.stage, net)

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Save the stage."""
        if self.state is not None:
            self.state.save(self.stage, net)

    def release(self) -> None:
        """Stop saving after the stage."""
        self.state = None


# ---------------------------------------------------------------------------- the state of a net
def net_state(net: "NoisyLabelNet") -> dict[str, Any]:
    """State of a training: attributes that end with an underscore, the history and the states of torch's generators.

    Modules, losses, optimisers and schedules are saved as their ``state_dict``. Raises a ValueError for attributes of
    the net, its update or its selection that cannot be saved; omits such attributes of other callbacks.
    """
    roles = (net.update, net.select)
    return {
        "net": _learned(net, is_needed=True),
        "callbacks": {name: _learned(c, is_needed=any(c is role for role in roles)) for name, c in net.callbacks_},
        "history": plain_history(net.history),
        "generators": [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if _on_cuda(net) else [])],
    }


def restore_net(net: "NoisyLabelNet", state: dict[str, Any], *, is_complete: bool = False) -> None:
    """Load a state into an initialised net of the same kind. A net whose state `is_complete` is not trained further."""
    _put(net, state["net"], net.device, is_complete)
    for name, callback in net.callbacks_:
        _put(callback, state["callbacks"].get(name, {}), net.device, is_complete)
    net.history_ = state["history"]
    torch.set_rng_state(state["generators"][0])
    if _on_cuda(net):
        torch.cuda.set_rng_state_all(state["generators"][1:])


def _learned(thing: Any, *, is_needed: bool) -> dict[str, dict[str, Any]]:
    """Attributes that end with an underscore."""
    names = [name for name in vars(thing) if name.endswith("_") and name not in _OF_SKORCH]
    found: dict[str, dict[str, Any]] = {"parts": {}, "values": {}}
    for name in names:
        value = getattr(thing, name)
        is_part = hasattr(value, "state_dict") and not isinstance(value, type)
        saved = uncompiled(value).state_dict() if is_part else value
        if is_plain(saved):
            found["parts" if is_part else "values"][name] = saved
        elif is_needed or is_part:
            raise ValueError(
                f"{type(thing).__name__}.{name} cannot be saved. Use one attribute for each module or optimiser, and "
                "numbers, text, arrays, tensors, or lists, tuples and dictionaries of these for other state."
            )
    return found


def _put(thing: Any, found: dict[str, dict[str, Any]], device: Any, is_complete: bool) -> None:
    for name, state in found.get("parts", {}).items():
        part = uncompiled(getattr(thing, name, None))
        if part is not None:
            part.load_state_dict(state)
        elif not is_complete:
            raise ValueError(
                f"{type(thing).__name__} sets {name!r} after the training begins, so a saved fit cannot restore it. "
                "Set it in on_train_begin."
            )
    for name, value in found.get("values", {}).items():
        if name.endswith("_") and not name.startswith("__"):  # a crafted file could name a dunder attribute
            setattr(thing, name, value.to(device) if isinstance(value, Tensor) else value)


def _on_cuda(net: "NoisyLabelNet") -> bool:
    return torch.device(net.device or "cpu").type == "cuda"
