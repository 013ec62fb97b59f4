"""Checkpoints: each stage of a fit is saved after every epoch, and an interrupted fit resumes bit-identically."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from skorch.callbacks import Callback
from torch import Tensor

from ..nets._checks import uncompiled
from ._storage import is_plain, read, write

if TYPE_CHECKING:
    from ..nets._net import NoisyLabelNet

# attributes of a net that skorch restores, or that are saved separately
_OF_SKORCH = {"callbacks_", "history_", "initialized_", "virtual_params_"}


class FitState:
    """Folder with a checkpoint file for each stage of a fit, which `fingerprint` identifies.

    A seed saved in the folder replaces `seed`.
    """

    def __init__(self, path: str | os.PathLike, fingerprint: dict[str, str], seed: int) -> None:
        self.path = Path(path).absolute()  # worker processes may have another working directory
        self.fingerprint = fingerprint
        self.seed = seed
        self.writes = True  # False for all but the first of several processes
        self.path.mkdir(exist_ok=True)
        for file in sorted(self.path.glob("*.stage")):
            saved = read(file, "fit")
            if changed := sorted({name for name, _ in saved["fingerprint"].items() ^ fingerprint.items()}):
                raise ValueError(
                    f"the fit saved in {str(path)!r} differs from this one in {changed}. Use the same data and "
                    "parameters, delete the folder, or use another path."
                )
            self.seed = saved["seed"]

    def _file(self, stage: str) -> Path:
        return self.path / f"{stage}.stage"

    def progress(self, stage: str) -> tuple[int, bool]:
        """Number of saved epochs of the stage, and whether it has ended."""
        if not self._file(stage).exists():
            return 0, False
        saved = read(self._file(stage), "fit")
        return len(saved["history"]), saved["complete"]

    def save(self, stage: str, net: "NoisyLabelNet", *, complete: bool = False) -> None:
        """Replace the file of the stage by the state of the net."""
        if self.writes:
            about = {"fingerprint": self.fingerprint, "seed": self.seed, "complete": complete}
            write(self._file(stage), "fit", about | net_state(net))

    def restore(self, stage: str, net: "NoisyLabelNet") -> None:
        """Load the saved state, if any, into an initialised net."""
        if self._file(stage).exists():
            restore_net(net, read(self._file(stage), "fit"))


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
        if self.state is not None:
            self.state.save(self.stage, net)

    def release(self) -> None:
        """Stop saving after the stage."""
        self.state = None


def net_state(net: "NoisyLabelNet") -> dict[str, Any]:
    """State of a training: attributes that end with an underscore, history and random generators.

    Modules, losses, optimisers and schedules are saved as their ``state_dict``. Raises a ValueError for attributes of
    the net, its update or its selection that cannot be saved; omits such attributes of other callbacks.
    """
    return {
        "net": _learned(net, is_needed=True),
        "callbacks": {name: _learned(c, is_needed=c in (net.update, net.select)) for name, c in net.callbacks_},
        "history": net.history,
        "generators": [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if _on_cuda(net) else [])],
    }


def _learned(thing: Any, *, is_needed: bool) -> dict[str, tuple[bool, Any]]:
    """Attributes that end with an underscore: whether it is a part with a ``state_dict``, and its value."""
    found = {}
    for name in [name for name in vars(thing) if name.endswith("_") and name not in _OF_SKORCH]:
        value = getattr(thing, name)
        is_part = hasattr(value, "state_dict") and not isinstance(value, type)
        saved = uncompiled(value).state_dict() if is_part else value
        if is_plain(saved):
            found[name] = is_part, saved
        elif is_needed or is_part:
            raise ValueError(
                f"{type(thing).__name__}.{name} cannot be saved. Use one attribute for each module or optimiser, and "
                "numbers, text, arrays, tensors, or lists, tuples and dictionaries of these for other state."
            )
    return found


def restore_net(net: "NoisyLabelNet", state: dict[str, Any]) -> None:
    """Load a state into an initialised net of the same kind. A complete one is not trained further."""
    saved = [(net, state["net"])] + [(callback, state["callbacks"].get(name, {})) for name, callback in net.callbacks_]
    for thing, attributes in saved:
        for name, (is_part, value) in attributes.items():
            part = uncompiled(getattr(thing, name, None))
            if not is_part:
                setattr(thing, name, value.to(net.device) if isinstance(value, Tensor) else value)
            elif part is not None:
                part.load_state_dict(value)
            elif not state["complete"]:
                raise ValueError(
                    f"{type(thing).__name__} sets {name!r} after the training begins, so a saved fit cannot restore "
                    "it. Set it in on_train_begin."
                )
    net.history_ = state["history"]
    torch.set_rng_state(state["generators"][0])
    if _on_cuda(net):
        torch.cuda.set_rng_state_all(state["generators"][1:])


def _on_cuda(net: "NoisyLabelNet") -> bool:
    return torch.device(net.device or "cpu").type == "cuda"
