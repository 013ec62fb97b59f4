"""Save the whole state of a fit after each epoch, so that an interrupted fit resumes with the same result."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from skorch.callbacks import Callback

from ._net_state import net_state, restore_net

if TYPE_CHECKING:
    from ._net import NoisyLabelNet


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
        From `fit`, if the file was written by a fit with other parameters or other data; before the first epoch, if a
        net keeps state where it would be lost.

    Notes
    -----
    What of a net is saved: modules, losses and optimisers that skorch has registered, numbers and other plain values
    that the net keeps (counters), the attributes of callbacks that end with an underscore, history and generators.
    A tensor, a module or an optimiser that the net keeps without registering it, also inside a list or a dictionary,
    is an error; so is state of an update or a selection that cannot be saved.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path).absolute()  # a process of its own may have another working directory
        self._content: dict[str, Any] = {}

    def open(self, fingerprint: dict[str, str], seed: int) -> int:
        """Read the file, if there is one, check that it belongs to this fit, and return the seed of the fit."""
        content: dict[str, Any] = {}
        if not self.path.parent.is_dir():
            raise ValueError(f"the folder of {str(self.path)!r} does not exist; make it, or use another path.")
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

    def save(self, stage: str, net: "NoisyLabelNet", *, complete: bool = False) -> None:
        """Write the net's state, replacing the file in one move."""
        self._content["stages"][stage] = {**net_state(net), "complete": complete}
        self._write()

    def restore(self, stage: str, net: "NoisyLabelNet") -> None:
        """Put the saved state into an initialised net, if there is one."""
        if stage in self._content["stages"]:
            restore_net(net, self._content["stages"][stage])

    def part(self, stage: str) -> "FitState":
        """State of one stage in a file of its own, for a training that may be in another process."""
        self._write()  # with the seed: the part is of no use without it
        part = FitState(self.path.with_name(f"{self.path.name}.{stage}"))
        fingerprint, seed, done = (self._content[name] for name in ("fingerprint", "seed", "stages"))
        if part.open(fingerprint, seed) != seed:  # of a fit whose own file is gone
            part._content |= {"seed": seed, "stages": {}}
        part._content["stages"] |= {stage: done[stage]} if stage in done else {}
        return part

    def absorb(self, stage: str) -> None:
        """Take in the file of such a part, and delete it."""
        part = self.part(stage)
        if not part.is_complete(stage):
            raise RuntimeError(f"the process that trained {stage!r} did not write {str(part.path)!r}.")
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
        """Let go of the state: a trained net neither holds the other stages nor writes the file again."""
        self.state = None
