"""What methods with a meta-gradient share: checks of its parameters, and the update that is made of them."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from ..meta_gradient import METHODS, candidate_methods
from ..nets import CleanBatches, Rows
from ..updates import MetaGradient
from ._base import NoisyLabelClassifier
from ._checks import check_batch_size, check_number
from ._parameters import Optimizer, as_optimizer
from ._run import Run


def check_meta_gradient(classifier: NoisyLabelClassifier) -> None:
    """Raise for invalid `meta_batch_size`, `inner_lr` or `meta_gradient_method`."""
    check_batch_size(classifier, "meta_batch_size")
    if classifier.inner_lr is not None:
        check_number(classifier, "inner_lr")
    if (method := classifier.meta_gradient_method) not in ("auto", *METHODS):
        raise ValueError(f"meta_gradient_method={method!r}; valid are {['auto', *METHODS]}.")
    if method == "factored" and classifier.precision != "float32":
        raise ValueError(
            f"meta_gradient_method='factored' computes in float32, and precision={classifier.precision!r} was given. "
            "Give 'auto', or leave precision out."
        )


def check_meta_data(classifier: NoisyLabelClassifier, run: Run) -> None:
    """Raise if "factored" is asked of a module that it is not exact for; note whether clean batches have one row."""
    run.one_clean_row = _clean_batches(classifier, run.clean).size == 1
    if classifier.meta_gradient_method != "factored":
        return
    module = run.untrained_module()
    flattens = isinstance(next(module.children(), None), nn.Flatten)
    if "factored" not in candidate_methods(module) or (run.noisy.take([0]).inputs().ndim != 2 and not flattens):
        raise ValueError(
            "meta_gradient_method='factored' is for Linear layers with ReLU between them, after an optional Flatten, "
            "without hooks, dropout, normalisation or shared weights, and for one axis per row; "
            f"{type(module).__name__} is not of this form. Give 'auto', which takes the cheapest exact method."
        )


def meta_gradient(
    classifier: NoisyLabelClassifier, clean: Rows, *, optimizer: Optimizer, **params: Any
) -> MetaGradient:
    """Make the update by meta-gradient from a classifier's parameters."""
    return MetaGradient(
        _clean_batches(classifier, clean),
        inner_lr=classifier.inner_lr,
        method=classifier.meta_gradient_method,
        optimizer=as_optimizer(optimizer),
        **params,
    )


def without_decay(optimizer: Optimizer) -> Callable[..., torch.optim.Optimizer]:
    """Optimiser of the logits of T: weight decay, which AdamW has by default, would pull T to the uniform matrix."""
    made = as_optimizer(optimizer)
    decays = isinstance(made, type) and "weight_decay" in inspect.signature(made).parameters
    return partial(made, weight_decay=0.0) if decays else made


def _clean_batches(classifier: NoisyLabelClassifier, clean: Rows) -> CleanBatches:
    """Make the batches of clean rows from a classifier's parameters."""
    return CleanBatches(clean, classifier.meta_batch_size or classifier.batch_size)
