"""The folder of a fit: each stage is saved after every epoch, so that an interrupted fit resumes to the same bits."""

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
# attributes of a net that skorch makes again, or that are saved separately
_OF_SKORCH = {"callbacks_", "history_", "initialized_", "virtual_params_"}


class FitState:
    """Folder with a file for each stage of a fit, which is replaced after every epoch.

    Parameters
    ----------
    path : str or Path
        A saved fit, an empty folder, or one that is made when the first epoch has ended.
    fingerprint : dict of str to str
        Tells this fit from others.
    seed : int
        Seed of the fit, unless the folder has one.
    """

    def __init__(self, path: str | os.PathLike, fingerprint: dict[str, str], seed: int) -> None:
        self.path = Path(path).absolute()  # a process of its own may have another working directory
        self.fingerprint, self.seed = fingerprint, seed
        self.writes = True  # of several processes that train together, the first does
        self._check_folder()
        for file in sorted(self.path.glob(f"*{_STAGE}")):
            saved = about(file, "fit")
            theirs = saved["fingerprint"]
            if changed := sorted(k for k in {*theirs, *fingerprint} if theirs.get(k) != fingerprint.get(k)):
                raise ValueError(
                    f"the fit saved in {str(self.path)!r} differs from this one in {changed}. Fit with the same data "
                    "and parameters, delete the folder, or use another path."
                )
            self.seed = saved["seed"]
        for file in self.path.glob(f"*{_STAGE}.*.part"):  # of a process that was killed while it wrote
            file.unlink(missing_ok=True)

    def _check_folder(self) -> None:
        """Raise unless the path is free, or a folder in which no file is of the user's."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{str(self.path)!r} is a file, not the folder of a saved fit. Use another path.")
        names = [file.name for file in self.path.glob("[!.]*")]
        if foreign := [name for name in names if not name.endswith((_STAGE, ".part"))]:
            raise ValueError(f"{str(self.path)!r} is not a saved fit: it has {foreign[:3]}. Use another path.")
        made_in = self.path if self.path.exists() else self.path.parent
        if not (made_in.is_dir() and os.access(made_in, os.W_OK)):
            raise ValueError(f"{str(made_in)!r} does not exist or cannot be written to. Use another path.")

    def _file(self, stage: str) -> Path:
        return self.path / (quote(stage, safe=" ()=,+") + _STAGE)

    def _about(self, stage: str) -> dict[str, Any]:
        return about(self._file(stage), "fit") if self._file(stage).exists() else {"epochs": 0, "complete": False}

    def epochs_done(self, stage: str) -> int:
        """Number of complete epochs of the stage that are saved."""
        return int(self._about(stage)["epochs"])

    def is_complete(self, stage: str) -> bool:
        """Whether the stage has ended."""
        return bool(self._about(stage)["complete"])

    def save(self, stage: str, net: "NoisyLabelNet", *, complete: bool = False) -> None:
        """Write the net's state, replacing the stage's file in one move."""
        if not self.writes:
            return
        self.path.mkdir(exist_ok=True)
        says = {"fingerprint": self.fingerprint, "seed": self.seed, "epochs": len(net.history), "complete": complete}
        write(self._file(stage), "fit", net_state(net), says)

    def restore(self, stage: str, net: "NoisyLabelNet") -> None:
        """Put the saved state into an initialised net, if there is one."""
        if self._file(stage).exists():
            restore_net(net, read(self._file(stage), "fit"), is_complete=self.is_complete(stage))


class SaveState(Callback):
    """Restore a stage when its training begins and save it after every epoch; the last of the callbacks."""

    def __init__(self, state: FitState, stage: str) -> None:
        self.state: FitState | None = state
        self.stage = stage

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Go on from the file, after the other callbacks have made a fresh start; refuse a net that loses state."""
        if self.state is not None:
            net_state(net)
            self.state.restore(self.stage, net)

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Save."""
        if self.state is not None:
            self.state.save(self.stage, net)

    def release(self) -> None:
        """Let go of the state: a trained net does not write the file again."""
        self.state = None


# ---------------------------------------------------------------------------- the state of a net
def net_state(net: "NoisyLabelNet") -> dict[str, Any]:
    """All that a training changes: attributes that end with an underscore, the history and torch's generators.

    Modules, losses, optimisers and schedules are saved by their ``state_dict``, others as they are. What cannot be
    saved of the net, its update or its selection is a ValueError; what else callbacks keep is left out.
    """
    roles = (net.update, net.select)
    return {
        "net": _learned(net, is_needed=True),
        "callbacks": {name: _learned(c, is_needed=any(c is role for role in roles)) for name, c in net.callbacks_},
        "history": plain_history(net.history),
        "generators": [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if _on_cuda(net) else [])],
    }


def restore_net(net: "NoisyLabelNet", state: dict[str, Any], *, is_complete: bool = False) -> None:
    """Put a state into an initialised net of the same kind, which goes on from it unless the state `is_complete`."""
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
                f"{type(thing).__name__}.{name} cannot be saved. Keep each module and optimiser in an attribute of its "
                "own, other state in numbers, text, arrays, tensors, and lists, tuples and dictionaries of these."
            )
    return found


def _put(thing: Any, found: dict[str, dict[str, Any]], device: Any, is_complete: bool) -> None:
    for name, state in found.get("parts", {}).items():
        part = uncompiled(getattr(thing, name, None))
        if part is not None:
            part.load_state_dict(state)
        elif not is_complete:
            raise ValueError(
                f"{type(thing).__name__} sets {name!r} after its training has begun, too late for the state of a saved "
                "fit: set it in on_train_begin."
            )
    for name, value in found.get("values", {}).items():
        if name.endswith("_") and not name.startswith("__"):  # none of Python's own, which a file may name
            setattr(thing, name, value.to(device) if isinstance(value, Tensor) else value)


def _on_cuda(net: "NoisyLabelNet") -> bool:
    return torch.device(net.device or "cpu").type == "cuda"
