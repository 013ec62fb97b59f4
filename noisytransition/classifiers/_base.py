"""The face that all methods share: scikit-learn's contract outside, one skorch net per training stage inside."""

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from skorch.history import History
from torch import nn

from ..nets import MLP, CleanLoss, DatasetRows, FitState, NoisyLabelNet, Rows
from ._callbacks import check_callbacks, stage_callbacks
from ._checks import check_count, check_number, check_output
from ._data import HOW_TO_PASS, encode, is_dataset, split_clean_set, validate_rows
from ._names import NET_NAMES, merged_signature
from ._parameters import NetParameters
from ._run import Run


class NoisyLabelClassifier(ClassifierMixin, NetParameters, ABC):
    """Base of all classifiers: validates, encodes, seeds and predicts; a method writes its recipe in `_fit`.

    Parameters
    ----------
    module : nn.Module class or instance, optional
        Gives logits of shape (n_samples, n_classes). An instance is copied, never changed. Default: an `MLP` sized
        from the data.
    lr : float, default=0.1
        Step size of the module's optimiser.
    max_epochs : int, default=30
        Epochs of the final training stage.
    batch_size : int, default=32
        Rows in a batch; -1 for all.
    optimizer : class, default=torch.optim.SGD
        Any torch optimiser; ``optimizer__...`` sets its parameters.
    device : str or torch.device, optional
        Default: where a module instance lives, else the CPU.
    dtype : str or torch.dtype, default="auto"
        What inputs are cast to, batch by batch. "auto": the module's floating type (uint8 images too, unscaled);
        integers stay integers if the module holds an embedding.
    batch_transform : callable, optional
        Augmentation of training batches on the device; never used for posteriors.
    callbacks : list of skorch callbacks, optional
        Copied for every stage. ``callbacks__name__...`` sets their parameters.
    random_state : int, RandomState instance or None, default=None
        An int makes a fit repeatable to the bit on CPU; None: torch's global generator gives the seed.
    verbose : int, default=0
        1 prints a line per epoch.
    **net_params
        Every other parameter of `skorch.NeuralNetClassifier` by skorch's own name: ``module__...``,
        ``optimizer__...``, ``iterator_train__num_workers``, ``train_split``, ``compile``, ...
    """

    # every way to hand over clean data passes through searches and pipelines without a request by the user
    __metadata_request__fit = dict.fromkeys(("meta", "X_meta", "y_meta", "trusted", "y_meta_noisy"), True)

    #: whether `fit` refuses to run without clean rows
    _needs_clean_data = False

    def __init__(
        self,
        module: Any = None,
        *,
        lr: float = 0.1,
        max_epochs: int = 30,
        batch_size: int = 32,
        optimizer: Any = torch.optim.SGD,
        device: Any = None,
        dtype: Any = "auto",
        batch_transform: Any = None,
        callbacks: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        **net_params: Any,
    ) -> None:
        self.module = module
        self.lr = lr
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.device = device
        self.dtype = dtype
        self.batch_transform = batch_transform
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose
        self._set_net_params(net_params)

    setattr(__init__, "__signature__", merged_signature(__init__, BaseEstimator.__init__))  # noqa: B010

    # ---- fit
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        meta: tuple[Any, ArrayLike] | None = None,
        X_meta: Any = None,
        y_meta: ArrayLike | None = None,
        trusted: ArrayLike | None = None,
        y_meta_noisy: ArrayLike | None = None,
        state: FitState | str | PathLike | None = None,
    ) -> "NoisyLabelClassifier":
        """Train on noisy labels, with the help of clean rows given in one of three ways.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...) or torch Dataset
            Table, images or sequences. A Dataset gives inputs; labels come from `y`.
        y : array-like of shape (n_samples,)
            Noisy labels of any kind: str, bool, numbers.
        meta : tuple of (X_meta, y_meta), optional
            Clean rows and their labels. Searches pass a tuple through whole; a Pipeline does not transform it.
        X_meta, y_meta : array-like, optional
            The same as two arguments: the form that ``Pipeline(..., transform_input=["X_meta"])`` transforms.
        trusted : array-like of shape (n_samples,) of bool, optional
            Marks the clean rows among those of X; they leave the noisy set.
        y_meta_noisy : array-like of shape (n_meta,), optional
            Noisy labels of the clean rows, where both are known.
        state : FitState or path, optional
            File to save the fit to at every epoch's end, and to go on from if it is there.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For data or parameters that cannot be trained on, before any training.
        """
        self._forget()
        try:
            self._check_parameters()
            noisy, clean = split_clean_set(self, X, y, meta, X_meta, y_meta, trusted, y_meta_noisy)
            if clean is None and self._needs_clean_data:
                raise ValueError(f"{type(self).__name__} needs clean data and got none. {HOW_TO_PASS}")
            self.classes_, noisy_rows, meta_rows = encode(noisy, clean)
            self._check_data(noisy_rows, meta_rows)
            self.histories_: dict[str, History] = {}
            with self._running(state, noisy_rows, meta_rows):
                self._fit(noisy_rows, meta_rows)
        except BaseException:
            self._forget()
            raise
        return self

    @abstractmethod
    def _fit(self, noisy: Rows, meta: Any) -> None:
        """Train: the method's recipe, on noisy rows and clean ones (or None). Sets `net_`."""

    def _check_parameters(self) -> None:
        """Raise for parameters that no data could make valid."""
        check_number(self, "lr")
        check_count(self, "max_epochs")
        if self.batch_size != -1:
            check_count(self, "batch_size", low=1)
        check_callbacks(self)

    def _check_data(self, noisy: Rows, meta: Any) -> None:
        """Raise for data that the parameters do not fit, before any training."""

    def _forget(self) -> None:
        """Remove every fitted attribute: a refit that fails must not leave an old one's."""
        for name in set(vars(self)) - set(self.get_params(deep=False)):
            if name.endswith("_") and not name.startswith("_"):
                delattr(self, name)

    @contextmanager
    def _running(self, state: Any, noisy: Rows, meta: Rows | None) -> Iterator[None]:
        """Hold what one fit needs to know of itself; seed it, and give the global generators back."""
        if self.random_state is None:
            seed = int(torch.randint(2**31 - 1, ()))
        else:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._run = Run.start(self, seed, state, noisy, meta)
        try:
            with _global_generators_kept():
                yield
        finally:
            del self._run

    # ---- one stage
    def _train(
        self,
        stage: str,
        data: Rows,
        *,
        net: type[NoisyLabelNet] = NoisyLabelNet,
        module: nn.Module | None = None,
        callbacks: Sequence[tuple[str, Any]] = (),
        callbacks_first: Sequence[tuple[str, Any]] = (),
        **net_params: Any,
    ) -> NoisyLabelNet:
        """Train one net: the stage of a recipe.

        Parameters
        ----------
        stage : str
            Its name, in `histories_` and in a saved state.
        data : Rows
        net : class, default=NoisyLabelNet
        module : nn.Module, optional
            Trained module to continue from; default: the user's, from the same initial weights in every stage.
        callbacks : sequence of (str, Callback)
            The recipe's own, after the user's.
        callbacks_first : sequence of (str, Callback)
            The recipe's own, before the user's: what these see is settled.
        **net_params
            Of the net; they win over the classifier's. With an ``optimizer``, the user's ``optimizer__...`` drop out.
        """
        run = self._run
        torch.manual_seed(run.seed)
        params = self._shared_params() | self._module_params(module, data)
        if "optimizer" in net_params:
            params = {name: value for name, value in params.items() if not name.startswith("optimizer__")}
        trained = net(
            **(params | net_params),
            callbacks=[
                *callbacks_first,
                *self._validation(net_params),
                *stage_callbacks(self.callbacks),
                *callbacks,
                *run.callbacks(stage),
            ],
        ).initialize()
        check_output(trained, data, self.classes_)
        if run.n_stages:
            torch.manual_seed(run.seed + run.n_stages)  # a later stage draws its own batches
        run.train(stage, trained, data)
        self.histories_[stage] = trained.history
        return trained

    def _validation(self, net_params: dict[str, Any]) -> list[tuple[str, CleanLoss]]:
        """Watch the loss of clean rows that the stage does not train on; before the user's callbacks, who may ask."""
        meta = self._run.meta
        trained_on = self._needs_clean_data or "clean_batches" in net_params
        return [] if meta is None or trained_on else [("valid_clean_loss", CleanLoss(meta))]

    def _shared_params(self) -> dict[str, Any]:
        shared = {name: getattr(self, name) for name in _SHARED - {"callbacks"}}
        return shared | {"classes": np.arange(len(self.classes_)), "device": self._device()}

    def _device(self) -> Any:
        if self.device is not None:
            return self.device
        parameters = self.module.parameters() if isinstance(self.module, nn.Module) else iter(())
        return next((str(p.device) for p in parameters), "cpu")

    def _module_params(self, module: nn.Module | None, data: Rows) -> dict[str, Any]:
        """The module of a stage, with the parameters that skorch passes on; an instance is copied."""
        given = {name for name in self._net_params if name.startswith("module__")}
        if module is None and isinstance(self.module, nn.Module):
            if given:
                raise ValueError(f"{sorted(given)} set up a module class, but module is an instance of {self.module}.")
            module = self.module
        if module is not None:
            others = {name: value for name, value in self._net_params.items() if name not in given}
            return others | {"module": copy.deepcopy(module)}
        if self.module is None:
            n_in = int(np.prod(data.batch([0])[0].shape[1:]))
            sizes = {"module__n_in": n_in, "module__n_out": len(self.classes_)}
            return sizes | self._net_params | {"module": MLP}
        return self._net_params | {"module": self.module}

    # ---- predict
    @property
    def history_(self) -> History:
        """History of the last stage, as skorch keeps it; `histories_` has one for every stage."""
        check_is_fitted(self, "net_")
        return self.net_.history

    def predict_proba(self, X: Any) -> NDArray:
        """Posterior of the true class.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...) or torch Dataset

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns as in `classes_`; rows sum to 1.
        """
        check_is_fitted(self, "net_")
        X = validate_rows(self, X, reset=False)
        with _global_generators_kept():  # a DataLoader draws a seed, even to predict
            return self.net_.predict_proba(DatasetRows(X, np.zeros(len(X))) if is_dataset(X) else Rows(X))

    def predict(self, X: Any) -> NDArray:
        """Most probable true class.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...) or torch Dataset

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels out of `classes_`.
        """
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]


@contextmanager
def _global_generators_kept() -> Iterator[None]:
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    with torch.random.fork_rng(devices=devices):
        yield


# what the constructor shares with the net by name
_SHARED = (NET_NAMES | {"dtype", "batch_transform"}) & set(inspect.signature(NoisyLabelClassifier).parameters)
