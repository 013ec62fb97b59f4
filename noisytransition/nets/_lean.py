"""skorch's net with less Python in each step: the same results, and the same hooks to override."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback, EpochScoring, GradientNormClipping, LRScheduler, PrintLog
from skorch.dataset import get_len
from skorch.history import History
from torch import Tensor, nn

from ._mlp import embeds
from ._rows import Batch

# what skorch's base class does at each event: nothing
_NOTHING = {name: method for name, method in vars(Callback).items() if name.startswith("on_")}
# events inside an epoch, and callbacks of skorch that do not look into the history at them
_IN_EPOCH = ("on_batch_begin", "on_grad_computed", "on_batch_end")
_READING_NOTHING = (EpochScoring, GradientNormClipping)


class LeanNet(NeuralNetClassifier):
    """skorch's classifier, whose loop skips what has no effect.

    Callbacks without a method of their own for an event are not called, nor is the table of epochs made where it is not
    printed; the mode of modules is set where it is another one, and entries of the history are made without a search.
    Losses are read at the end of the epoch, unless something may look at them before: on a GPU, each reading waits for
    all that it has been given to do. A callback that has methods for batches, but does not look, says
    ``reads_batches = False``.
    """

    # entries that hold tensors until the epoch ends, and under which name; None: losses are read at once
    _unread: list[tuple[dict[str, Any], str]] | None = None

    def notify(self, method_name: str, **cb_kwargs: Any) -> None:
        """Call a method of the net and of every callback that has one of its own."""
        getattr(self, method_name)(self, **cb_kwargs)
        for _, callback in self.callbacks_:
            if _listens(callback, method_name) and not self._is_unseen(callback):
                getattr(callback, method_name)(self, **cb_kwargs)

    def _is_unseen(self, callback: Callback) -> bool:
        """Whether it makes a table that is not printed."""
        return type(callback) is PrintLog and not self.verbose and callback.sink is print

    def run_single_epoch(
        self, iterator: Iterable | None, training: bool, prefix: str, step_fn: Callable, **fit_params: Any
    ) -> None:
        """Run an epoch as skorch does."""
        if iterator is None:
            return
        n_batches = 0
        with self.reading_at_end():
            for batch in iterator:
                self.notify("on_batch_begin", batch=batch, training=training)
                step = step_fn(batch, **fit_params)
                self.record_batch(f"{prefix}_loss", step["loss"])
                self.record_batch(f"{prefix}_batch_size", _n_rows(batch))
                self.notify("on_batch_end", batch=batch, training=training, **step)
                n_batches += 1
        self.history.record(f"{prefix}_batch_count", n_batches)

    @contextmanager
    def reading_at_end(self) -> Iterator[None]:
        """Make numbers of the losses of an epoch's batches at its end, unless something may look at them before."""
        self._unread = None if self._is_watched() else []
        try:
            yield
        finally:
            unread, self._unread = self._unread, None
            _read(unread or [])

    def _is_watched(self) -> bool:
        """Whether something of the user's may look at the losses of an epoch's batches before its end."""
        own = not _is_ours(type(self)) or not vars(self).keys().isdisjoint(_IN_EPOCH)
        return own or type(self.history) is not History or any(_reads_batches(of) for _, of in self.callbacks_)

    def on_batch_begin(self, net: NeuralNetClassifier, *args: Any, **kwargs: Any) -> None:
        """Begin an entry of the history."""
        if (batches := _batches(self.history)) is None:
            super().on_batch_begin(net, *args, **kwargs)
        else:
            batches.append({})

    def record_batch(self, name: str, value: Any) -> None:
        """Note something of the present batch; a loss that nobody looks at is a tensor until the epoch ends."""
        is_number = isinstance(value, Tensor) and value.numel() == 1
        if isinstance(value, np.generic) or (is_number and self._unread is None):
            value, is_number = value.item(), False
        if (batches := _batches(self.history)) is None:
            self.history.record_batch(name, value)
            return
        if is_number and self._unread is not None:
            value = value.detach()
            self._unread.append((batches[-1], name))
        batches[-1][name] = value

    def _set_training(self, training: bool = True) -> None:
        """Set the mode of modules and criteria, unless they are in it; callbacks and modules may change it."""
        for name in self._modules + self._criteria:
            module = getattr(self, f"{name}_")
            if isinstance(module, nn.Module) and not is_in_mode(module, training):
                module.train(training)

    def _zero_grad_optimizer(self, set_to_none: bool | None = None) -> None:
        """Drop the gradients, as torch's optimisers do by default."""
        optimizers = [getattr(self, f"{name}_") for name in self._optimizers]
        if set_to_none is False or any(type(o).zero_grad is not torch.optim.Optimizer.zero_grad for o in optimizers):
            super()._zero_grad_optimizer(set_to_none)
            return
        for weight in (w for optimizer in optimizers for group in optimizer.param_groups for w in group["params"]):
            weight.grad = None


def input_dtype(given: str | torch.dtype, module: nn.Module, x: Tensor) -> torch.dtype:
    """Type that a batch of inputs is cast to: the given one or, for "auto", what the module takes."""
    if given != "auto":
        return getattr(torch, given) if isinstance(given, str) else given
    is_image = x.dtype is torch.uint8 and x.ndim > 2
    if x.is_floating_point() or is_image or not embeds(module):
        return floating_dtype(module) or torch.float32
    return x.dtype if x.dtype is torch.int32 else torch.int64  # the only types that embeddings take


def floating_dtype(module: nn.Module) -> torch.dtype | None:
    """Type of the first parameter that is of a floating type; faster than `module.parameters()`, which names all."""
    for parameter in module._parameters.values():
        if parameter is not None and parameter.is_floating_point():
            return parameter.dtype
    for child in module._modules.values():
        if child is not None and (dtype := floating_dtype(child)) is not None:
            return dtype
    return None


def is_in_mode(module: nn.Module, training: bool) -> bool:
    """Whether a module and all inside it are in training or evaluation mode; False where one has its own `train`."""
    if module.training is not training or type(module).train is not nn.Module.train:
        return False
    others = [child for child in module._modules.values() if child is not None and not is_in_mode(child, training)]
    return not others


def _listens(callback: Callback, method_name: str) -> bool:
    """Whether a callback has a method of its own, of its class or set on it."""
    own = getattr(type(callback), method_name, None)
    return own is None or own is not _NOTHING.get(method_name) or method_name in vars(callback)


def _reads_batches(callback: Callback) -> bool:
    """Whether a callback may look at the entries of batches before the epoch ends."""
    has_own_step = hasattr(callback, "before_step") and not _is_ours(type(callback))  # an update
    is_called = has_own_step or any(_listens(callback, event) for event in _IN_EPOCH)
    by_epoch = type(callback) is LRScheduler and callback.step_every != "batch"
    return is_called and getattr(callback, "reads_batches", not by_epoch and type(callback) not in _READING_NOTHING)


def _read(unread: Iterable[tuple[dict[str, Any], str]]) -> None:
    """Make numbers of what was noted as tensors, by one transfer of all that are alike."""
    alike: dict[tuple, list[dict[str, Any]]] = {}
    for entry, name in unread:
        alike.setdefault((name, entry[name].dtype, entry[name].device), []).append(entry)
    for (name, *_), entries in alike.items():
        values = torch.cat([entry[name].reshape(1) for entry in entries]).tolist()
        for entry, value in zip(entries, values, strict=True):
            entry[name] = value


def _is_ours(cls: type) -> bool:
    """Whether a class belongs to this library."""
    return cls.__module__.partition(".")[0] == __name__.partition(".")[0]


def _batches(history: History) -> list[dict[str, Any]] | None:
    """Entries of the present epoch's batches; None for a history of another type."""
    return list.__getitem__(history, -1)["batches"] if type(history) is History else None


def _n_rows(batch: Any) -> int:
    if isinstance(batch, Batch):
        return len(batch.label)
    inputs = batch[0] if isinstance(batch, tuple | list) else batch
    return len(inputs) if isinstance(inputs, Tensor) else get_len(inputs)
