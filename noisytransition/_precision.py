"""Type of a network's output."""

import torch
from torch import Tensor


def full_precision(logits: Tensor) -> Tensor:
    """Convert logits of half precision to float32: losses, T and probabilities need more than their digits."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
