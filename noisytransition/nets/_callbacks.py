"""skorch callbacks of the library's own."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from skorch.callbacks import Callback, EarlyStopping
from torch import Tensor
from torch.nn import functional as F

from ._batches import Rows, whole

# rows in one forward pass
_CHUNK = 1024


class TransitionTrace(Callback):
    """Keeps T at the start and after every epoch.

    `EarlyStopping(load_best=True)` restores the module alone; T goes back to the same epoch here.

    Attributes
    ----------
    states_ : list of dict
        State of the loss that holds T; entry 0 is the start.
    matrices_ : list of ndarray of shape (n_classes, n_classes)
        T at the same times.
    """

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Note the start."""
        self.states_: list[dict[str, Tensor]] = []
        self.matrices_: list[NDArray[np.float64]] = []
        self.on_epoch_end(net)

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Note T after the epoch."""
        self.states_.append(_copied(net.criterion_))
        self.matrices_.append(net.criterion_.transition_matrix)

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Follow an EarlyStopping that went back to its best epoch."""
        for _, callback in net.callbacks_:
            if isinstance(callback, EarlyStopping) and callback.load_best and callback.best_epoch_:
                net.criterion_.load_state_dict(self.states_[callback.best_epoch_])


class TransitionJudge(Callback):
    """Lets a criterion decide, after every epoch, whether the T it trains through is better than the T it keeps."""

    def on_epoch_end(self, net: Any, dataset_valid: Any = None, **kwargs: Any) -> None:
        """Show it the outputs of the rows that are held out."""
        net.criterion_.judge([] if dataset_valid is None else list(_held_out(net, dataset_valid)))


class KeepBest(Callback):
    """Ends a training with the module and the loss of its best epoch.

    Parameters
    ----------
    monitor : str
        Score in the history; the first of equal epochs is kept.
    lower_is_better : bool, default=True
    """

    def __init__(self, monitor: str, *, lower_is_better: bool = True) -> None:
        self.monitor = monitor
        self.lower_is_better = lower_is_better

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Forget earlier trainings."""
        self.best_ = np.inf
        self.states_: tuple[dict[str, Tensor], dict[str, Tensor]] | None = None

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Note an epoch better than all before."""
        score = net.history[-1, self.monitor] * (1 if self.lower_is_better else -1)
        if score < self.best_:
            self.best_, self.states_ = score, (_copied(net.plain_module_), _copied(net.criterion_))

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Go back to the best epoch."""
        if self.states_ is not None:
            net.plain_module_.load_state_dict(self.states_[0])
            net.criterion_.load_state_dict(self.states_[1])
            self.states_ = None


class CleanLoss(Callback):
    """Writes the cross-entropy of clean rows into the history, as ``valid_clean_loss``; draws no random number.

    Parameters
    ----------
    rows : Rows
        Clean rows that the net is not trained on.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows: Rows | None = rows

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Forget earlier trainings."""
        self.best_ = np.inf

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Score the clean head."""
        rows: Any = self.rows
        loss = sum(_summed_loss(logits, y) for logits, y in _evaluated(net, rows, np.arange(len(rows)))) / len(rows)
        net.history.record("valid_clean_loss", loss)
        net.history.record("valid_clean_loss_best", bool(loss < self.best_))
        self.best_ = min(loss, self.best_)

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Let go of the rows: the net outlives its training."""
        self.rows = None


class HeldOut(Callback):
    """Keeps the posteriors of rows that the net is not trained on, after some epochs and at the end.

    Parameters
    ----------
    sets : sequence of Rows
    epochs : sequence of int

    Attributes
    ----------
    posteriors_ : dict of int to list of ndarray of shape (n_samples, n_classes)
        By number of epochs, one array for each set.
    """

    def __init__(self, sets: Sequence[Rows], epochs: Sequence[int]) -> None:
        self.sets = sets
        self.epochs = epochs

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Forget earlier trainings."""
        self.posteriors_: dict[int, list[NDArray]] = {}

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Look, if it is time."""
        if len(net.history) in self.epochs:
            self._look(net)

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Look at the end too, which an EarlyStopping may have chosen; let go of the rows."""
        self._look(net)
        self.sets = ()

    def _look(self, net: Any) -> None:
        self.posteriors_[len(net.history)] = [net.predict_proba(rows) for rows in self.sets]

    def at(self, epochs: int) -> list[NDArray]:
        """Return the posteriors after so many epochs, or at the end of a training that ended before."""
        return self.posteriors_[min(epochs, max(self.posteriors_))]


class Truncation(Callback):
    """Marks training rows whose noisy label the net finds improbable: their label becomes ``y + n_classes``.

    A mark stays with its row, however rows are shuffled, until the next look at all of them.

    Parameters
    ----------
    threshold : float
        Rows whose label has at most this probability are marked.
    start : int
        Epochs before the first look.
    every : int
        Epochs between looks.
    """

    def __init__(self, threshold: float, start: int, every: int) -> None:
        self.threshold = threshold
        self.start = start
        self.every = every

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Keep all rows."""
        self.kept_: NDArray[np.bool_] | None = None

    def on_epoch_begin(self, net: Any, dataset_train: Any = None, **kwargs: Any) -> None:
        """Look at all training rows when it is time; after a resumed fit, mark them as they were."""
        rows, places = whole(dataset_train)
        n_classes = len(net.classes)
        y = rows.y[places] % n_classes
        waited = len(net.history) - 1 - self.start
        if waited >= 0 and waited % self.every == 0:
            self.kept_ = net.predict_proba(dataset_train)[np.arange(len(y)), y] > self.threshold
            if not self.kept_.any():
                warnings.warn(
                    f"truncation={self.threshold} leaves no row to train on: the net gives no label more than this "
                    "probability. Lower it, or start later.",
                    UserWarning,
                    stacklevel=2,
                )
        if self.kept_ is not None:
            rows.y[places] = y + n_classes * ~self.kept_


def _copied(part: torch.nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in part.state_dict().items()}


def _held_out(net: Any, dataset: Any) -> Iterator[tuple[Tensor, Tensor]]:
    """Logits and labels of validation rows; a data set of the user's own comes as skorch would load it."""
    rows, places = whole(dataset)
    if hasattr(rows, "batch"):
        yield from _evaluated(net, rows, places)
    else:
        yield from ((net.evaluation_step(batch), batch[1]) for batch in net.get_iterator(dataset, training=False))


def _evaluated(net: Any, rows: Any, places: NDArray) -> Iterator[tuple[Tensor, Tensor]]:
    """Logits and labels of rows, some at a time; draws no random number, as a DataLoader would."""
    for i in range(0, len(places), _CHUNK):
        batch = rows.batch(places[i : i + _CHUNK])
        yield net.evaluation_step(batch), batch[1]


def _summed_loss(logits: Tensor, y: Tensor) -> float:
    return F.cross_entropy(logits.float(), y.to(logits.device), reduction="sum").item()
