"""A fit's whole state at an epoch boundary, on disk, so that an interrupted fit can go on with the same result."""

import os
from pathlib import Path
from typing import Any

import torch
from skorch.callbacks import Callback

from ._net_state import net_state, restore_net


class FitState:
    """Saves a fit at every epoch's end, and takes it up again where it was left.

    Pass it (or its path) to ``fit(..., state=...)``. Where the file exists, stages that had ended are read from
    it, the interrupted one goes on from its last whole epoch, and the result equals that of a fit that was never
    interrupted: weights, T, both optimisers, schedules, generators and so the order of the batches come back.

    Parameters
    ----------
    path : str or Path
        A file. It is unpickled: load only files that you wrote.

    Raises
    ------
    ValueError
        From `fit`, if the file was written by a fit with other parameters or other data; before the first epoch, if a
        net keeps state where it would be lost.

    Notes
    -----
    What of a net is saved: modules, losses and optimisers that skorch has registered, numbers and other plain values
    that hang on the net (counters), the attributes of callbacks that end with an underscore, history and generators.
    A tensor, a module or an optimiser that hangs on the net unregistered, also inside a list or a dictionary, is an
    error; so is state of an update or a selection that cannot be saved.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        self._content: dict[str, Any] = {}

    def open(self, fingerprint: dict[str, str], seed: int) -> int:
        """Read the file, if there is one, and make sure that this is the fit that wrote it; return its seed."""
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
        """Whole epochs of the stage in the file."""
        return len(self._content["stages"].get(stage, {}).get("history", ()))

    def is_complete(self, stage: str) -> bool:
        """Say whether the stage had ended."""
        return self._content["stages"].get(stage, {}).get("complete", False)

    def save(self, stage: str, net: Any, *, complete: bool = False) -> None:
        """Write the net's state, replacing the file in one move."""
        self._content["stages"][stage] = {**net_state(net), "complete": complete}
        unfinished = self.path.with_name(self.path.name + ".part")
        torch.save(self._content, unfinished)
        unfinished.replace(self.path)

    def restore(self, stage: str, net: Any) -> None:
        """Put the saved state into an initialised net, if there is one."""
        if stage in self._content["stages"]:
            restore_net(net, self._content["stages"][stage])


class SaveState(Callback):
    """Restores a stage when its training begins and saves it after every epoch; the last of the callbacks."""

    def __init__(self, state: FitState, stage: str) -> None:
        self.state = state
        self.stage = stage

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Go on from the file, after the other callbacks have made a fresh start; refuse a net that loses state."""
        net_state(net)
        self.state.restore(self.stage, net)

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Save."""
        self.state.save(self.stage, net)
