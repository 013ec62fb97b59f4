"""What one call of `fit` knows of itself: its seed, how many stages it has trained, where it is saved."""

from os import PathLike
from typing import Any

import joblib
import numpy as np

from ..nets import FitState, NoisyLabelNet, Rows, SaveState
from ._describe import describe


class Run:
    """One fit under way.

    Parameters
    ----------
    seed : int
    state : FitState or None
    noisy : Rows
    meta : Rows or None
        The clean rows, for stages that watch their loss on them.
    """

    def __init__(self, seed: int, state: FitState | None, noisy: Rows, meta: Rows | None) -> None:
        self.seed = seed
        self.state = state
        self.noisy = noisy
        self.meta = meta
        self.n_stages = 0

    @classmethod
    def start(
        cls, estimator: Any, seed: int, state: FitState | str | PathLike | None, noisy: Rows, meta: Rows | None
    ) -> "Run":
        """Open the state, if one is wanted."""
        if state is None:
            return cls(seed, None, noisy, meta)
        state = state if isinstance(state, FitState) else FitState(state)
        seed = state.open(_fingerprint(estimator, noisy, meta), seed)
        return cls(seed, state, noisy, meta)

    def callbacks(self, stage: str) -> list[tuple[str, SaveState]]:
        """Return the callback that saves a stage."""
        return [] if self.state is None else [("save_state", SaveState(self.state, stage))]

    def train(self, stage: str, net: NoisyLabelNet, data: Rows) -> None:
        """Train an initialised net, or as much of it as its saved state leaves to do."""
        self.n_stages += 1
        if self.state is None:
            net.partial_fit(data, data.y)
        elif self.state.is_complete(stage):
            self.state.restore(stage, net)
        else:
            net.partial_fit(data, data.y, epochs=net.max_epochs - self.state.epochs_done(stage))
            self.state.save(stage, net, complete=True)


def _fingerprint(estimator: Any, noisy: Rows, meta: Rows | None) -> dict[str, str]:
    """Describe the fit: its class, its parameters but for callbacks, its data."""
    params = estimator.get_params(deep=False)
    plain = {k: describe(v) for k, v in params.items() if not k.startswith(("verbose", "callbacks"))}
    sets = {"X, y": noisy, "clean set": meta}
    data = {name: "" if rows is None else joblib.hash(_content(rows)) for name, rows in sets.items()}
    return {"class": type(estimator).__name__, **plain, **data}


def _content(rows: Rows) -> tuple:
    """What of a data set can be hashed: all of an array, length and labels of a torch Dataset."""
    return (rows.X if isinstance(rows.X, np.ndarray) else len(rows), rows.y, rows.y_noisy)
