"""One progress bar for a whole fit: all of its stages, folds and epochs, with the time left."""

import sys
from typing import Any

from skorch.callbacks import Callback
from torch.utils.data import Dataset

from .._processes import is_worker
from ..nets import Batch, NoisyLabelNet
from ..updates import MetaGradient, Update

# time of a row beside that of plain training: with clean rows in the step, and with the look-ahead (cost.md)
JOINT_COST, LOOK_AHEAD_COST = 1.4, 3.0
# of the bar: time gone, time left, and what is trained
_FORMAT = "{percentage:3.0f}%|{bar:25}| {elapsed}, {remaining} left: {desc}"


class Progress:
    """Work of a fit, planned and done, by stage; and a bar that shows it.

    A unit of work is the time that a row takes in an epoch of plain training. The plan is what a method expects at its
    start; it is corrected when a stage begins and when one ends earlier.

    Parameters
    ----------
    title : str
        What is fitted.
    shown : bool
        Whether there is a bar.
    """

    def __init__(self, title: str = "", *, shown: bool = False) -> None:
        self.title, self.shown = title, shown
        self.plan: dict[str, float] = {}
        self.done: dict[str, float] = {}
        self._bar: Any = None

    def __enter__(self) -> "Progress":
        if self.shown:
            from tqdm.auto import tqdm  # a notebook without widgets gives a warning

            self._bar = tqdm(desc=self.title, total=0.0, bar_format=_FORMAT, leave=False, dynamic_ncols=True)
        return self

    def __exit__(self, *args: object) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.close()

    def __getstate__(self) -> dict[str, Any]:
        """Of a copy in another process, which shows nothing."""
        return vars(self) | {"shown": False, "_bar": None}

    def expect(self, plan: dict[str, float]) -> None:
        """Add to the work that is planned, or correct it."""
        self.plan |= plan
        self._draw()

    def at(self, stage: str, share: float, *, skipped: bool = False) -> None:
        """Say how much of a stage is done; what is skipped says nothing of the speed."""
        self.done[stage] = share * self.plan[stage]
        self._draw(skipped=skipped)

    def end(self, part: str) -> None:
        """All of a stage is done, and of those that belong to it: it may have been in another process."""
        for stage in self.plan:
            if stage == part or stage.startswith(f"{part}_"):
                self.done[stage] = self.plan[stage]
        self._draw()

    def say(self, text: str, *, at_once: bool = False) -> None:
        """Say what is trained now: when the bar is drawn next, or at once."""
        if self._bar is not None:
            self._bar.set_description_str(f"{self.title}, {text.replace('_', ' ')}", refresh=at_once)

    def _draw(self, *, skipped: bool = False) -> None:
        bar = self._bar
        if bar is None:
            return
        bar.total = sum(self.plan.values())
        more = sum(self.done.values()) - bar.n
        if skipped:
            bar.n, bar.initial = bar.n + more, bar.initial + more
        else:
            bar.update(more)


class ShowProgress(Callback):
    """Tell the fit's progress how far the training of a stage is."""

    reads_batches = False

    def __init__(self, progress: Progress, stage: str) -> None:
        self.progress: Progress | None = progress
        self.stage = stage

    def on_epoch_begin(self, net: NoisyLabelNet, dataset_train: Dataset | None = None, **kwargs: Any) -> None:
        """Begin an epoch; of a fit that is resumed, not the first."""
        epoch = len(net.history)
        self.n_seen, self.n_rows = 0, max(len(dataset_train), 1)  # type: ignore[arg-type]
        if self.progress is not None:
            self.progress.at(self.stage, (epoch - 1) / max(net.max_epochs, epoch), skipped=True)
            self.progress.say(f"{self.stage}, epoch {epoch} of {net.max_epochs}")

    def on_batch_end(self, net: NoisyLabelNet, batch: Any = None, training: bool = False, **kwargs: Any) -> None:
        """Count the rows of the batch."""
        if training and self.progress is not None:
            self.n_seen += len(Batch.of(batch).label)
            epochs = len(net.history) - 1 + min(self.n_seen / self.n_rows, 1.0)
            self.progress.at(self.stage, epochs / max(net.max_epochs, len(net.history)))

    def release(self) -> None:
        """Let go of the bar."""
        self.progress = None


def progress_of(title: str, verbose: int) -> Progress:
    """Progress of a fit: with a bar if `verbose` is 1 and somebody is there to see it."""
    # bars of several processes overwrite each other
    return Progress(title, shown=verbose == 1 and not is_worker() and _is_seen(sys.stderr))


def _is_seen(stream: Any) -> bool:
    """Whether a stream is a notebook or a terminal; a service has none, or one that is closed."""
    if type(stream).__module__.startswith("ipykernel"):
        return True
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def cost_of(update: Update, clean_weight: float) -> float:
    """Time of a row in a training, beside that of a row in plain training."""
    if isinstance(update, MetaGradient):
        return 1.0 + (LOOK_AHEAD_COST - 1.0) / update.every
    return JOINT_COST if clean_weight else 1.0
