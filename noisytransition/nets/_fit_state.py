"""Save the whole state of a fit after each epoch, so that an interrupted fit resumes with the same result."""

import os
import pickle
from pathlib import Path
from typing import Any

import torch
from skorch.callbacks import Callback
from skorch.history import History
from skorch.utils import to_device


class FitState:
    """Save a fit after every epoch, and resume it.

    Pass it (or its path) to ``fit(..., state=...)``. If the file exists, stages that have ended are read from it, and
    the interrupted stage continues after its last complete epoch. The result equals that of a fit that was not
    interrupted: saved are all modules, losses and optimisers that skorch registers, the learned attributes of
    callbacks, and the random generators, which determine the order of the batches.

    Parameters
    ----------
    path : str or Path
        A file. It is unpickled: load only files that you wrote.

    Raises
    ------
    ValueError
        From `fit`, if the file was written by a fit with other parameters or other data.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        self._content: dict[str, Any] = {}

    def open(self, fingerprint: dict[str, str], seed: int) -> int:
        """Read the file, if there is one, check that it belongs to this fit, and return the seed of the fit."""
        content: dict[str, Any] = {}
        if self.path.exists():
            content = torch.load(self.path, map_location="cpu", weights_only=False)
        saved = content.get("fingerprint", fingerprint)
        if changed := sorted(k for k in {*saved, *fingerprint} if saved.get(k) != fingerprint.get(k)):
            raise ValueError(
                f"the fit saved in {str(self.path)!r} differs from this one in {changed}. Fit with the same data and "
                "parameters, delete the file, or use another path."
            )
        self._content = {"fingerprint": fingerprint, "seed": seed, "stages": {}, **content}
        return self._content["seed"]

    def epochs_done(self, stage: str) -> int:
        """Number of complete epochs of the stage in the file."""
        return len(self._content["stages"].get(stage, {}).get("history", ()))

    def is_complete(self, stage: str) -> bool:
        """Whether the stage has ended."""
        return self._content["stages"].get(stage, {}).get("complete", False)

    def save(self, stage: str, net: Any, *, complete: bool = False) -> None:
        """Write the net's state, replacing the file in one move."""
        self._content["stages"][stage] = {**_net_state(net), "complete": complete}
        self._write()

    def restore(self, stage: str, net: Any) -> None:
        """Put the saved state into an initialised net, if there is one."""
        if stage in self._content["stages"]:
            _restore_net(net, self._content["stages"][stage])

    def part(self, stage: str) -> "FitState":
        """State of one stage in a file of its own, for a training that may be in another process."""
        part = FitState(self.path.with_name(f"{self.path.name}.{stage}"))
        part.open(self._content["fingerprint"], self._content["seed"])
        done = self._content["stages"]
        part._content["stages"] |= {stage: done[stage]} if stage in done else {}
        return part

    def absorb(self, stage: str) -> None:
        """Take in the file of such a part, and delete it."""
        part = self.part(stage)
        self._content["stages"] |= part._content["stages"]
        self._write()
        part.path.unlink(missing_ok=True)

    def _write(self) -> None:
        """Replace the file in one move."""
        unfinished = self.path.with_name(self.path.name + ".part")
        torch.save(self._content, unfinished)
        unfinished.replace(self.path)


class SaveState(Callback):
    """Restore a stage when its training begins and save it after every epoch; the last of the callbacks."""

    def __init__(self, state: FitState, stage: str) -> None:
        self.state = state
        self.stage = stage

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Go on from the file, after the other callbacks have made a fresh start."""
        self.state.restore(self.stage, net)

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Save."""
        self.state.save(self.stage, net)


def _registered(net: Any) -> dict[str, Any]:
    """Modules, criteria and optimisers of a net: all that skorch keeps account of.

    Raises
    ------
    ValueError
        If the net has state in an attribute that skorch does not know of: it would be lost.
    """
    names = [f"{name}_" for name in net._modules + net._criteria + net._optimizers]
    given = net.get_params(deep=False)
    if lost := [name for name, value in vars(net).items() if name not in {*names, *given} and _has_state(value)]:
        raise ValueError(
            f"{type(net).__name__} keeps state in {lost}, which a saved fit would lose. Set modules, losses and "
            "optimisers in initialize_module, initialize_criterion or initialize_optimizer, under names that end with "
            "'_': skorch then registers them."
        )
    return {name: getattr(getattr(net, name), "_orig_mod", getattr(net, name)) for name in names}


def _has_state(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or (hasattr(value, "state_dict") and not isinstance(value, type))


def _net_state(net: Any) -> dict[str, Any]:
    return {
        "parts": {name: part.state_dict() for name, part in _registered(net).items()},
        "callbacks": {name: _callback_state(callback) for name, callback in net.callbacks_},
        "history": net.history.to_list(),
        "generators": [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if _on_cuda(net) else [])],
    }


def _restore_net(net: Any, state: dict[str, Any]) -> None:
    for name, part in _registered(net).items():
        part.load_state_dict(state["parts"][name])
    for name, callback in net.callbacks_:
        _restore_callback(callback, state["callbacks"].get(name, {}), net.device)
    net.history_ = History(state["history"])
    torch.set_rng_state(state["generators"][0])
    if _on_cuda(net):
        torch.cuda.set_rng_state_all(state["generators"][1:])


def _callback_state(callback: Any) -> dict[str, Any]:
    """What a callback has learned: its attributes with a trailing underscore, as far as they can be saved."""
    learned = {k: v for k, v in vars(callback).items() if k.endswith("_") and not isinstance(v, type)}
    saved = {k: v.state_dict() if hasattr(v, "state_dict") else v for k, v in learned.items()}
    return {k: v for k, v in saved.items() if _picklable(v)}


def _restore_callback(callback: Any, state: dict[str, Any], device: Any) -> None:
    for name, value in state.items():
        if hasattr(getattr(callback, name, None), "load_state_dict"):
            getattr(callback, name).load_state_dict(value)
        else:
            setattr(callback, name, to_device(value, device) if isinstance(value, torch.Tensor) else value)


def _picklable(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:  # pickling calls user code: anything may come out
        return False
    return True


def _on_cuda(net: Any) -> bool:
    return torch.device(net.device or "cpu").type == "cuda"
