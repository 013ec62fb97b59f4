"""The skorch net of one training stage."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping, EpochScoring, PassthroughScoring
from skorch.utils import to_tensor
from torch import Tensor, nn

from ._batches import BatchLoader
from ._mlp import MLP


def _softmax(logits: Tensor) -> Tensor:
    return torch.softmax(logits, dim=-1)


def _accuracy(net: Any, X: Any, y: Any) -> float:
    """Share of labels that the clean head predicts."""
    return _share_right(net.predict_proba(X), y)


def _noisy_accuracy(net: Any, X: Any, y: Any) -> float:
    """Share of noisy labels that are predicted through T; without a T, by the net itself."""
    proba = net.predict_proba(X)
    T = getattr(net.criterion_, "transition_matrix", np.eye(proba.shape[1]))
    return _share_right(proba @ T, y)


def _share_right(scores: Any, y: Any) -> float:
    """Share of rows whose highest score is that of their label; y + n_classes is a marked y."""
    return float(np.mean(scores.argmax(axis=1) == np.asarray(y) % scores.shape[1]))


class NoisyLabelNet(NeuralNetClassifier):
    """skorch's classifier for modules that give logits, with batches cast on the device and Ctrl-C passed on.

    Parameters
    ----------
    module : nn.Module, class or instance
    batch_transform : callable, optional
        Augmentation: batch of inputs on the device -> batch, for training batches only.
    labels : {"noisy", "clean"}, default="noisy"
        What the labels are; the scores of a validation set are named after it.
    dtype : str or torch.dtype, default="auto"
        What inputs are cast to, batch by batch. "auto": floats, images in uint8, and all input of modules without
        an embedding become the module's floating type; integers stay integers for embeddings.
    **kwargs
        As for `skorch.NeuralNetClassifier`.
    """

    def __init__(
        self,
        module: Any,
        *args: Any,
        batch_transform: Callable[[Tensor], Tensor] | None = None,
        labels: str = "noisy",
        dtype: str | torch.dtype = "auto",
        criterion: Any = nn.CrossEntropyLoss,
        train_split: Any = None,
        predict_nonlinearity: Any = _softmax,
        iterator_train: Any = BatchLoader,
        iterator_train__shuffle: bool = True,
        iterator_valid: Any = BatchLoader,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            module,
            *args,
            criterion=criterion,
            train_split=train_split,
            predict_nonlinearity=predict_nonlinearity,
            iterator_train=iterator_train,
            iterator_train__shuffle=iterator_train__shuffle,
            iterator_valid=iterator_valid,
            **kwargs,
        )
        self.batch_transform = batch_transform
        self.labels = labels
        self.dtype = dtype

    # ---- inputs
    @property
    def plain_module_(self) -> nn.Module:
        """The module itself, also where `compile` has wrapped it."""
        module: nn.Module = self.module_
        return getattr(module, "_orig_mod", module)

    def prepare(self, x: Any) -> Tensor:
        """Batch of inputs as the module takes it: on the device, cast, and augmented in training mode."""
        x = to_tensor(x, device=self.device)
        x = x.to(self._dtype_for(x))
        if self.module_.training and self.batch_transform is not None:
            x = self.batch_transform(x)
        return x

    def infer(self, x: Any, **fit_params: Any) -> Tensor:
        """Logits of a batch."""
        return self.module_(self.prepare(x), **fit_params)

    def _dtype_for(self, x: Tensor) -> torch.dtype:
        if self.dtype != "auto":
            return getattr(torch, self.dtype) if isinstance(self.dtype, str) else self.dtype
        is_image = x.dtype is torch.uint8 and x.ndim > 2
        if x.is_floating_point() or is_image or not _embeds(self.plain_module_):
            return next((p.dtype for p in self.plain_module_.parameters() if p.is_floating_point()), torch.float32)
        return x.dtype

    # ---- scores of a validation set (`train_split`)
    @property
    def _default_callbacks(self) -> list[tuple[str, Any]]:
        """skorch's own, and loss and accuracy under names that say of which labels they are."""
        loss, accuracy = f"valid_{self.labels}_loss", f"valid_{self.labels}_acc"
        ours = [
            ("valid_acc", EpochScoring(_accuracy, name="valid_acc", lower_is_better=False)),
            (loss, PassthroughScoring(loss, lower_is_better=True)),
            (accuracy, EpochScoring(_noisy_accuracy, name=accuracy, lower_is_better=False)),
        ]
        theirs = [(name, callback) for name, callback in super()._default_callbacks if name != "valid_acc"]
        return theirs[:-1] + ours + theirs[-1:]  # the last one prints

    def validation_step(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        """Score a validation batch by the loss that the net is trained on."""
        step = super().validation_step(batch, **fit_params)
        self.history.record_batch(f"valid_{self.labels}_loss", step["loss"].item())
        return step

    # ---- a loss that is no longer a number, and interrupts
    def run_single_epoch(self, iterator: Any, training: bool, prefix: str, step_fn: Any, **fit_params: Any) -> None:
        """Run an epoch as skorch does, and stop a training that has diverged."""
        super().run_single_epoch(iterator, training, prefix, step_fn, **fit_params)
        if training and not np.isfinite(loss := self.history[-1, "batches", -1, "train_loss"]):
            raise ValueError(
                f"the training loss is {loss} after epoch {len(self.history)}: the step lr={self.lr} is too large "
                "for these inputs. Scale X (StandardScaler; images to 0..1) or lower lr."
            )

    def notify(self, method_name: str, **cb_kwargs: Any) -> None:
        """Call a method of every callback; EarlyStopping's KeyboardInterrupt ends the stage, any other the fit."""
        getattr(self, method_name)(self, **cb_kwargs)
        for _, callback in self.callbacks_:
            try:
                getattr(callback, method_name)(self, **cb_kwargs)
            except KeyboardInterrupt:
                self._stopped_early = isinstance(callback, EarlyStopping)
                raise

    def fit_loop(self, X: Any, y: Any = None, epochs: int | None = None, **kwargs: Any) -> Any:
        """Train; note whether a KeyboardInterrupt was the user's, for skorch swallows it."""
        self._stopped_early = self._interrupted = False
        try:
            return super().fit_loop(X, y, epochs, **kwargs)
        except KeyboardInterrupt:
            self._interrupted = not self._stopped_early
            raise

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, **fit_params: Any) -> Any:
        """Train on; unlike skorch's, Ctrl-C comes out of it."""
        super().partial_fit(X, y, classes, **fit_params)
        if self._interrupted:
            raise KeyboardInterrupt
        return self


def _embeds(module: nn.Module) -> bool:
    return any(isinstance(m, nn.Embedding | nn.EmbeddingBag) for m in module.modules()) and not isinstance(module, MLP)
