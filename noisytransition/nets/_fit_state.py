"""Save the whole state of a fit after each epoch, so that an interrupted fit resumes with the same result."""

import contextlib
import os
import re
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from filelock import FileLock
from skorch.callbacks import Callback

from ..storage import UNFINISHED, check, checksum, locked, read, unlock, write
from ._net_state import net_state, restore_net

if TYPE_CHECKING:
    from ._net import NoisyLabelNet

# files of a folder: fingerprint and seed, the lock, and one for each stage
_FIT, _LOCK, _STAGE = "fit.state", "fit.lock", ".stage"
# names of these two, also of those that are being written
_OURS = re.compile(rf"({re.escape(_FIT)}|.+\{_STAGE})({UNFINISHED})?")
# what to do about a stage that cannot be read
_AGAIN = "Delete this file, and its stage is trained again"


class FitState:
    """Save a fit after every epoch, and resume it.

    Pass it (or its path) to ``fit(..., state=...)``. If the folder exists, stages that have ended are read from it, and
    the interrupted stage continues after its last complete epoch. The result equals that of a fit that was not
    interrupted: saved are all modules, losses and optimisers that skorch registers, the learned attributes of
    callbacks, and the random generators, which determine the order of the batches. Small networks that are trained at
    once, on clean rows, are saved when all of them have ended.

    Parameters
    ----------
    path : str or Path
        A folder, which is made if it does not exist. It has a file for the fit and one for each stage. They hold
        tensors and plain data, with a checksum: reading them runs no code, whoever wrote them.

    Raises
    ------
    ValueError
        From `fit`, before the first epoch: if the path is not that of a saved fit, cannot be written to, or has a
        damaged file; if the fit had other parameters, other data or other versions of the libraries; if a net keeps
        state where it would be lost.
    RuntimeError
        From `fit`, if another fit is using the folder.

    Notes
    -----
    What of a net is saved: modules, losses and optimisers that skorch has registered, numbers and other plain values
    that the net keeps (counters), the attributes of callbacks that end with an underscore, history and generators.
    A tensor, a module or an optimiser that the net keeps without registering it, also inside a list or a dictionary,
    is an error; so is state of an update or a selection that cannot be saved.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import CrossEntropyClassifier, FitState
    >>> X, y = load_iris(return_X_y=True)
    >>> state = FitState(os.path.join(tempfile.mkdtemp(), "fit"))
    >>> clf = CrossEntropyClassifier(max_epochs=2, random_state=0).fit(X, y, state=state)
    >>> sorted(os.listdir(state.path))  # the same call reads these files and trains nothing
    ['cross_entropy.stage', 'fit.state']
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path).absolute()  # a process of its own may have another working directory
        self._fit: dict[str, Any] = {}
        self._read: dict[str, dict[str, Any]] = {}
        self._lock: FileLock | None = None
        self._made = self._reads_only = False

    def for_reading(self) -> "FitState":
        """Copy that writes nothing, for the processes that train together with the one that does."""
        other = copy(self)
        other._reads_only, other._read, other._lock = True, {}, None
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Of a copy in another process, which works for the fit that holds the lock."""
        return vars(self) | {"_read": {}, "_lock": None}

    # ---- the folder
    def open(self, fingerprint: dict[str, str], seed: int) -> int:
        """Lock the folder, check that what is in it belongs to this fit, and return the seed of the fit."""
        self._check_folder()
        self._made = not self.path.exists()
        try:
            self.path.mkdir(exist_ok=True)
            if not os.access(self.path, os.W_OK):
                raise PermissionError("it is read-only")
            self._lock = locked(self.path / _LOCK, f"the saved fit {str(self.path)!r}")
        except OSError as error:
            raise ValueError(f"{str(self.path)!r} cannot be written to: {error}. Use another path.") from error
        try:
            self._fit = self._checked(fingerprint, seed)
        except BaseException:
            self.close()
            raise
        return self._fit["seed"]

    def close(self) -> None:
        """Let other fits use the folder; remove it if it was made for this fit and nothing was saved."""
        lock, self._lock, self._read = self._lock, None, {}
        if lock is None:
            return
        unlock(lock)
        if self._made and self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()

    def _check_folder(self) -> None:
        """Raise, and leave the disk as it is, unless the path is free, an empty folder, or a saved fit."""
        if not self.path.parent.is_dir():
            raise ValueError(f"the folder of {str(self.path)!r} does not exist; make it, or use another path.")
        if self.path.is_dir():
            names = sorted(path.name for path in self.path.iterdir())
            foreign = [n for n in names if n != _LOCK and not n.startswith(".") and not _OURS.fullmatch(n)]
            if not foreign and (_FIT in names or not any(name.endswith(_STAGE) for name in names)):
                return
            why = f"it has {foreign[:3]}" if foreign else f"it has no {_FIT}"
        elif self.path.exists() or self.path.is_symlink():
            why = "it is a file, and not a folder"
        else:
            return
        raise ValueError(f"{str(self.path)!r} is not a saved fit: {why}. Use another path; nothing was changed.")

    def _checked(self, fingerprint: dict[str, str], seed: int) -> dict[str, Any]:
        """Content of the file of the fit; a new one if there is none."""
        fit: dict[str, Any] = {"fingerprint": fingerprint, "seed": seed}
        if (self.path / _FIT).exists():
            with _remedy("Delete the folder"):
                fit = read(self.path / _FIT, "fit")
        saved = fit["fingerprint"]
        if changed := sorted(k for k in {*saved, *fingerprint} if saved.get(k) != fingerprint.get(k)):
            raise ValueError(
                f"the fit saved in {str(self.path)!r} differs from this one in {changed}. Fit with the same data and "
                "parameters, delete the folder, or use another path. If a fit itself changes one of these (a cache, a "
                "counter), give it an attribute fit_name."
            )
        for path in self.path.iterdir():
            if path.name.endswith(_STAGE):
                with _remedy(_AGAIN):
                    check(path, "stage")
            elif path.name != _FIT and _OURS.fullmatch(path.name):  # of a process that was killed while it wrote
                path.unlink(missing_ok=True)
        return fit

    # ---- stages
    def epochs_done(self, stage: str) -> int:
        """Number of complete epochs of the stage that are saved."""
        return len(self._stage(stage).get("history", ()))

    def is_complete(self, stage: str) -> bool:
        """Whether the stage has ended."""
        return self._stage(stage).get("complete", False)

    def save(self, stage: str, net: "NoisyLabelNet", *, complete: bool = False) -> None:
        """Write the net's state, replacing the stage's file in one move."""
        if self._reads_only:
            return
        state = {**net_state(net), "complete": complete, "fit": self._name()}  # first: an error leaves no file
        if not (self.path / _FIT).exists():
            write(self.path / _FIT, "fit", self._fit)
        write(self._file(stage), "stage", state)

    def restore(self, stage: str, net: "NoisyLabelNet") -> None:
        """Put the saved state into an initialised net, if there is one."""
        if state := self._stage(stage):
            del self._read[stage]
            restore_net(net, state)

    def _stage(self, stage: str) -> dict[str, Any]:
        """Saved state of a stage, which is kept in memory until it is put into a net; empty if there is none."""
        if stage not in self._read and self._file(stage).exists():
            with _remedy(_AGAIN):
                state = read(self._file(stage), "stage")
            if state.pop("fit") != self._name():
                raise ValueError(f"{str(self._file(stage))!r} belongs to another fit. Delete it, or use another path.")
            self._read[stage] = state
        return self._read.get(stage, {})

    def _file(self, stage: str) -> Path:
        return self.path / (quote(stage, safe=" ()=,+") + _STAGE)

    def _name(self) -> str:
        """What the files of one fit have in common."""
        return checksum(repr((sorted(self._fit["fingerprint"].items()), self._fit["seed"])).encode())


@contextlib.contextmanager
def _remedy(remedy: str) -> Iterator[None]:
    """Say what to do about a file that cannot be read."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{error} {remedy}, or use another path.") from error


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
