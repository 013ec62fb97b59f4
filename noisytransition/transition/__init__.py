"""Noise transition matrices as arrays: estimation, noise models, posteriors, errors. Needs only numpy and scipy.

``T[i, j] = P(noisy label = j | true label = i)`` throughout: rows sum to 1.
"""

from ._class_conditional import class_conditional_test
from ._estimation import (
    anchor_transition_matrix,
    confusion_transition_matrix,
    count_transition_matrix,
    gold_transition_matrix,
)
from ._metrics import sampling_limit, transition_error
from ._noise import cifar10_noise, digits_noise, flip_labels, flip_noise, pair_noise, superclass_noise, symmetric_noise
from ._posterior import denoise_proba, label_posterior

__all__ = [
    "anchor_transition_matrix",
    "cifar10_noise",
    "class_conditional_test",
    "confusion_transition_matrix",
    "count_transition_matrix",
    "denoise_proba",
    "digits_noise",
    "flip_labels",
    "flip_noise",
    "gold_transition_matrix",
    "label_posterior",
    "pair_noise",
    "sampling_limit",
    "superclass_noise",
    "symmetric_noise",
    "transition_error",
]
