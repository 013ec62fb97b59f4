"""What methods with a meta-gradient share: checks of its parameters, and the update that is made of them."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import torch

from ..nets import CleanBatches
from ..updates import MetaGradient
from ._base import NoisyLabelClassifier
from ._checks import ALL_ROWS, COUNT, NUMBER
from ._parameters import Optimizer, as_optimizer
from ._run import Run


class LooksAhead(NoisyLabelClassifier):
    """Method that looks ahead on batches of clean rows: with parameters `inner_lr` and `meta_batch_size`."""

    inner_lr: float | None
    meta_batch_size: int | None
    #: how the gradient is computed, as `method` of `MetaGradient`; "auto": the cheapest
    _meta_gradient_method = "auto"
    _parameter_constraints: ClassVar = {
        **NoisyLabelClassifier._parameter_constraints,
        "inner_lr": [NUMBER, None],
        "meta_batch_size": [COUNT, ALL_ROWS, None],
    }

    def _update(self, run: Run, **params: Any) -> MetaGradient:
        """Update of the loss's parameters by the meta-gradient."""
        clean = self._clean_batches(run)
        return MetaGradient(clean, inner_lr=self.inner_lr, method=self._meta_gradient_method, **params)

    def _clean_batches(self, run: Run) -> CleanBatches:
        return CleanBatches(run.clean, self.meta_batch_size or self.batch_size)


def without_decay(optimizer: Optimizer) -> Callable[..., torch.optim.Optimizer]:
    """Optimiser of the logits of T: weight decay, which AdamW has by default, would pull T to the uniform matrix."""
    made = as_optimizer(optimizer)
    decays = isinstance(made, type) and "weight_decay" in inspect.signature(made).parameters
    return partial(made, weight_decay=0.0) if decays else made
