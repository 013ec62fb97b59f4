"""Base class of all classifiers: scikit-learn's interface, with one skorch net per training stage."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted
from skorch.history import History
from torch import nn
from torch.utils.data import Dataset

from ..data._read import DRAWS, HOW_TO_PASS, Samples, read_rows, rows_to_score, validate_rows
from ..data._warnings import warn_of_equal_shares, warn_of_scale
from ..fitting._checks import CONSTRAINTS, check_net_parameters
from ..fitting._describe import describe_fit
from ..fitting._parameters import Callbacks, Module, Optimizer, RandomState, as_python
from ..fitting._run import RUN_CLASS, Run, torch_as_it_was
from ..nets import NoisyLabelNet, Rows
from ._parameters import NET_NAMES, is_net_name, merged_signature, with_merged_signature
from ._save import save


@with_merged_signature
class NoisyLabelClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base class of all classifiers: validates and encodes the data, sets the seed, predicts. Methods train in `_fit`.

    Parameters
    ----------
    module : nn.Module class or instance, "mlp" or "linear", default="mlp"
        Network that returns logits of shape (n_samples, n_classes). An instance is copied, never changed. "mlp": an
        `MLP` sized from the data; "linear": the same without a hidden layer (logistic regression). Both subtract the
        means of columns of X that are not mostly 0, and scale columns that are not of the order of 1.
    lr : float or "auto", default="auto"
        Step size of the module's optimiser. "auto": 0.005 for a linear network, one with a single weight matrix to
        train; 0.001 for others; 0.1 for SGD.
    max_epochs : int or "auto", default="auto"
        Epochs of each training, but for warm-ups and fine-tunings that have a number of their own. "auto": 30, or more
        where 30 epochs of the noisy rows are fewer than 500 steps.
    batch_size : int, default=32
        Rows in a batch; -1 for all.
    optimizer : class or str, default=torch.optim.Adam
        Any torch optimiser, or the name of one in `torch.optim`, such as "adamw"; ``optimizer__...`` sets its
        parameters.
    device : str or torch.device, optional
        Default: the device of a module instance, else the CPU.
    dtype : str or torch.dtype, default="auto"
        Type that inputs are cast to, batch by batch. "auto": the module's floating type, for uint8 images too (which
        modules of your own scale); integers stay integers if the module has an embedding, or as one of several parts.
    precision : {"float32", "bf16", "fp16"}, default="float32"
        Precision that a float32 module computes in, in training, look-ahead and prediction, by `torch.autocast`;
        weights, losses, T and probabilities stay in float32. "fp16" scales the gradients.
    batch_transform : callable, optional
        Augmentation: function of a batch of training inputs on the device. Predictions do not use it.
    callbacks : list of skorch callbacks, optional
        Every training stage gets copies of them: a schedule of a fixed number of steps, as OneCycleLR, suits methods
        with stages of equal length alone. ``callbacks__name__...`` sets their parameters. One that needs held-out rows,
        as EarlyStopping and EpochScoring do by default, needs a `train_split`.
    random_state : int, RandomState instance or None, default=None
        An int makes a fit repeatable to the bit on a CPU; with None, torch's global generator gives the seed.
    verbose : int, default=0
        0: silent. 1: a bar for each training, with the time left, where standard error is a terminal or a notebook;
        nothing elsewhere. 2: a line for each epoch of every stage, skorch's table, in any case.
    **net_params
        Every other parameter of `skorch.NeuralNetClassifier` by skorch's own name: ``module__...``,
        ``optimizer__...``, ``iterator_train__num_workers``, ``train_split``, ``compile``, ...
    """

    # searches and pipelines route clean data to `fit` without a `set_fit_request` by the user
    __metadata_request__fit = dict.fromkeys(("y_verified", "meta", "X_meta", "y_meta", "y_meta_noisy", "sources"), True)
    __metadata_request__score = {"y_verified": True}  # noqa: RUF012

    #: what each parameter may be, as in scikit-learn
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS
    #: whether `fit` refuses to run without clean rows
    _needs_clean_data = False
    #: whether the method corrects the class prior of clean rows, where it is not that of the noisy rows
    _corrects_class_prior = False
    #: whether `fit` uses the labels of several sources
    _takes_sources = False
    #: how clean rows were drawn, where that is no parameter
    meta_sampling = "random"
    #: parameters with which a classifier is the algorithm of its paper; None: there is no paper
    _PUBLISHED: ClassVar[dict[str, Any] | None] = None
    classes_: NDArray
    net_: NoisyLabelNet

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        with_merged_signature(cls)

    def __init__(
        self,
        module: Module = "mlp",
        *,
        lr: float | str = "auto",
        max_epochs: int | str = "auto",
        batch_size: int = 32,
        optimizer: Optimizer = torch.optim.Adam,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype = "auto",
        precision: str = "float32",
        batch_transform: Callable[[torch.Tensor], torch.Tensor] | None = None,
        callbacks: Callbacks = None,
        random_state: RandomState = None,
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
        self.precision = precision
        self.batch_transform = batch_transform
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose
        self._check_names(net_params, TypeError)
        for name, value in net_params.items():
            setattr(self, name, value)

    @classmethod
    def as_published(cls, **params: Any) -> Self:
        """Make a classifier that is exactly the algorithm of its paper, trained by SGD with a step of 0.1.

        Parameters
        ----------
        **params
            Parameters to set instead, or besides. With an `optimizer`, the step is the default.

        Returns
        -------
        classifier

        Raises
        ------
        TypeError
            For a class without a paper.
        """
        if cls._PUBLISHED is None:
            raise TypeError(f"{cls.__name__} is published in no paper; make it by {cls.__name__}(...).")
        sgd: dict[str, Any] = {} if "optimizer" in params else {"optimizer": torch.optim.SGD, "lr": 0.1}
        return cls(**(sgd | cls._PUBLISHED | params))

    def __sklearn_tags__(self) -> Tags:
        """Sparse matrices are taken too."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---- fit
    def fit(
        self,
        X: Samples,
        y: ArrayLike | None = None,
        *,
        y_verified: ArrayLike | None = None,
        meta: tuple[Samples, ArrayLike] | Dataset | None = None,
        X_meta: Samples | None = None,
        y_meta: ArrayLike | None = None,
        y_meta_noisy: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        sources: ArrayLike | None = None,
        state: str | PathLike | None = None,
    ) -> "NoisyLabelClassifier":
        """Train on noisy labels, with the help of clean rows: rows of X that were verified, or others.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Table, images or sequences. Rows of a sparse matrix are made dense batch by batch. Of several parts, give a
            mapping of arrays, which the module takes by name, as ``module(**batch)``. A Dataset gives inputs, or pairs
            of input and label; an input may be a mapping, or a tuple of arrays for ``module(*batch)``.
        y : array-like of shape (n_samples,), or data frame
            Noisy labels of any kind: str, bool, numbers. A data frame has them in one column, and in the other, named
            "verified", `y_verified`. A row that is not verified needs a label. For `EMTransitionClassifier`, several
            columns have the labels of several sources, missing where a source said nothing
            (:doc:`/several_sources`). Optional for a Dataset of pairs of input and label: its labels are taken, which
            loads each sample once, but not those of a TensorDataset. Where `y` is given, the labels of the Dataset are
            not used.
        y_verified : array-like of shape (n_samples,), optional
            True labels of the rows that were verified, missing (None, NaN, NA, or -1 beside 0, 1, 2) in all others.
            Verified rows are the clean rows, and leave the noisy set. If y has their noisy labels, methods that count
            pairs of true and noisy labels use them.
        meta : tuple of (X_meta, y_meta), or torch Dataset of pairs, optional
            Clean rows that are not in X, with true labels. Searches pass a tuple through whole; a Pipeline does not
            transform it.
        X_meta, y_meta : optional
            The same as two arguments: ``Pipeline(..., transform_input=["X_meta"])`` transforms X_meta. Searches cut
            what is as long as X: if X_meta is, give `meta`.
        y_meta_noisy : array-like of shape (n_meta,), optional
            Noisy labels of the rows of `meta` or `X_meta`, missing where one is not known.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows of X in every training on noisy rows: a row is drawn as often as its weight says, those
            of weight 0 are left out. Weights of verified rows are not used. T is a conditional probability, so that
            rows count once where it is estimated from posteriors; a weight must not depend on the noisy label of a row
            with this true label.
        sources : array-like of shape (n_samples,), optional
            For `EMTransitionClassifier`: who or what gave each label of y, where each row has the label of one of
            several sources.
        state : str or path, optional
            Folder in which the fit is saved after every epoch. If it exists, the fit resumes from it: see
            `docs/saving.rst`.

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
            clean_data = y_verified, meta, X_meta, y_meta, y_meta_noisy
            by_label = self.meta_sampling == "random" and not set(DRAWS) & set(self._net_params)
            classes, noisy, clean, by_source = read_rows(
                self, X, y, *clean_data, sample_weight, sources, weigh_by_label=by_label
            )
            if by_source is not None and not self._takes_sources:
                raise ValueError(
                    f"{type(self).__name__} takes the labels of one source, and y has {by_source.names.tolist()[:3]}: "
                    "give them to EMTransitionClassifier or TransitionClassifierCV, or one column of labels. True "
                    "labels of verified rows are in a column 'verified'."
                )
            if self._needs_clean_data and not len(clean):
                raise ValueError(f"{type(self).__name__} needs clean data and got none. {HOW_TO_PASS}")
            # before random_state is drawn from
            fingerprint = {} if state is None else describe_fit(self, noisy, clean, by_source)
            run = RUN_CLASS.get()(
                self._shared_params(classes),
                noisy,
                clean,
                classes,
                seed=self._seed(),
                sources=by_source,
                watch=not self._needs_clean_data,
                bar=type(self).__name__ if self.verbose == 1 else None,
            )
            self._check_data(run)
            if self._needs_clean_data and not self._corrects_class_prior:
                warn_of_equal_shares(noisy.label, clean.label, classes)
            if not isinstance(self.module, str):  # built-in networks scale their inputs
                warn_of_scale(noisy)
            with torch_as_it_was():
                if state is not None:
                    run.save_in(state, fingerprint)
                self._fit(run)
            self.classes_, self.histories_ = run.classes, run.histories
        except BaseException:
            self._forget()
            raise
        return self

    @abstractmethod
    def _fit(self, run: Run) -> None:
        """Train with `run.train`, once for each stage, and set `net_`."""

    def _check_parameters(self) -> None:
        """Raise for parameters that no data could make valid."""
        self._validate_params()
        check_net_parameters(self, self._net_params)

    def _check_data(self, run: Run) -> None:
        """Raise for data that the parameters do not fit, before any training."""

    def _forget(self) -> None:
        """Remove all fitted attributes, so that a failed refit does not leave those of an earlier fit."""
        for name in set(vars(self)) - set(self.get_params(deep=False)):
            if name.endswith("_") and not name.startswith("_"):
                delattr(self, name)

    def _seed(self) -> int:
        if self.random_state is None:
            return int(torch.randint(2**31 - 1, ()))
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _shared_params(self, classes: NDArray) -> dict[str, Any]:
        """Parameters of all nets of a fit."""
        own = {name: getattr(self, name) for name in self._get_param_names() if name in _SHARED} | self._net_params
        lines = max(int(self.verbose) - 1, 0)  # 1 is the bar
        of_fit = {"classes": np.arange(len(classes)), "device": self._device(), "verbose": lines}
        return {name: as_python(value) for name, value in own.items()} | of_fit

    def _device(self) -> str | torch.device:
        if self.device is not None:
            return self.device
        parameters = self.module.parameters() if isinstance(self.module, nn.Module) else iter(())
        return next((str(p.device) for p in parameters), "cpu")

    # ---- predict
    @property
    def history_(self) -> History:
        """skorch's history of the last stage; `histories_` has one for every stage."""
        check_is_fitted(self, "net_")
        return self.net_.history

    @property
    def module_(self) -> nn.Module:
        """The trained network; it returns logits."""
        check_is_fitted(self, "net_")
        return self.net_.module_

    def predict_proba(self, X: Samples) -> NDArray:
        """Posterior of the true class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Rows of the form that `fit` had.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns as in `classes_`; rows sum to 1.
        """
        check_is_fitted(self, "net_")
        return self._predicted(self.net_.predict_proba, X)

    def predict_log_proba(self, X: Samples) -> NDArray:
        """Logarithm of `predict_proba`, from the network's logits: finite where a probability is rounded to 0.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Rows of the form that `fit` had.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns as in `classes_`.
        """
        check_is_fitted(self, "net_")
        return self._predicted(self.net_.predict_log_proba, X)

    def _predicted(self, predict: Callable[[Rows], NDArray], X: Samples) -> NDArray:
        rows = validate_rows(self, X, reset=False)
        try:
            return predict(rows)
        except TypeError as error:  # of a module that takes other parts
            if isinstance(rows.sample_shape, tuple) and all(isinstance(n, int) for n in rows.sample_shape):
                raise
            raise ValueError(
                f"X has other parts than that of fit ({error}); give X in the form that fit had."
            ) from error

    def predict(self, X: Samples) -> NDArray:
        """Most probable true class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Rows of the form that `fit` had.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels out of `classes_`.
        """
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    def score(
        self,
        X: Samples,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        y_verified: ArrayLike | None = None,
    ) -> float:
        """Accuracy, of verified rows alone where some rows are marked as such.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Rows of the form that `fit` had.
        y : array-like of shape (n_samples,), or data frame
            Labels to compare predictions with; or, as in `fit`, given labels and a column "verified". Optional for a
            Dataset of pairs of input and label.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts in the mean. Default: all alike; verified rows that were drawn by their given label
            as often as all rows have it.
        y_verified : array-like of shape (n_samples,), optional
            As in `fit`. Searches pass it with metadata routing.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If rows can be marked as verified, and none is.
        """
        X, labels, weights = rows_to_score(self, X, y, y_verified, sample_weight)
        return float(accuracy_score(labels, self.predict(X), sample_weight=weights))

    # ---- parameters
    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Names for `get_params`, clones and searches; also of classes that combine parents without a constructor."""
        return sorted(name for name in merged_signature(cls).parameters if name != "self")

    def _check_names(self, given: Iterable[str], error: type[Exception]) -> None:
        """Raise for a name that neither the class nor skorch has; as Python in a constructor, else as scikit-learn."""
        own = self._get_param_names()
        for name in given:
            if name not in own and not is_net_name(name):
                raise error(
                    f"{type(self).__name__} has no parameter {name!r}. It has {own}, and those of "
                    "skorch.NeuralNetClassifier that it does not set itself, such as module__... and optimizer__..."
                )

    @property
    def _net_params(self) -> dict[str, Any]:
        named = set(self._get_param_names())
        return {name: value for name, value in vars(self).items() if is_net_name(name) and name not in named}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters, including those of skorch that were given.

        Parameters
        ----------
        deep : bool, default=True
            As in scikit-learn.

        Returns
        -------
        dict of str to object
        """
        return super().get_params(deep) | self._net_params

    def set_params(self, **params: Any) -> "NoisyLabelClassifier":
        """Set parameters, of the classifier or of its nets (``lr``, ``module__hidden``, ``optimizer__momentum``).

        Parameters
        ----------
        **params
            Names and values.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For an unknown name.
        """
        self._check_names(params, ValueError)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    # ---- save
    def save(self, path: str | PathLike) -> None:
        """Save the fitted classifier in one file, from which `noisytransition.load` reads it again.

        Saved are the parameters that are plain data, the fitted attributes and the weights; not the code of a module of
        your own, callbacks, functions and optimiser classes. The file is in the format safetensors: loading it runs no
        code.

        Parameters
        ----------
        path : str or Path
            A saved classifier that is there already is replaced.

        Raises
        ------
        ValueError
            If there is a file of another kind, or something cannot be saved.
        """
        save(self, path)

    def _loss(self) -> nn.Module:
        """Loss of a classifier that is loaded; override it if methods besides `fit` need the fitted one."""
        return nn.CrossEntropyLoss()


# parameters that the nets have too, under the same name
_SHARED = NET_NAMES | {"dtype", "precision", "batch_transform"}
