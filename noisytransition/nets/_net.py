"""The skorch net of one training stage, the base class of updates of its loss, and the built-in network."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback, EarlyStopping, EpochScoring, PassthroughScoring
from skorch.utils import to_numpy
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from ..meta_gradient._forward_pass import each_part, has_parts, logits_of
from ._rows import Batch, BatchLoader, CleanBatches, Loaded, Rows, on_device, rows_at_once

# of skorch's parameters
_DEFAULTS: dict[str, Any] = {
    "criterion": nn.CrossEntropyLoss,
    "train_split": None,
    "predict_nonlinearity": partial(torch.softmax, dim=-1),
    "iterator_train": BatchLoader,
    "iterator_train__shuffle": True,
    "iterator_valid": BatchLoader,
}
# Tolerance for sums of softmax outputs, far above float32 rounding; a choice, not measured
_SUM_TO_ONE = 1e-4
#: Maximum number of classes with a history of T: one T of 1,000 classes takes 8 MB
MOST_CLASSES_IN_HISTORY = 500


class Standardise(nn.Flatten):
    """Flatten samples, subtract a mean from each column and divide by a scale; both are fixed."""

    def __init__(self, mean: ArrayLike, scale: ArrayLike) -> None:
        super().__init__()
        self.mean = nn.Buffer(torch.tensor(np.asarray(mean, dtype=np.float32)))
        self.scale = nn.Buffer(torch.tensor(np.asarray(scale, dtype=np.float32)))

    def forward(self, x: Tensor) -> Tensor:
        """Standardised samples."""
        flat = super().forward(x)
        if flat.shape[1] != len(self.mean):
            fact = f"{flat.shape[1]} values, but those of fit have {len(self.mean)}"
            raise ValueError(f"samples of shape {tuple(x.shape[1:])} have {fact}. Pass samples of the same shape.")
        return (flat - self.mean) / self.scale


class MLP(nn.Sequential):
    """Multi-layer perceptron with ReLU activations; inputs of any shape are flattened.

    Parameters
    ----------
    n_in : int
        Number of values in one sample.
    n_out : int
        Number of classes.
    hidden : int or sequence of int, default=128
        Width of each hidden layer. With multiples of 4, predictions do not depend on the order of samples, to the last
        bit. An empty sequence gives logistic regression.
    mean, scale : array-like of shape (n_in,), optional
        Standardisation of the columns. Default: none. Classifiers pass statistics of the noisy samples to their
        built-in networks.
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        hidden: int | Sequence[int] = 128,
        mean: ArrayLike | None = None,
        scale: ArrayLike | None = None,
    ) -> None:
        widths = [n_in, *([hidden] if isinstance(hidden, int | np.integer) else hidden)]
        first = nn.Flatten() if mean is None or scale is None else Standardise(mean, scale)
        layers = [layer for a, b in pairwise(widths) for layer in (nn.Linear(a, b), nn.ReLU())]
        super().__init__(first, *layers, nn.Linear(widths[-1], n_out))


class DivergenceError(ValueError):
    """Training resulted in a loss, weight or probability that is not finite."""


class Update(Callback):
    """Base class of updates of the parameters of a loss: a skorch callback with hooks before and after each step.

    Subclasses keep their state in attributes with a trailing underscore, which are saved with an interrupted fit.

    ``transition_history_`` has T at the start and after each epoch, if the loss has a T of at most 500 classes.
    """

    #: parameter groups of the network's optimiser, as in skorch: (pattern of names, settings). If there are some, it
    #: also updates the parameters of the loss, whose names have the prefix ``criterion_.``
    param_groups: Sequence[tuple[str, dict[str, Any]]] = ()

    def before_step(self, net: "NoisyLabelNet", batch: Batch) -> None:
        """Run before each step of the network; the batch is on the device."""

    def after_step(self, net: "NoisyLabelNet", batch: Batch, logits: Tensor) -> None:
        """Run after each step; `logits` are the detached logits of the noisy samples before the step."""

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Record the initial T."""
        self.transition_history_: list[NDArray[np.float64]] = []
        Update.on_epoch_end(self, net)

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Record T after the epoch."""
        if net.classes is None or len(net.classes) <= MOST_CLASSES_IN_HISTORY:
            T = getattr(net.criterion_, "transition_matrix", None)
            self.transition_history_ += [] if T is None else [T]


class NoisyLabelNet(NeuralNetClassifier):
    """skorch classifier with learned loss parameters.

    Parameters
    ----------
    module : nn.Module, class or instance
        Network that returns logits.
    update : Update, optional
        Update of the parameters of the criterion. Default: they are fixed.
    select : Selection, optional
        Selection of the epoch, or of T, that is kept. Default: the last epoch.
    batch_transform : callable, optional
        Augmentation: function of a batch of training inputs on the device.
    labels : {"noisy", "clean"}, default="noisy"
        Kind of the training labels, which names the scores of a validation set.
    dtype, precision
        As in `NoisyLabelClassifier`: types of inputs, cast batch by batch, and of the module in `torch.autocast`.
    **kwargs
        As in `skorch.NeuralNetClassifier`, with other defaults: cross-entropy of logits, no `train_split`.

    Notes
    -----
    ``criterion_.transition_matrix`` is T: during training the T of the loss, afterwards the selected T.
    """

    # in training, a loader draws a seed from the global generator, as in skorch
    _is_trained_now = False
    #: gradient scaler; it changes gradients in fp16 only, where small ones are zero
    scaler_: torch.amp.GradScaler

    def __init__(
        self,
        module: type[nn.Module] | nn.Module,
        *args: Any,
        update: Update | None = None,
        select: Callback | None = None,
        batch_transform: Callable[[Tensor], Tensor] | None = None,
        labels: str = "noisy",
        dtype: str | torch.dtype = "auto",
        precision: str = "float32",
        **kwargs: Any,
    ) -> None:
        super().__init__(module, *args, **(_DEFAULTS | kwargs))
        self.update = update
        self.select = select
        self.batch_transform = batch_transform
        self.labels = labels
        self.dtype = dtype
        self.precision = precision

    def begin(self, rows: Rows, classes: NDArray, seed: int) -> None:
        """Draw initial weights by a seed; raise if the outputs for the first and last sample are invalid."""
        torch.manual_seed(seed)
        self.initialize()
        logits = _logits_of_two(self, rows)
        _check_logits(logits, type(self.plain_module_).__name__, min(len(rows), 2), classes)

    def initialize(self) -> "NoisyLabelNet":
        """Initialise as in skorch, and the gradient scaler."""
        super().initialize()
        device = torch.device(self.device or "cpu").type
        self.scaler_ = torch.amp.GradScaler(device, enabled=self.precision == "fp16")
        return self

    # ---- inputs
    @property
    def plain_module_(self) -> nn.Module:
        """The module without the wrapper of `compile`."""
        return uncompiled(self.module_)

    def prepare(self, x: Any) -> Any:
        """Move a batch of inputs to the device, cast it and, in training mode, augment it."""
        is_part = has_parts(x)
        dtype_of = partial(_input_dtype, self.dtype, self.plain_module_, is_part=is_part)
        x = each_part(lambda part: on_device(part, self.device, dtype_of(part)), x)
        if self.module_.training and self.batch_transform is not None:
            x = self.batch_transform(x)
        return x

    def prepared(self, batch: Loaded) -> Batch:
        """Move a batch of a loader to the device and prepare its inputs."""
        batch = Batch.of(batch)
        return Batch(self.prepare(batch.x), {name: on_device(c, self.device) for name, c in batch.columns.items()})

    def infer(self, x: Any, **fit_params: Any) -> Tensor:
        """Logits of a batch."""
        return logits_of(self.module_, self.prepare(x), self.precision, **fit_params)

    def get_iterator(self, dataset: Any, training: bool = False) -> Iterable:
        """Make a loader; outside of training, it does not use the global random generator."""
        if training:
            loader = super().get_iterator(dataset, training=True)
        else:
            params = {"batch_size": rows_at_once(dataset, self.batch_size)} | self.get_params_for("iterator_valid")
            if params["batch_size"] == -1:
                params["batch_size"] = len(dataset)
            loader = self.iterator_valid(dataset, **params)
        if not self._is_trained_now and isinstance(loader, DataLoader) and loader.generator is None:
            loader.generator = torch.Generator()
        return loader

    def predict_proba(self, X: Any) -> NDArray:
        """Predict posteriors; raise if one is not finite."""
        proba = self._predicted(X, self._get_predict_nonlinearity())
        check_proba(self, proba)
        return proba

    def predict_log_proba(self, X: Any) -> NDArray:
        """Predict log-posteriors; raise if a posterior is not finite."""
        log_proba = self._predicted(X, partial(torch.log_softmax, dim=-1))
        check_proba(self, np.exp(log_proba))
        return log_proba

    def _predicted(self, X: Any, nonlinearity: Callable[[Tensor], Tensor]) -> NDArray:
        """Predictions of all batches; small arrays kept between large batches would fragment the memory."""
        rows = self.get_dataset(X)
        predicted = np.empty(0)
        start = 0
        for logits in self.forward_iter(rows):
            of_batch = to_numpy(nonlinearity(logits))
            if not start:
                predicted = np.empty((len(rows), *of_batch.shape[1:]), of_batch.dtype)
            predicted[start : start + len(of_batch)] = of_batch
            start += len(of_batch)
        return predicted

    # ---- the step
    def train_step(self, batch: Loaded, **fit_params: Any) -> dict[str, Any]:
        """Take one step; the update runs once, even if the optimiser repeats evaluations (LBFGS)."""
        self._set_training(True)
        batch = self.prepared(batch)
        if self.update is not None:
            self.update.before_step(self, batch)
        step = super().train_step(batch, **fit_params)
        if self.update is not None:
            self.update.after_step(self, batch, step["y_pred"].detach())
        return step

    def train_step_single(self, batch: Batch, **fit_params: Any) -> dict[str, Any]:
        """Compute the loss and its gradient."""
        step = self._loss(batch)
        self.backward(step["loss"])
        return step

    def _loss(self, batch: Batch) -> dict[str, Any]:
        """Loss and logits of a batch."""
        logits = logits_of(self.module_, batch.x, self.precision) if batch.logits is None else batch.logits
        batch.logits = None  # valid once, since weights change
        columns = {name: batch.columns.get(name) for name in getattr(self.criterion_, "columns", ())}
        return {"loss": self.criterion_(logits, batch.label, **columns), "y_pred": logits}

    def validation_step(self, batch: Loaded, **fit_params: Any) -> dict[str, Any]:
        """Compute the training loss of a validation batch."""
        self._set_training(False)
        batch = self.prepared(batch)
        # samples of the user's (`predefined_split`) are noisy
        batch.columns.setdefault("is_clean", torch.zeros_like(batch.label, dtype=torch.bool))
        with torch.no_grad():
            step = self._loss(batch)
        self.history.record_batch(f"valid_{self.labels}_loss", step["loss"].item())
        return step

    def run_single_epoch(
        self, iterator: Iterable | None, training: bool, prefix: str, step_fn: Callable, **fit_params: Any
    ) -> None:
        """Run an epoch; raise if it has no training batch, or a training loss that is not finite."""
        super().run_single_epoch(iterator, training, prefix, step_fn, **fit_params)
        if training and not self.history[-1, "train_batch_count"]:
            fact = f"an epoch has no batch: drop_last=True with fewer samples than batch_size={self.batch_size}"
            raise ValueError(f"{fact}. Lower batch_size, or omit iterator_train__drop_last.")
        losses = [batch["train_loss"] for batch in self.history[-1]["batches"] if "train_loss" in batch]
        if bad := [loss for loss in losses if not np.isfinite(loss)]:
            raise DivergenceError(f"the training loss is {bad[0]} in epoch {len(self.history)}: {_advice(self)}")

    # ---- half precision
    def backward(self, loss: Tensor) -> None:
        """Compute the gradients of a loss; in fp16 scaled, then unscaled."""
        self.scaler_.scale(loss).backward()
        for name in self._optimizers:
            self.scaler_.unscale_(getattr(self, f"{name}_"))

    def _zero_grad_optimizer(self, set_to_none: bool | None = None) -> None:
        """Release the gradients, as torch does by default; its own call takes 5 % of a fit of a small network."""
        for name in self._optimizers:
            for weight in (weight for group in getattr(self, f"{name}_").param_groups for weight in group["params"]):
                weight.grad = None

    def _step_optimizer(self, step_fn: Callable) -> None:
        """Take a step; in fp16 only if all gradients are finite."""
        if not self.scaler_.is_enabled():
            super()._step_optimizer(step_fn)
            return
        step_fn()
        for name in self._optimizers:
            self.scaler_.step(getattr(self, f"{name}_"))
        self.scaler_.update()

    # ---- parameters of the criterion
    def torch_compile(self, module: nn.Module, name: str) -> nn.Module:
        """Compile only the module: the loss is cheap, and its state dict keeps its names."""
        return module if name in self._criteria else super().torch_compile(module, name)

    def get_all_learnable_params(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield parameters of the modules, and parameters of the criterion in the network's optimiser."""
        for name in self._modules:
            yield from getattr(self, f"{name}_").named_parameters()
        if self.update is not None and self.update.param_groups:
            yield from self.criterion_.named_parameters(prefix="criterion_")

    # ---- callbacks
    @property
    def _default_callbacks(self) -> list[tuple[str, Any]]:
        """skorch's callbacks, scores of a validation set, update and selection."""
        loss = f"valid_{self.labels}_loss"
        score = f"valid_{self.labels}_acc"
        ours = [
            (loss, PassthroughScoring(loss, lower_is_better=True)),
            (score, EpochScoring(_noisy_accuracy, name=score, lower_is_better=False)),
            ("update", self.update),
            ("select", self.select),
        ]
        theirs = super()._default_callbacks
        return theirs[:-1] + ours + theirs[-1:]  # the last callback prints

    def release(self) -> None:
        """Release the samples held by parts of the net, so that a trained net does not keep them in memory."""
        for part in (self.criterion_, *(callback for _, callback in self.callbacks_)):
            for name, value in vars(part).items():
                if isinstance(value, Rows | CleanBatches):
                    setattr(part, name, None)
            if hasattr(part, "release"):
                part.release()

    # ---- divergence and interrupts
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, **fit_params: Any) -> "NoisyLabelNet":
        """Continue the training. Unlike skorch, raise a KeyboardInterrupt that is not from EarlyStopping."""
        self._is_trained_now = True
        interrupt = None
        try:
            self.notify("on_train_begin", X=X, y=y)
            try:
                self.fit_loop(X, y, **fit_params)
            except KeyboardInterrupt as error:
                interrupt = error
            self.notify("on_train_end", X=X, y=y)
        finally:
            self._is_trained_now = False
        early = (callback for _, callback in self.callbacks_ if isinstance(callback, EarlyStopping))
        if interrupt is not None and not any(callback.misses_ == callback.patience for callback in early):
            raise interrupt
        check_weights(self)
        return self


def _input_dtype(dtype: str | torch.dtype, module: nn.Module, x: Tensor, *, is_part: bool) -> torch.dtype:
    """Type of inputs: as given or, for "auto", as required by the module; integer parts are kept."""
    is_real = x.is_floating_point() or (x.dtype is torch.uint8 and x.ndim > 2)  # uint8: images
    if dtype != "auto" and (is_real or not is_part):
        return getattr(torch, dtype) if isinstance(dtype, str) else dtype
    if is_real or not (is_part or any(isinstance(part, nn.Embedding | nn.EmbeddingBag) for part in module.modules())):
        return next((weight.dtype for weight in module.parameters() if weight.is_floating_point()), torch.float32)
    kept = (torch.int32, torch.bool) if is_part else (torch.int32,)
    return x.dtype if x.dtype in kept else torch.int64  # embeddings require int32 or int64


# ---- scores of a validation set
def _noisy_accuracy(net: NoisyLabelNet, X: Dataset, y: NDArray) -> float:
    """Accuracy of noisy labels predicted through T, or by the network alone if the loss has no T."""
    proba = net.predict_proba(X)
    T = getattr(net.criterion_, "transition_matrix", np.eye(proba.shape[1]))
    return float(np.mean((proba @ T).argmax(axis=1) == y))


def uncompiled(part: Any) -> Any:
    """Module without the wrapper of `torch.compile`; other objects are unchanged."""
    return getattr(part, "_orig_mod", part)


# ---------------------------------------------------------------------------- before a training
def _logits_of_two(net: "NoisyLabelNet", rows: Rows) -> object:
    """Output of a module for the first and last sample."""
    module = net.plain_module_.eval()
    x: Any = ()
    try:
        x = rows.take(sorted({0, len(rows) - 1})).inputs()
        with torch.no_grad():
            x = net.prepare(x)
            return logits_of(module, x)
    except Exception as error:
        batch = each_part(lambda part: f"shape {tuple(part.shape)} and type {part.dtype}", x)
        advice = "Check the module's inputs and that samples have one shape, or cast batches by dtype="
        raise ValueError(f"{type(module).__name__} does not accept a batch of {batch}: {error}. {advice}.") from error
    finally:
        module.train()


def _check_logits(logits: object, name: str, n: int, classes: NDArray) -> None:
    if not isinstance(logits, Tensor) or logits.shape != (n, len(classes)):
        shape = tuple(getattr(logits, "shape", ())) or type(logits).__name__
        expected = f"one logit per class, shape {(n, len(classes))}, for the classes {classes[:10].tolist()}"
        raise ValueError(f"{name} returns shape {shape} for {n} samples. It must return {expected}.")
    if bool(torch.isnan(logits).any()) or bool(torch.isposinf(logits).any()):
        advice = "Scale X (StandardScaler; images to 0..1), and check the module"
        raise ValueError(f"{name} returns NaN or infinite logits before training. {advice}.")
    if bool((logits >= 0).all()) and bool(((logits.double().sum(1) - 1).abs() < _SUM_TO_ONE).all()):
        fact = f"{name} returns probabilities (non-negative, with sum 1), but must return logits"
        raise ValueError(f"{fact}. Remove its last softmax; predict_proba applies one.")


# ---------------------------------------------------------------------------- in a training and after it
def check_weights(net: "NoisyLabelNet") -> None:
    """Raise if trained weights, or parameters of the loss, are not finite; fixed weights may be infinite on purpose."""
    trained = [(name, weight) for name, weight in net.get_all_learnable_params() if weight.requires_grad]
    learned = trained + list(net.criterion_.named_parameters())
    if bad := [name for name, weight in learned if not weight.isfinite().all()]:
        raise DivergenceError(f"weights are not finite after epoch {len(net.history)}, in {bad}: {_advice(net)}")


def check_proba(net: "NoisyLabelNet", proba: NDArray) -> None:
    """Raise if a probability is not finite."""
    bad = np.flatnonzero(~np.isfinite(proba).all(axis=1))
    if len(bad):
        fact = f"outputs that are not finite for {len(bad)} of {len(proba)} samples, the first at position {bad[0]}"
        name = type(net.plain_module_).__name__
        raise DivergenceError(f"{name} returns {fact}. Scale X as for fit, and check it for NaN.")


def _advice(net: "NoisyLabelNet") -> str:
    return f"lr={net.lr} is too large for these inputs. Scale X (StandardScaler; images to 0..1) or lower lr."
