"""One call of `fit`: its data, seed and saved state, and the training of each of its nets."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from typing import Any

import torch
from numpy.typing import NDArray
from skorch.callbacks import Callback
from skorch.dataset import ValidSplit
from skorch.history import History
from torch import nn

from ..nets import CleanBatches, NoisyLabelNet, Rows
from ..nets._callbacks import CleanLoss
from ..nets._checks import check_start
from ..persistence._fit_state import FitState, SaveState
from ..selection import Selection
from ..updates import Update
from ._checks import callback_setting, named_callbacks
from ._defaults import params_of_fit
from ._parameters import net_params_of
from ._progress import ShowProgress


class Run:
    """Data, seed and saved state of one call of `fit`; `train` trains one net.

    Parameters
    ----------
    params : dict
        Parameters of every net, by skorch's names, including ``callbacks``.
    noisy : Rows
    clean : Rows or None
    classes : ndarray of shape (n_classes,)
        Sorted labels; the rows hold indices into them.
    seed : int
    watch : bool
        Whether to record the loss of the clean rows in the history, for methods that do not train on them.
    bar : str or None
        Title of the progress bars; None: there are none.

    Attributes
    ----------
    histories : dict of str to History
        History of each training so far, by stage.
    state : FitState or None
        Folder in which the fit is saved.
    """

    def __init__(
        self,
        params: dict[str, Any],
        noisy: Rows,
        clean: Rows | None,
        classes: NDArray,
        *,
        seed: int,
        watch: bool,
        bar: str | None,
    ) -> None:
        self.params = params_of_fit(params, noisy, len(classes))
        self.noisy, self._clean, self.classes = noisy, clean, classes
        self.seed, self.watch, self.bar = seed, watch, bar
        self.n_stages = 0
        self.state: FitState | None = None
        self.histories: dict[str, History] = {}

    @property
    def has_clean(self) -> bool:
        """Whether there are clean rows."""
        return self._clean is not None

    @property
    def clean(self) -> Rows:
        """Clean rows, of a fit that has some."""
        assert self._clean is not None, "the method needs clean rows: set _needs_clean_data"
        return self._clean

    def save_in(self, path: str | PathLike, fingerprint: dict[str, str]) -> None:
        """Save the fit in this folder; if it has a state of this fit, resume from it."""
        self.state = FitState(path, fingerprint, self.seed)
        self.seed = self.state.seed

    @contextmanager
    def changed(self, params: dict[str, Any]) -> Iterator[None]:
        """Train nets with other parameters inside of a with-block."""
        before, self.params = self.params, params
        try:
            yield
        finally:
            self.params = before

    def train(self, stage: str, rows: Rows | None = None, **how: Any) -> NoisyLabelNet:
        """Train one net, as `prepare` makes it."""
        rows = self.noisy if rows is None else rows
        net = self.prepare(stage, rows, **how)
        if self.state is None:
            self._train(stage, net, rows)
        else:
            self._resume(stage, net, rows, self.state)
        self.histories[stage] = net.history
        net.release()
        return net

    def prepare(
        self,
        stage: str,
        rows: Rows,
        *,
        loss: Callable[..., nn.Module] | nn.Module = nn.CrossEntropyLoss,
        update: Update | None = None,
        select: Selection | None = None,
        held_out: float = 0.0,
        clean_batches: CleanBatches | None = None,
        clean_weight: float = 0.0,
        module: nn.Module | None = None,
        net: type[NoisyLabelNet] = NoisyLabelNet,
        callbacks: Sequence[tuple[str, Callback]] = (),
        **net_params: Any,
    ) -> NoisyLabelNet:
        """Make a net that is ready to be trained.

        Parameters
        ----------
        stage : str
            Name of the training in `histories` and in a saved state.
        rows : Rows
            Rows to train on.
        loss : nn.Module, or callable that makes one, default=nn.CrossEntropyLoss
            Criterion. Pass a loss with random initial values as a callable, so that the seed determines them.
        update : Update, optional
            How the parameters of the loss are learned; default: they stay as they are.
        select : Selection, optional
            Which epoch, or which T, is kept; default: the last epoch, or that which a callback of the user's selects.
        held_out : float, default=0.0
            Fraction of the rows that is held out of the training to select by; the user's `train_split` replaces it.
        clean_batches : CleanBatches, optional
            Clean rows beside the noisy ones in every step.
        clean_weight : float, default=0.0
            Weight of the mean cross-entropy of the clean batch.
        module : nn.Module, optional
            Trained module to continue from; default: the user's, with the same initial weights in every stage.
        net : class, default=NoisyLabelNet
        callbacks : sequence of (str, Callback)
            Callbacks of the method, called after the user's.
        **net_params
            Parameters of the net, instead of the classifier's; with ``optimizer``, no ``optimizer__...`` of the user's.

        Returns
        -------
        NoisyLabelNet
        """
        params = net_params_of(self.params, module, net_params)
        holds_out = bool(held_out or params.get("train_split"))
        params |= self._split(held_out)
        if groups := [*(update.param_groups() if update else ()), *params.get("optimizer__param_groups", ())]:
            params["optimizer__param_groups"] = groups
        torch.manual_seed(self.seed)
        trained = net(
            **params,
            criterion=loss,
            update=update,
            select=self._selection(select, holds_out),
            clean_batches=clean_batches,
            clean_weight=clean_weight,
            callbacks=self._callbacks(stage, callbacks),
        ).initialize()
        check_start(trained, rows, self.classes)
        if self.n_stages:
            torch.manual_seed(self.seed + self.n_stages)  # a later stage draws its own batches
        self.n_stages += 1
        return trained

    def _resume(self, stage: str, net: NoisyLabelNet, rows: Rows, state: FitState) -> None:
        """Train what the saved state lacks, or restore the net from it."""
        if state.is_complete(stage):
            state.restore(stage, net)
            return
        self._train(stage, net, rows, state.epochs_done(stage))
        state.save(stage, net, complete=True)

    def _train(self, stage: str, net: NoisyLabelNet, rows: Rows, done: int = 0) -> None:
        """Train, check what comes out, and drop what the history has of single batches."""
        if net.verbose:  # a heading for skorch's table
            print(stage.replace("_", " "))
        net.partial_fit(rows, rows.label, epochs=net.max_epochs - done)
        for epoch in net.history:
            epoch["batches"] = []

    # ---- parameters of a net
    def _split(self, held_out: float) -> dict[str, Any]:
        """Hold out a fraction of the rows, the same in every stage, unless the user gives a split."""
        is_drawn = held_out and self.params.get("train_split") is None
        return {"train_split": ValidSplit(held_out, random_state=self.seed)} if is_drawn else {}

    # ---- callbacks of a net
    def _selection(self, select: Selection | None, holds_out: bool) -> Selection:
        """Keep the last epoch where no rows are held out to select by, or where a callback of the user's selects."""
        if select is None or not select.needs_validation:
            return select or Selection()
        selected = any(callback_setting(*named, "load_best", self.params) for named in self._named())
        return select if holds_out and not selected else Selection()

    def _callbacks(self, stage: str, own: Sequence[tuple[str, Callback]]) -> list[Any]:
        """Order of callbacks: loss of the clean rows, the user's, the method's, saving."""
        watching = [("valid_clean_loss", CleanLoss(self.clean))] if self.has_clean and self.watch else []
        title = f"{self.bar}, {stage.replace('_', ' ')}"
        shown = [("show_progress", ShowProgress(title))] if self.bar else []
        saving = [("save_state", SaveState(self.state, stage))] if self.state is not None else []
        return [*watching, *self._users(), *own, *shown, *saving]

    def _users(self) -> list[Any]:
        """Shallow copies of the user's callbacks: each stage initialises its own, but a writer or list stays shared."""
        copies = [(name, c if isinstance(c, type) else copy.copy(c)) for name, c in self._named()]
        return [callback if name is None else (name, callback) for name, callback in copies]

    def _named(self) -> list[tuple[str | None, Any]]:
        return named_callbacks(self.params["callbacks"])


#: class of the runs of `fit`, which `data_parallel` replaces
RUN_CLASS: ContextVar[type[Run]] = ContextVar("RUN_CLASS", default=Run)
