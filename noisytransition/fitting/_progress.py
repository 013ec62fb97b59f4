"""Progress bars."""

import multiprocessing
import sys
from typing import Any

from skorch.callbacks import Callback

from ..nets import NoisyLabelNet
from ..nets._batches import Batch

# progress bar with elapsed and remaining time and the stage
_FORMAT = "{percentage:3.0f}%|{bar:25}| {elapsed}, {remaining} left: {desc}"


def progress_bar(title: str, items: Any = None, **done: Any) -> Any:
    """Iterate over items with a bar, only in the main process: bars of several processes would overwrite each other."""
    from tqdm.auto import tqdm  # the import warns in notebooks without widgets

    is_shown = multiprocessing.current_process().name == "MainProcess" and _is_seen(sys.stderr)
    return tqdm(items, title, bar_format=_FORMAT, leave=False, dynamic_ncols=True, disable=not is_shown, **done)


class ShowProgress(Callback):
    """Show a progress bar if standard error is a terminal or a notebook."""

    def __init__(self, title: str) -> None:
        self.title = title

    def on_train_begin(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        self.bar = progress_bar(self.title, initial=len(net.history), total=max(net.max_epochs, 1))

    def on_epoch_begin(self, net: NoisyLabelNet, dataset_train: Any = None, **kwargs: Any) -> None:
        self.n_rows = max(len(dataset_train), 1)
        self.bar.set_description_str(f"{self.title}, epoch {len(net.history)} of {net.max_epochs}", refresh=False)

    def on_batch_end(self, net: NoisyLabelNet, batch: Any = None, training: bool = False, **kwargs: Any) -> None:
        if training:
            self.bar.update(len(Batch.of(batch).label) / self.n_rows)

    def on_train_end(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        self.bar.close()
        self.bar = None  # it cannot be pickled


def _is_seen(stream: Any) -> bool:
    """Whether a stream is a notebook or a terminal; it may be None or closed."""
    if type(stream).__module__.startswith("ipykernel"):
        return True
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False
