"""skorch's net with less overhead per step, deferred reading and checking of losses, and half precision."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback, EpochScoring, GradientNormClipping, LRScheduler, PrintLog
from skorch.dataset import get_len
from skorch.history import History
from torch import Tensor

from ._checks import check_losses

# Empty methods of skorch's base class
_NOTHING = {name: method for name, method in vars(Callback).items() if name.startswith("on_")}
# Events inside an epoch, and skorch's callbacks that do not read the history at these events
_IN_EPOCH = ("on_batch_begin", "on_grad_computed", "on_batch_end")
_READING_NOTHING = (EpochScoring, GradientNormClipping)


class LeanNet(NeuralNetClassifier):
    """skorch's classifier with a faster loop and the same results and hooks.

    Only callbacks that define a method for an event are called. Losses are read at the end of the epoch, unless a
    callback can read them before, since each reading synchronises a GPU. A callback with methods for batches that does
    not read losses can set ``reads_batches = False``.
    """

    #: gradient scaler in fp16, where small gradients are zero; it omits steps that overflow
    scaler_: Any = None
    # entries with tensors until the epoch ends, and their names; None: losses are read at once
    _unread: list[tuple[dict[str, Any], str]] | None = None
    _is_scaled = False

    def notify(self, method_name: str, **cb_kwargs: Any) -> None:
        """Call a method of the net and of each callback that defines it."""
        getattr(self, method_name)(self, **cb_kwargs)
        for _, callback in self.callbacks_:
            is_unseen = type(callback) is PrintLog and not self.verbose and callback.sink is print
            if not is_unseen and _listens(callback, method_name):
                getattr(callback, method_name)(self, **cb_kwargs)

    def run_single_epoch(
        self, iterator: Iterable | None, training: bool, prefix: str, step_fn: Callable, **fit_params: Any
    ) -> None:
        """Run an epoch as in skorch; raise if it has no batch, or a loss that is not finite."""
        if iterator is None:
            return
        # user code can read the losses of batches before the end of the epoch
        is_own = not _is_ours(type(self)) or not vars(self).keys().isdisjoint(_IN_EPOCH)
        is_watched = is_own or type(self.history) is not History or any(_reads_batches(of) for _, of in self.callbacks_)
        n_batches = 0
        self._unread = None if is_watched else []
        try:
            for batch in iterator:
                self.notify("on_batch_begin", batch=batch, training=training)
                step = step_fn(batch, **fit_params)
                self.record_batch(f"{prefix}_loss", step["loss"])
                n_rows = get_len(batch[0] if isinstance(batch, tuple | list) else batch)
                self.history.record_batch(f"{prefix}_batch_size", n_rows)
                self.notify("on_batch_end", batch=batch, training=training, **step)
                n_batches += 1
        finally:
            unread = self._unread or []
            self._unread = None
            _read(unread)
        self.history.record(f"{prefix}_batch_count", n_batches)
        if training and not n_batches:
            raise ValueError(
                "an epoch has no batch: iterator_train__drop_last=True with fewer samples than batch_size="
                f"{self.batch_size}. Lower batch_size, or omit drop_last."
            )
        if training:
            check_losses(self)

    def record_batch(self, name: str, value: Any) -> None:
        """Record a value of the present batch; an unread loss stays a tensor until the epoch ends."""
        if isinstance(value, Tensor) and value.numel() == 1:
            value = value.item() if self._unread is None else value.detach()
            if self._unread is not None:
                self._unread.append((self.history[-1]["batches"][-1], name))
        self.history.record_batch(name, value)

    def _zero_grad_optimizer(self, set_to_none: bool | None = None) -> None:
        """Release the gradients, as torch's optimisers do by default."""
        optimizers = [getattr(self, f"{name}_") for name in self._optimizers]
        if set_to_none is False or any(type(o).zero_grad is not torch.optim.Optimizer.zero_grad for o in optimizers):
            super()._zero_grad_optimizer(set_to_none)
            return
        for weight in (w for optimizer in optimizers for group in optimizer.param_groups for w in group["params"]):
            weight.grad = None

    # ---- half precision
    def backward(self, loss: Tensor) -> None:
        """Compute the gradients of a loss; in fp16 scaled, then unscaled."""
        (loss if self.scaler_ is None else self.scaler_.scale(loss)).backward()
        if self.scaler_ is not None:
            for name in self._optimizers:
                self.scaler_.unscale_(getattr(self, f"{name}_"))
            self._is_scaled = True

    def _step_optimizer(self, step_fn: Callable | None) -> None:
        if self.scaler_ is None:
            super()._step_optimizer(step_fn)
            return
        self._is_scaled = False
        if step_fn is not None:
            step_fn()
        if not self._is_scaled:  # a train_step_single of the user's calls loss.backward()
            super()._step_optimizer(None)
            return
        for name in self._optimizers:
            self.take_step(getattr(self, f"{name}_"))
        self.scaler_.update()

    def take_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Take a step of an optimiser after `backward`; in fp16 only if all gradients are finite."""
        if self._is_scaled:
            self.scaler_.step(optimizer)
        else:
            optimizer.step()


def _listens(callback: Callback, method_name: str) -> bool:
    """Whether a callback, or its class, defines a method for an event."""
    own = getattr(type(callback), method_name, None)
    return own is None or own is not _NOTHING.get(method_name) or method_name in vars(callback)


def _reads_batches(callback: Callback) -> bool:
    """Whether a callback can read entries of batches before the epoch ends."""
    has_own_step = hasattr(callback, "before_step") and not _is_ours(type(callback))  # an update
    is_called = has_own_step or any(_listens(callback, event) for event in _IN_EPOCH)
    by_epoch = type(callback) is LRScheduler and callback.step_every != "batch"
    return is_called and getattr(callback, "reads_batches", not by_epoch and type(callback) not in _READING_NOTHING)


def _is_ours(cls: type) -> bool:
    """Whether a class belongs to this library."""
    return cls.__module__.partition(".")[0] == __name__.partition(".")[0]


def _read(unread: list[tuple[dict[str, Any], str]]) -> None:
    """Convert recorded tensors to numbers, with one transfer per type."""
    by_type: dict[torch.dtype, list[tuple[dict[str, Any], str]]] = {}
    for entry, name in unread:
        by_type.setdefault(entry[name].dtype, []).append((entry, name))
    for alike in by_type.values():
        values = torch.cat([entry[name].reshape(1) for entry, name in alike]).tolist()
        for (entry, name), value in zip(alike, values, strict=True):
            entry[name] = value
