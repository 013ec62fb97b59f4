"""Base class of all classifiers, with the scikit-learn interface."""

from __future__ import annotations
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted
from skorch import NeuralNet, NeuralNetClassifier
from skorch.history import History
from torch import nn

from ..data._read import Samples, SeparateSamples, read_rows, rows_to_score, separate_samples, validate_rows
from ..data._warnings import warn_of_equal_shares
from ..fitting._parameters import CONSTRAINTS, Callbacks, Module, Optimizer, RandomState
from ..fitting._run import FitContext, describe_fit, torch_as_it_was
from ..labels._columns import SourceLabels
from ..likelihood._calibration import Calibration
from ..likelihood._out_of_fold import Candidate, OutOfFold
from ..likelihood._pair_posterior import LogLinear, OneT
from ..likelihood._sources import Dependence, SourceFit
from ..likelihood._uncertainty import TransitionUncertainty
from ..nets import NoisyLabelNet
from ..noise_model._model import LabelNoiseModel
from ..persistence import KINDS, is_plain, read, write

# prefixes of nested skorch parameters that users can set
_PREFIXES = ("module", "optimizer", "iterator_train", "iterator_valid", "callbacks", "compile")
# skorch parameters that the classifiers set themselves
_RESERVED = {"criterion", "predict_nonlinearity", "classes", "warm_start", "dataset", "torch_load_kwargs"}
# skorch parameters that users can set
NET_NAMES = {name for net in (NeuralNet, NeuralNetClassifier) for name in inspect.signature(net).parameters}
NET_NAMES -= {"args", "kwargs", *_RESERVED}

# parameters of `NoisyLabelNet` that classifiers have under the same name
_OF_NETS = {"dtype", "precision", "batch_transform"}
# attribute of a constructor with its own signature, without the parameters of parents
_WRITTEN = "__written_signature__"

#: arguments of `fit` that searches and pipelines route by default, without `set_fit_request`
REQUESTED = dict.fromkeys(("y_verified", "meta", "X_clean", "y_clean", "y_clean_noisy", "sources", "groups"), True)


@cache
def is_net_name(name: str) -> bool:
    """Whether a name is a skorch parameter that users can set."""
    head, dunder, tail = name.partition("__")
    return (head in _PREFIXES and bool(tail)) if dunder else name in NET_NAMES


def merge_signature(cls: type) -> None:
    """Add the parameters of parent classes to the signature of a constructor."""
    if (init := vars(cls).get("__init__")) is not None:
        setattr(init, _WRITTEN, inspect.signature(init))
        init.__signature__ = merged_signature(cls)


@cache
def merged_signature(cls: type) -> inspect.Signature:
    """Replace each ``**net_params`` in the signature of a class by the parameters of its parents.

    Like Python, this stops at a constructor without ``**``, which passes no parameters to its parents.
    """
    found: dict[str, inspect.Parameter] = {}
    for init in (vars(base)["__init__"] for base in cls.__mro__ if base is not object and "__init__" in vars(base)):
        own = (getattr(init, _WRITTEN, None) or inspect.signature(init)).parameters
        kept = [
            p for p in own.values() if p.kind is p.KEYWORD_ONLY or (not found and p.kind is p.POSITIONAL_OR_KEYWORD)
        ]
        found = found | {p.name: p for p in kept if p.name not in found}
        if all(p.kind is not p.VAR_KEYWORD for p in own.values()):
            break
    return inspect.Signature(list(found.values()))


class NoisyLabelClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base class of all classifiers; subclasses implement their training in `_fit`.

    Parameters
    ----------
    module : nn.Module class or instance, "mlp" or "linear", default="mlp"
        Network that returns logits of shape (n_samples, n_classes). An instance is copied. "mlp" is an `MLP` sized from
        the data; "linear" has no hidden layer (logistic regression). Both centre features, unless they are mostly 0,
        and scale features, unless they are of the order of 1.
    lr : float or "auto", default="auto"
        Learning rate of the network. "auto": 0.1 for SGD; otherwise 0.005 for a network with a single trainable weight
        matrix, 0.001 for other networks. Linear and built-in networks have 40 / S times as much if the absolute values
        of their inputs sum to S > 40 on average (Yang and Hu, "Tensor Programs IV", 2021). Built-in networks then also
        have a weight decay with Adam, unless ``optimizer__weight_decay`` is set: that of a normal prior under which
        logits of "linear" have the variance of the logistic distribution. "mlp" has it in trainings on noisy labels
        alone, and sparse inputs such as words have none.
    max_epochs : int or "auto", default="auto"
        Epochs of each training, except warm-ups and fine-tunings with their own parameter. "auto": 30, or more to reach
        500 steps on the noisy samples.
    batch_size : int, default=32
        Samples per batch; -1 for all samples.
    optimizer : class or str, default=torch.optim.Adam
        Torch optimiser, or its name in `torch.optim`, such as "adamw". ``optimizer__...`` sets its parameters.
    device : str or torch.device, optional
        Default: the device of a module instance, or the CPU.
    dtype : str or torch.dtype, default="auto"
        Type that each batch of inputs is cast to. "auto": the floating type of the module, also for uint8 images (scale
        them in your own module); integers are kept if the module has an embedding or inputs have several parts.
    precision : {"float32", "bf16", "fp16"}, default="float32"
        Precision of `torch.autocast` for a float32 module, in training and prediction. Weights, losses, T and
        probabilities stay in float32. "fp16" scales the gradients.
    batch_transform : callable, optional
        Augmentation: a function of a batch of training inputs, on the device. It does not affect predictions.
    callbacks : list of skorch callbacks, optional
        Each training stage uses copies, so a schedule with a fixed number of steps, such as OneCycleLR, needs stages of
        equal length. ``callbacks__name__...`` sets their parameters. Callbacks that score held-out samples, such as
        EarlyStopping and EpochScoring by default, need a `train_split`. Labels of a `predefined_split` are positions in
        `classes_`.
    random_state : int, RandomState instance or None, default=None
        With an int, fits on a CPU are bit-identical. None draws the seed from torch's global generator.
    verbose : int, default=0
        0: no output. 1: a progress bar for each training, only in a terminal or notebook. 2: skorch's table, a line for
        each epoch.
    **net_params
        Other parameters of `skorch.NeuralNetClassifier`: ``module__...``, ``optimizer__...``,
        ``iterator_train__num_workers``, ``train_split``, ``compile``, ...
    """

    __metadata_request__fit = REQUESTED
    __metadata_request__score = {"y_verified": True}  # noqa: RUF012

    #: valid values of each parameter, as in scikit-learn
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS
    #: whether the method trains on clean samples
    _needs_clean_data = False
    #: loss of a loaded classifier, if methods other than `fit` need the fitted loss
    _loss: ClassVar[type[nn.Module]] = nn.CrossEntropyLoss
    #: how the clean samples were drawn, for methods without this parameter
    verified_sampling = "random"
    #: parameters of the published algorithm; None: not published
    _PUBLISHED: ClassVar[dict[str, Any] | None] = None
    classes_: NDArray
    net_: NoisyLabelNet

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        merge_signature(cls)

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
        """Create a classifier with the published algorithm, trained by SGD with a learning rate of 0.1.

        Other parameters in `params` take precedence. With an `optimizer`, `lr` has its default. TypeError if the method
        has no paper.
        """
        if cls._PUBLISHED is None:
            raise TypeError(f"{cls.__name__} does not implement a paper. Use {cls.__name__}(...).")
        sgd: dict[str, Any] = {} if "optimizer" in params else {"optimizer": "sgd", "lr": 0.1}
        return cls(**(sgd | cls._PUBLISHED | params))

    def __sklearn_tags__(self) -> Tags:
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
        meta: SeparateSamples | None = None,
        X_clean: Samples | None = None,
        y_clean: ArrayLike | None = None,
        y_clean_noisy: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        sources: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        state: str | PathLike | None = None,
    ) -> NoisyLabelClassifier:
        """Train on noisy labels, using verified samples of X or separate clean samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Features, images or sequences. Batches of a sparse matrix are converted to dense. A mapping of arrays is
            passed to the module as ``module(**batch)``. A Dataset contains inputs, or pairs of input and label; an
            input can be a mapping, or a tuple of arrays that is passed as ``module(*batch)``.
        y : array-like of shape (n_samples,), or data frame
            Noisy labels: str, bool or numbers. Samples without a noisy or verified label are left out, with a warning;
            `EMTransitionClassifier` also predicts them, and counts them in class shares.
            A data frame has noisy labels in one column, and `y_verified` in a column "verified". A column
            "verified_probability" has the probabilities with which verified samples were drawn (:doc:`/which_samples`).
            For `EMTransitionClassifier`, there can be a column for each of several sources, with missing values
            (:doc:`/several_sources`). Default: the labels of the Dataset; reading them loads each sample once, except
            from a TensorDataset.
        y_verified : array-like of shape (n_samples,), optional
            True labels of verified samples; missing for all others (None, NaN, NA, or -1 if the classes are 0, 1, 2).
            Verified samples are the clean set and are excluded from the noisy set. Methods that count pairs of true and
            noisy labels also use their noisy labels in y.
        meta : tuple of (X_clean, y_clean), or torch Dataset of pairs, optional
            The small set of samples with verified labels (the *meta* set of the literature), if these are not in X.
            Cross-validation does not index this tuple, and a Pipeline does not transform it.
        X_clean, y_clean : optional
            `meta` as two arguments, which ``Pipeline(..., transform_input=["X_clean"])`` transforms. Cross-validation
            indexes all arguments of length n_samples; use `meta` to prevent this.
        y_clean_noisy : array-like of shape (n_clean,), optional
            Noisy labels of the samples in `meta` or `X_clean`; missing if unknown.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights in each training on noisy samples: batches are drawn in proportion to the weights. Samples of
            weight 0 are omitted, unless they are verified; training ignores weights of verified samples. Weights must
            not depend on the noisy label given the true label. Class shares, accuracies and the correction of T by
            verified pairs are those of the weighted population, in which verified samples have their weights, too.
        sources : array-like of shape (n_samples,), optional
            Source of each label in y, if each sample has the label of one of several sources. Only for
            `EMTransitionClassifier`.
        groups : array-like of shape (n_samples,), or a column "group" of y, optional
            Group of each sample, such as a patient or document, if samples of a group are not independent. All samples
            of a group are in the same fold, and error bars and intervals count groups (:ref:`groups`). Only for
            `EMTransitionClassifier`; other methods ignore them.
        state : str or path, optional
            Folder to save the fit in after each epoch. If it exists, the fit resumes from it (:ref:`saving`).

        Returns
        -------
        self
        """
        self._forget()
        try:
            self._validate_params()
            separate = separate_samples(meta, X_clean, y_clean, y_clean_noisy)
            run = FitContext(
                self._shared_params(),
                *read_rows(self, X, y, y_verified, separate, sample_weight, sources, groups),
                seed=self._seed(),
                watch=not self._needs_clean_data,
                bar=type(self).__name__ if self.verbose == 1 else None,
            )
            self._check_data(run)
            with torch_as_it_was():
                if state is not None:
                    run.save_in(state, describe_fit(self, run.noisy, run.clean, run.labels))
                self._fit(run)
            self.classes_ = run.classes
            self.histories_ = run.histories
        except BaseException:
            self._forget()
            raise
        return self

    @abstractmethod
    def _fit(self, run: FitContext) -> None:
        """Train each stage with `run.train` and set `net_`."""

    def _check_data(self, run: FitContext) -> None:
        """Raise for several sources, and without clean data if the method needs it; warn of stratified samples."""
        sources = run.labels.by_source
        if sources is not None:
            fact = f"{type(self).__name__} accepts labels of one source, but got {sources.names.tolist()[:3]}"
            raise ValueError(f"{fact}. Pass one column of labels and 'verified', or use EMTransitionClassifier.")
        if not self._needs_clean_data:
            return
        if not run.n_clean:
            raise ValueError(
                f"{type(self).__name__} needs clean data, got none. Pass true labels, missing unless verified, as "
                "fit(X, df[['label', 'verified']]) or fit(X, y, y_verified=...); or fit(X, y, meta=(X_clean, y_clean))."
            )
        warn_of_equal_shares(run.noisy.label, run.clean.label, run.classes)

    def _forget(self) -> None:
        """Remove all fitted attributes, so that none remain after a failed refit."""
        for name in set(vars(self)) - set(self.get_params(deep=False)):
            if name.endswith("_") and not name.startswith("_"):
                delattr(self, name)

    def _seed(self) -> int:
        if self.random_state is None:
            return int(torch.randint(2**31 - 1, ()))
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _shared_params(self) -> dict[str, Any]:
        params = self.get_params(deep=False).items()
        own = {name: value for name, value in params if name in _OF_NETS or is_net_name(name)}
        device = self.device
        if device is None:
            parameters = self.module.parameters() if isinstance(self.module, nn.Module) else iter(())
            device = next((str(p.device) for p in parameters), "cpu")
        lines = max(int(self.verbose) - 1, 0)  # verbose=1 shows the progress bar
        of_fit = {"device": device, "verbose": lines}
        # torch's loaders take int, but no numpy scalars, such as those of parameter grids
        return {k: value.item() if isinstance(value, np.generic) else value for k, value in own.items()} | of_fit

    # ---- predict
    @property
    def history_(self) -> History:
        """Skorch history of the last stage; `histories_` has all stages."""
        check_is_fitted(self, "net_")
        return self.net_.history

    @property
    def module_(self) -> nn.Module:
        """Trained network, which returns logits."""
        check_is_fitted(self, "net_")
        return self.net_.module_

    def predict_proba(self, X: Samples) -> NDArray:
        """Predict probabilities of the true class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Samples in the format used in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self, "net_")
        return self.net_.predict_proba(validate_rows(self, X, reset=False))

    def predict_log_proba(self, X: Samples) -> NDArray:
        """Predict log-probabilities of the true class, finite even if a probability is rounded to 0.

        Parameters
        ----------
        X
            As in `predict_proba`, which also describes the result.
        """
        check_is_fitted(self, "net_")
        return self.net_.predict_log_proba(validate_rows(self, X, reset=False))

    def predict(self, X: Samples) -> NDArray:
        """Predict the most probable true class of each sample.

        Parameters
        ----------
        X
            As in `predict_proba`.
        """
        proba = self.predict_proba(X)  # raises before the fit
        return self.classes_[proba.argmax(axis=1)]

    def score(
        self,
        X: Samples,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        y_verified: ArrayLike | None = None,
    ) -> float:
        """Compute the accuracy; if samples are marked as verified, on these only.

        On samples of `fit`, this is a training score, which is too high. To estimate the accuracy on new samples, use
        `cross_val_score` with ``cv=VerifiedKFold(3)``, or ``noise_model_.accuracy_interval()``.

        Parameters
        ----------
        X
            As in `predict_proba`.
        y : array-like of shape (n_samples,), or data frame
            True labels; or, as in `fit`, noisy labels and a column "verified". Optional for a Dataset of pairs of input
            and label.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights. Verified samples that were not drawn at random also have the weights with which they
            represent all samples.
        y_verified : array-like of shape (n_samples,), optional
            As in `fit`. Searches pass it if metadata routing is enabled.
        """
        X, labels, weights = rows_to_score(self, X, y, y_verified, sample_weight)
        return float(accuracy_score(labels, self.predict(X), sample_weight=weights))

    # ---- parameters
    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Names of all parameters, also for classes that combine parents without a constructor."""
        return sorted(name for name in merged_signature(cls).parameters if name != "self")

    def _check_names(self, given: Iterable[str], error: type[Exception]) -> None:
        """Raise for unknown names: a TypeError in constructors, as Python does, else a ValueError."""
        own = self._get_param_names()
        for name in given:
            if name not in own and not is_net_name(name):
                skorch = "those of skorch.NeuralNetClassifier, such as module__hidden"
                raise error(f"{type(self).__name__} has no parameter {name!r}. Valid are {own} and {skorch}.")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        # including the skorch parameters that were set
        return super().get_params(deep) | {name: value for name, value in vars(self).items() if is_net_name(name)}

    def set_params(self, **params: Any) -> NoisyLabelClassifier:
        """Set parameters of the classifier or its nets, such as ``lr`` or ``module__hidden``, by name."""
        self._check_names(params, ValueError)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    # ---- save
    def save(self, path: str | PathLike) -> None:
        """Save the fitted classifier to a file for `noisytransition.load`.

        The file contains weights, fitted attributes, and parameters that are plain data. It does not contain code of
        your own module, callbacks, functions or optimiser classes. Its format is safetensors, which is safe to load.

        Parameters
        ----------
        path : str or Path
            An existing saved classifier is replaced. ValueError if it is a file of another kind.
        """
        check_is_fitted(self, "net_")
        net = type(self.net_)
        if (net.infer, net.predict_proba) != (NoisyLabelNet.infer, NoisyLabelNet.predict_proba):
            raise ValueError(f"{net.__name__} overrides how nets predict. Pickle the classifier instead.")
        if Path(path).exists():
            read(Path(path), "classifier")  # raises for a file of another kind
        params = self.get_params(deep=False)
        plain = {k: v for k, v in params.items() if is_plain(v)}
        fitted = {k: v for k, v in vars(self).items() if k.endswith("_") and k not in ("net_", *params) and k[0] != "_"}
        if odd := [name for name, value in fitted.items() if not is_plain(value)]:
            raise ValueError(f"{type(self).__name__}.{odd[0]} is not plain data. Pickle the classifier instead.")
        module = self.net_.plain_module_
        content = {
            "class": name_of(type(self)),
            "module": None if isinstance(self.module, str) else name_of(type(module)),
            "params": plain,
            "not_saved": sorted(k for k in params.keys() - plain.keys() if k.startswith("module__")),
            "fitted": fitted,
            "weights": module.state_dict(),
            "loss": self.net_.criterion_.state_dict() if type(self.net_.criterion_) is self._loss else {},
        }
        write(Path(path), "classifier", content)


merge_signature(NoisyLabelClassifier)


# ---------------------------------------------------------------------------- saved classifiers
def with_attributes(of: Any, attributes: dict[str, Any]) -> Any:
    """Set attributes of an instance, except methods and names that Python or numpy would call or read."""
    for name, value in attributes.items():
        if name in vars(of) or not (hasattr(type(of), name) or name.startswith("__")):
            setattr(of, name, value)
    return of


_RECORDS = (Calibration, Candidate, Dependence, OutOfFold, LogLinear, OneT, SourceFit, SourceLabels)
KINDS.update({cls: (list, cls._make) for cls in (*_RECORDS, TransitionUncertainty)})
KINDS[LabelNoiseModel] = (lambda model: [vars(model)], lambda parts: with_attributes(LabelNoiseModel(), *parts))


def name_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
