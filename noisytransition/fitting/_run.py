"""Data, seed and saved state of one call of `fit`, and the training of its nets."""

import copy
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, TypeVar

import joblib
import numpy as np
import torch
from joblib.hashing import NumpyHasher
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from skorch.callbacks import Callback
from skorch.dataset import ValidSplit
from skorch.history import History
from torch import Tensor, nn

from ..labels._read import Labels
from ..nets import NoisyLabelNet, Rows
from ..nets._rows import Batch
from ..persistence import FitState, SaveState, restore_net
from ..selection import CleanLoss, Selection
from ..updates import Update
from ._parameters import net_params_of, params_of_fit, prior_precision

# progress bar with elapsed and remaining time and the stage
_FORMAT = "{percentage:3.0f}%|{bar:25}| {elapsed}, {remaining} left: {desc}"
Named = Sequence[tuple[str, Callback]]
Result = TypeVar("Result")


@dataclass(eq=False)
class FitContext:
    """Data, seed and saved state of one call of `fit`; `train` trains one net.

    Attributes
    ----------
    params : dict
        Parameters of all nets, by skorch's names. ``callbacks`` are pairs of name and instance.
    noisy, clean : Rows
        Noisy and clean samples; `clean` can be empty.
    unlabelled : Rows
        Samples without any label, possibly none, on which no net is trained.
    labels : Labels
        Labels of all samples, with sources, groups and weights.
    classes : ndarray of shape (n_classes,)
        Sorted labels. Labels of the samples are indices into it.
    histories : dict of str to History
        History of each finished training, by stage.
    """

    params: dict[str, Any]
    noisy: Rows
    clean: Rows
    unlabelled: Rows
    labels: Labels
    seed: int
    watch: bool  # whether to record the loss of the clean samples, for methods that do not train on them
    bar: str | None  # title of the progress bars, if any
    state: FitState | None = None  # folder that the fit is saved in
    histories: dict[str, History] = field(default_factory=dict)
    _n_elsewhere: int = 0  # earlier trainings with histories in another run

    def __post_init__(self) -> None:
        is_automatic = self.params["lr"] == "auto"
        self.classes: NDArray = self.labels.classes
        self.params = params_of_fit(self.params, self.noisy, len(self.classes))
        self.prior_precision = prior_precision(self.params, self.noisy) if is_automatic else 0.0
        self.n_clean = len(self.clean)

    def save_in(self, path: str | PathLike, fingerprint: dict[str, str]) -> None:
        """Save the fit in a folder, and resume if the folder has a state of the same fit."""
        self.state = FitState(path, fingerprint, self.seed)
        self.seed = self.state.seed

    def train(
        self,
        stage: str,
        rows: Rows | None = None,
        *,
        loss: Callable[..., nn.Module] | nn.Module = nn.CrossEntropyLoss,
        update: Update | None = None,
        select: Selection | None = None,
        validation_fraction: float = 0.0,
        module: nn.Module | None = None,
        net: type[NoisyLabelNet] = NoisyLabelNet,
        callbacks: Named = (),
        **net_params: Any,
    ) -> NoisyLabelNet:
        """Train one net.

        Parameters
        ----------
        stage : str
            Name of the training in `histories` and in a saved state.
        rows : Rows, optional
            Training samples. Default: the noisy ones.
        loss, update, select : optional
            Criterion, update of its parameters, and selection of an epoch or T. Pass a loss with random initial values
            as a callable, so that the seed determines them.
        validation_fraction : float, default=0.0
            Fraction of the samples held out for the selection. The user's `train_split` replaces it.
        module : nn.Module, optional
            Trained module to continue from. Default: the user's, with the same initial weights in each stage.
        net, callbacks : optional
            Class of the net, and callbacks of the method, called after the user's.
        **net_params
            Parameters that replace the classifier's. ``optimizer`` also removes the user's ``optimizer__...``.
        """
        if "optimizer" not in net_params:
            net_params = self._weight_decay(rows, module) | net_params
        rows = self.noisy if rows is None else rows
        net_params = net_params_of(self.params, module, net_params)
        if validation_fraction and net_params.get("train_split") is None:  # the same samples in each stage
            net_params["train_split"] = ValidSplit(validation_fraction, random_state=self.seed)
        if update is not None:
            groups = net_params.get("optimizer__param_groups", ())
            net_params["optimizer__param_groups"] = [*update.param_groups, *groups]
        if any(getattr(callback, "load_best", False) for _, callback in self.params["callbacks"]):
            select = Selection()  # restores the loss of the selected epoch
        elif select is not None and select.needs_validation and net_params.get("train_split") is None:
            select = None
        net_params["callbacks"] = self._callbacks(stage, self.params["callbacks"], callbacks)
        trained = net(**net_params, criterion=loss, update=update, select=select)
        trained.begin(rows, self.classes, self.seed)
        self._train(stage, trained, rows)
        self.histories[stage] = trained.history
        trained.release()
        return trained

    def _weight_decay(self, rows: Rows | None, module: nn.Module | None) -> dict[str, Any]:
        """Weight decay of the prior in a training of `train`; empty without a prior."""
        # with two layers, the prior removes weak signals of clean samples in wide inputs
        has_prior = rows is None or not self.params.get("module__hidden", True)
        if not self.prior_precision or not has_prior:
            return {}
        learned_from = self.noisy if rows is None or module is not None else rows  # a given module knows all
        return {"optimizer__weight_decay": self.prior_precision / len(learned_from)}

    def _train(self, stage: str, net: NoisyLabelNet, rows: Rows) -> None:
        """Train a net; with a saved state, only the remaining epochs."""
        if n_before := self._n_elsewhere + len(self.histories):
            torch.manual_seed(self.seed + n_before)  # each stage draws its own batches
        saved = self.state and self.state.saved(stage)
        if saved and saved["complete"]:
            restore_net(net, saved)
            return
        if net.verbose:  # a heading for skorch's table
            print(stage.replace("_", " "))
        net.partial_fit(rows, rows.label, epochs=net.max_epochs - (len(saved["history"]) if saved else 0))
        for epoch in net.history:
            epoch["batches"] = []  # histories of single batches are large
        if self.state is not None:
            self.state.save(stage, net, complete=True)

    def _callbacks(self, stage: str, users: Named, own: Named) -> Named:
        """Order the callbacks: loss of the clean samples, the user's, the method's, progress, saving.

        The user's callbacks are copied shallowly: stages share attributes such as a writer or list.
        """
        callbacks = [*((name, copy.copy(callback)) for name, callback in users), *own]
        if self.watch and len(self.clean):
            callbacks.insert(0, ("valid_clean_loss", CleanLoss(self.clean)))
        if self.bar:
            callbacks.append(("show_progress", ShowProgress(f"{self.bar}, {stage.replace('_', ' ')}")))
        if self.state is not None:
            callbacks.append(("save_state", SaveState(self.state, stage)))
        return callbacks

    # ---- independent trainings
    def train_parts(self, tasks: Mapping[str, Callable[..., Result]], n_jobs: int | None = None) -> list[Result]:
        """Run independent trainings in parallel and return their results, which are bit-identical for any `n_jobs`.

        A task is a function of a run and the name of its stage. Each gets an equal share of PyTorch's threads, also if
        they run one after the other. With a threading backend they do, because threads share PyTorch's random state.
        """
        n_threads = max(torch.get_num_threads() // len(tasks), 1)
        backend, _ = joblib.parallel.get_active_backend()
        in_turn = getattr(backend, "supports_sharedmem", False)
        parallel = joblib.Parallel(n_jobs, **({"backend": "sequential"} if in_turn else {}))
        train = joblib.delayed(_train_part)
        done = parallel(train(self, i, *task, n_threads) for i, task in enumerate(tasks.items()))
        results, histories = zip(*done, strict=True)
        for of_part in histories:
            self.histories |= of_part
        return list(results)


def _train_part(
    run: FitContext, i: int, stage: str, task: Callable[[FitContext, str], Result], n_threads: int
) -> tuple[Result, dict[str, History]]:
    """Run a task with the seed that it has in sequence, and with a fixed number of threads, which affects rounding."""
    part = copy.copy(run)
    part.histories = {}
    part._n_elsewhere = run._n_elsewhere + len(run.histories) + i
    with torch_as_it_was():
        torch.set_num_threads(n_threads)
        result = task(part, stage)
    return result, part.histories


@contextmanager
def torch_as_it_was() -> Iterator[None]:
    """Restore PyTorch's random state and number of threads at the end of the block."""
    n_threads = torch.get_num_threads()
    try:
        with torch.random.fork_rng(range(torch.cuda.device_count())):
            yield
    finally:
        torch.set_num_threads(n_threads)


# ---------------------------------------------------------------------------- is a saved fit the same
class _Hasher(NumpyHasher):
    """joblib's hash, of numbers, tensors and CSR matrices by value. As in a pickle, functions and classes are names."""

    def save(self, obj: Any) -> None:
        if isinstance(obj, Tensor):
            values = obj.detach().cpu().contiguous()
            obj = str(values.dtype), tuple(values.shape), values.reshape(-1).view(torch.uint8).numpy()
        elif issparse(obj):
            obj = obj.shape, obj.data, obj.indices.astype(np.int64), obj.indptr.astype(np.int64)
        elif isinstance(obj, np.generic):
            obj = obj.item()
        super().save(obj)


def describe_fit(estimator: BaseEstimator, noisy: Rows, clean: Rows, labels: Labels) -> dict[str, str]:
    """Hash the class, parameters (except callbacks) and data of a fit, and versions that can affect its result."""
    left_out = ("verbose", "callbacks", "n_jobs")
    params = {k: v for k, v in estimator.get_params(deep=False).items() if not k.startswith(left_out)}
    described = {"class": type(estimator)} | params
    described["X, y"] = [noisy.source, noisy.index, noisy.columns]
    of_clean = None if clean.source is noisy.source else clean.source
    described["clean set"] = [of_clean, clean.index, clean.columns, labels.noisy_of_clean, labels.drawn]
    described["sources, groups, weights"] = [labels.by_source, labels.groups, labels.weights]
    described["version of Python"] = sys.version_info[:2]
    for name in ("noisytransition", "numpy", "skorch", "torch"):
        described[f"version of {name}"] = sys.modules[name].__version__
    # joblib memory-maps large arrays for other processes
    return {name: str(_Hasher(coerce_mmap=True).hash(value)) for name, value in described.items()}


# ---------------------------------------------------------------------------- progress
def progress_bar(title: str, items: Any = None, **done: Any) -> Any:
    """Iterate over items with a bar, only in the main process: bars of several processes would overwrite each other."""
    from tqdm.auto import tqdm  # the import warns in notebooks without widgets

    is_worker = multiprocessing.current_process().name != "MainProcess"
    # None: only in terminals and notebooks
    return tqdm(items, title, bar_format=_FORMAT, leave=False, dynamic_ncols=True, disable=is_worker or None, **done)


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
