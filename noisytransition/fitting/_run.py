"""One call of `fit`: its data, seed and saved state, and the training of its nets, in this process or in others."""

import copy
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from textwrap import shorten
from typing import Any, Self, TypeVar

import joblib
import torch
from numpy.typing import NDArray
from skorch.callbacks import Callback
from skorch.dataset import ValidSplit
from skorch.history import History
from torch import nn

from ..nets import CleanBatches, DatasetRows, NoisyLabelNet, Rows
from ..persistence._fit_state import FitState, SaveState
from ..selection import Selection
from ..transition._labels import SourceLabels
from ..updates import Update
from ._checks import callback_setting, named_callbacks
from ._parameters import net_params_of, params_of_fit
from ._progress import CleanLoss, ShowProgress

Named = tuple[str | None, Any]
Result = TypeVar("Result")


class Run:
    """Data, seed and saved state of one call of `fit`; `train` trains one net.

    Parameters
    ----------
    params : dict
        Parameters of every net, by skorch's names, including ``callbacks``.
    noisy, clean : Rows
        There may be no clean rows.
    classes : ndarray of shape (n_classes,)
        Sorted labels; the rows hold indices into them.
    seed : int
    sources : SourceLabels or None
        Labels of each source, of the rows of X, if there are several sources.
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
        clean: Rows,
        classes: NDArray,
        *,
        seed: int,
        sources: SourceLabels | None = None,
        watch: bool,
        bar: str | None,
    ) -> None:
        self.params = params_of_fit(params, noisy, len(classes))
        self.noisy, self.clean, self.classes = noisy, clean, classes
        self.seed, self.sources, self.watch, self.bar = seed, sources, watch, bar
        self.state: FitState | None = None
        self.histories: dict[str, History] = {}
        self._n_elsewhere = 0  # trainings before these, whose histories are in another run

    def save_in(self, path: str | PathLike, fingerprint: dict[str, str]) -> None:
        """Save the fit in this folder; if it has a state of this fit, resume from it."""
        self.state = FitState(path, fingerprint, self.seed)
        self.seed = self.state.seed

    def train(
        self,
        stage: str,
        rows: Rows | None = None,
        *,
        params: dict[str, Any] | None = None,
        loss: Callable[..., nn.Module] | nn.Module = nn.CrossEntropyLoss,
        update: Update | None = None,
        select: Selection | None = None,
        validation_fraction: float = 0.0,
        clean_batches: CleanBatches | None = None,
        clean_weight: float = 0.0,
        module: nn.Module | None = None,
        net: type[NoisyLabelNet] = NoisyLabelNet,
        callbacks: Sequence[tuple[str, Callback]] = (),
        **net_params: Any,
    ) -> NoisyLabelNet:
        """Train one net.

        Parameters
        ----------
        stage : str
            Name of the training in `histories` and in a saved state.
        rows : Rows, optional
            Rows to train on; default: the noisy ones.
        params : dict, optional
            In place of the parameters of the fit, `Run.params`.
        loss : nn.Module, or callable that makes one, default=nn.CrossEntropyLoss
            Criterion. Pass a loss with random initial values as a callable, so that the seed determines them.
        update : Update, optional
            How the parameters of the loss are learned; default: they stay as they are.
        select : Selection, optional
            Which epoch, or which T, is kept; default: the last epoch, or that which a callback of the user's selects.
        validation_fraction : float, default=0.0
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
        rows = self.noisy if rows is None else rows
        shared = self.params if params is None else params
        own = net_params_of(shared, module, net_params)
        if validation_fraction and own.get("train_split") is None:  # the same rows in every stage
            own["train_split"] = ValidSplit(validation_fraction, random_state=self.seed)
        if groups := [*(update.param_groups if update else ()), *own.get("optimizer__param_groups", ())]:
            own["optimizer__param_groups"] = groups
        users = named_callbacks(shared["callbacks"])
        user_selects = any(callback_setting(*named, "load_best", shared) for named in users)
        if select is not None and select.needs_validation and (user_selects or own.get("train_split") is None):
            select = None
        if select is None and user_selects:
            select = Selection()  # the loss of the same epoch
        trained = net(
            **own,
            criterion=loss,
            update=update,
            select=select,
            clean_batches=clean_batches,
            clean_weight=clean_weight,
            callbacks=self._callbacks(stage, users, callbacks),
        ).begin(rows, self.classes, self.seed)
        if n := self._n_elsewhere + len(self.histories):
            torch.manual_seed(self.seed + n)  # a later stage draws its own batches
        self._train(stage, trained, rows)
        self.histories[stage] = trained.history
        trained.release()
        return trained

    def _train(self, stage: str, net: NoisyLabelNet, rows: Rows) -> None:
        """Train a net. With a saved state: only the epochs that it lacks, or none if it has them all."""
        if self.state is not None and self.state.is_complete(stage):
            self.state.restore(stage, net)
            return
        if net.verbose:  # a heading for skorch's table
            print(stage.replace("_", " "))
        done = 0 if self.state is None else self.state.epochs_done(stage)
        net.partial_fit(rows, rows.label, epochs=net.max_epochs - done)
        for epoch in net.history:
            epoch["batches"] = []  # what a history has of single batches is large
        if self.state is not None:
            self.state.save(stage, net, complete=True)

    def _callbacks(self, stage: str, users: Sequence[Named], own: Sequence[Named]) -> list[Any]:
        """Order of callbacks: loss of the clean rows, the user's, the method's, progress, saving.

        The user's are shallow copies: each stage initialises its own, but a writer or list stays shared.
        """
        watching = [("valid_clean_loss", CleanLoss(self.clean))] if self.watch and len(self.clean) else []
        copies = [copy.copy(cb) if name is None else (name, copy.copy(cb)) for name, cb in users]
        shown = [("show_progress", ShowProgress(f"{self.bar}, {stage.replace('_', ' ')}"))] if self.bar else []
        saving = [("save_state", SaveState(self.state, stage))] if self.state is not None else []
        return [*watching, *copies, *own, *shown, *saving]

    # ---- trainings that do not depend on each other
    def train_parts(self, tasks: Mapping[str, Callable[..., Result]], n_jobs: int | None = None) -> list[Result]:
        """Do trainings that do not depend on each other; the results are the same to the bit for any `n_jobs`.

        Each has its share of PyTorch's threads, also where they are done one after the other.

        Parameters
        ----------
        tasks : dict of str to callable
            By stage: takes a run, and the stage's name; trains that stage in that run; gives back what is asked of it.
        n_jobs : int, optional
            As in `joblib.Parallel`: processes, or what ``joblib.parallel_config`` says. In threads they are done in
            turn: PyTorch's generators are shared by all threads.

        Returns
        -------
        list
            What the tasks gave back.
        """
        n_threads = max(torch.get_num_threads() // len(tasks), 1)
        backend, _ = joblib.parallel.get_active_backend()
        in_turn = getattr(backend, "supports_sharedmem", False)
        parallel = joblib.Parallel(n_jobs, **({"backend": "sequential"} if in_turn else {}))
        train = joblib.delayed(_train_part)
        done = parallel(train(self._part(i), stage, task, n_threads) for i, (stage, task) in enumerate(tasks.items()))
        results, histories = zip(*done, strict=True)
        self.histories |= dict(zip(tasks, histories, strict=True))
        return list(results)

    def unsendable(self, n_jobs: int | None = None) -> str | None:
        """Say what `train_parts` could not send to the processes that it would use, if there is such."""
        (backend, _), n = joblib.parallel.get_active_backend(), joblib.effective_n_jobs(n_jobs)
        if getattr(backend, "supports_sharedmem", False) or n == 1:
            return None
        rows = [rows for rows in (self.noisy, self.clean) if isinstance(rows, DatasetRows)]
        for name, value in (self.params | {"X": rows}).items():
            try:
                pickle.dumps(joblib.wrap_non_picklable_objects([value]))  # as joblib's default backend does
            except Exception as error:  # pickle raises what the objects raise
                return (
                    f"cannot send {name}={shorten(repr(value), 300)} to {n} processes: {error}. Give what can be "
                    "pickled, or train in this process (n_jobs=1)"
                )
        return None

    def _part(self, i: int) -> Self:
        """Run of the i-th of such trainings, as if the others were done before it."""
        part = copy.copy(self)
        part.histories, part._n_elsewhere = {}, self._n_elsewhere + len(self.histories) + i
        return part


def _train_part(run: Run, stage: str, task: Callable[[Run, str], Result], n_threads: int) -> tuple[Result, History]:
    """Do one task with so many threads: their number has an effect on rounding."""
    with torch_as_it_was():
        torch.set_num_threads(n_threads)
        result = task(run, stage)
    return result, run.histories[stage]


@contextmanager
def torch_as_it_was() -> Iterator[None]:
    """Put PyTorch's generators and number of threads back at the end of the block."""
    n_threads = torch.get_num_threads()
    try:
        with torch.random.fork_rng(range(torch.cuda.device_count())):
            yield
    finally:
        torch.set_num_threads(n_threads)


#: class of the runs of `fit`, which `data_parallel` replaces
RUN_CLASS: ContextVar[type[Run]] = ContextVar("RUN_CLASS", default=Run)
