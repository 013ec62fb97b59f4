"""What a loss knows of T and of the batch that it has seen last, as long as neither has changed."""

from typing import NamedTuple

import torch
from torch import Tensor


class KnownTransition(NamedTuple):
    """What is known of T as long as its logits are the same tensor, unchanged.

    `normalizer` is the logarithm of the sums of the rows of exp(logits); `proba` is T transposed, or None.
    """

    logits: Tensor
    version: int
    place: int
    normalizer: Tensor
    proba: Tensor | None

    @classmethod
    def of(cls, logits: Tensor, normalizer: Tensor, proba: Tensor | None = None) -> "KnownTransition":
        """Note the state that the logits are in."""
        return cls(logits, logits._version, logits.data_ptr(), normalizer, proba)

    def holds_for(self, logits: Tensor) -> bool:
        """Whether these are the same logits, unchanged."""
        return self.logits is logits and (self.version, self.place) == (logits._version, logits.data_ptr())


class KnownPosterior(NamedTuple):
    """Posteriors of a batch, known as long as its logits, its labels and T are the same, unchanged.

    The logits are kept, so that no other tensor takes their place in memory.
    """

    logits: Tensor
    y: Tensor
    normalizer: Tensor
    versions: tuple[int, ...]
    posterior: Tensor

    @classmethod
    def of(cls, logits: Tensor, y: Tensor, known: KnownTransition, posterior: Tensor) -> "KnownPosterior | None":
        """Note the state that a batch is in; None in inference mode, where changes are not counted."""
        if logits.is_inference() or y.is_inference() or posterior.is_inference():
            return None
        return cls(logits.detach(), y, known.normalizer, _versions(logits, y, posterior), posterior)

    def holds_for(self, logits: Tensor, y: Tensor, known: KnownTransition) -> bool:
        """Whether the logits, in a tensor of any name, the labels and T are the same, unchanged."""
        if self.y is not y or self.normalizer is not known.normalizer or len(logits) != len(y):
            return False
        is_here = self.logits.data_ptr() == logits.data_ptr() and self.logits.stride() == logits.stride()
        has_gradient = logits.requires_grad and torch.is_grad_enabled()
        return is_here and not has_gradient and self.versions == _versions(logits, y, self.posterior)


def _versions(*tensors: Tensor) -> tuple[int, ...]:
    return tuple(tensor._version for tensor in tensors)
