"""What a noisy label costs: torch criteria that take logits and integer labels."""

from ._forward import ForwardLoss, clean_posterior, corrected_cross_entropy

__all__ = ["ForwardLoss", "clean_posterior", "corrected_cross_entropy"]
