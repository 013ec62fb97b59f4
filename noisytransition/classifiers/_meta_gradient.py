"""What methods with a meta-gradient share: checks of its parameters, and the update that is made of them."""

from typing import Any

from ..meta_gradient import METHODS
from ..nets import CleanBatches, Rows
from ..updates import MetaGradient
from ._base import NoisyLabelClassifier
from ._checks import check_batch_size, check_number


def check_meta_gradient(classifier: NoisyLabelClassifier) -> None:
    """Raise for invalid `meta_batch_size`, `inner_lr` or `meta_gradient_method`."""
    check_batch_size(classifier, "meta_batch_size")
    if classifier.inner_lr is not None:
        check_number(classifier, "inner_lr")
    if (method := classifier.meta_gradient_method) not in ("auto", *METHODS):
        raise ValueError(f"meta_gradient_method={method!r}; valid are {['auto', *METHODS]}.")


def meta_gradient(classifier: NoisyLabelClassifier, clean: Rows, **params: Any) -> MetaGradient:
    """Make the update by meta-gradient from a classifier's parameters."""
    return MetaGradient(
        clean_batches(classifier, clean),
        inner_lr=classifier.inner_lr,
        method=classifier.meta_gradient_method,
        **params,
    )


def clean_batches(classifier: NoisyLabelClassifier, clean: Rows) -> CleanBatches:
    """Make the batches of clean rows from a classifier's parameters."""
    return CleanBatches(clean, classifier.meta_batch_size or classifier.batch_size)
