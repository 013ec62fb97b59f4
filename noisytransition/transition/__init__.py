"""Noise transition matrices as arrays: estimation, noise models, posterior, error. Needs numpy and scipy alone.

Everywhere ``T[i, j] = P(noisy label = j | true label = i)``: rows sum to 1.
"""

from ._bounds import posterior_error_bound, risk_bound
from ._calibration import CalibratedLikelihood as CalibratedLikelihood
from ._calibration import Calibration
from ._checks import as_array as as_array
from ._checks import as_floats as as_floats
from ._checks import blocks_of_rows as blocks_of_rows
from ._checks import check_count as check_count
from ._checks import check_label_indices as check_label_indices
from ._checks import check_mask as check_mask
from ._checks import check_probabilities, check_transition_matrix
from ._checks import check_rate as check_rate
from ._checks import is_number as is_number
from ._checks import refuse_masked as refuse_masked
from ._class_conditional import ClassConditionalTest, class_conditional_test
from ._class_offset import POSITIVE_EVIDENCE as POSITIVE_EVIDENCE
from ._class_offset import class_offset as class_offset
from ._class_offset import equally_many as equally_many
from ._class_offset import evidence_of_drawing_by_class as evidence_of_drawing_by_class
from ._class_offset import seem_drawn_by_class as seem_drawn_by_class
from ._class_offset import tilted as tilted
from ._class_offset import weights_of_clean_rows as weights_of_clean_rows
from ._clean_weight import HeldOutLoss as HeldOutLoss
from ._em import EMResult, em_transition_matrix
from ._em import FirstMaximum as FirstMaximum
from ._em import first_maximum as first_maximum
from ._estimation import (
    anchor_transition_matrix,
    confident_transition_matrix,
    confusion_transition_matrix,
    count_transition_matrix,
    floor_transition_matrix,
    gold_transition_matrix,
)
from ._estimation import normalise_rows as normalise_rows
from ._estimation import pair_counts as pair_counts
from ._flip_labels import RandomState as RandomState
from ._flip_labels import as_generator as as_generator
from ._flip_labels import flip_labels
from ._instance_dependent import InstanceDependentEstimate as InstanceDependentEstimate
from ._instance_dependent import instance_dependent as instance_dependent
from ._issues import find_label_issues, label_quality, relabel
from ._labels import as_positions as as_positions
from ._labels import in_class_order as in_class_order
from ._labels import like_series as like_series
from ._labels import of_one_type as of_one_type
from ._metrics import sampling_limit, transition_error
from ._noise import (
    cifar10_noise,
    digits_noise,
    flip_noise,
    pair_noise,
    superclass_noise,
    symmetric_noise,
    uniform_noise,
)
from ._pair_posterior import PairEstimate as PairEstimate
from ._pair_posterior import revised_by_pairs as revised_by_pairs
from ._posterior import denoise_proba, label_posterior
from ._rule_labels import RuleEstimate as RuleEstimate
from ._rule_labels import labels_of_a_rule as labels_of_a_rule
from ._shrinkage import Prior as Prior
from ._shrinkage import check_prior as check_prior
from ._shrinkage import shrunk_to_symmetric as shrunk_to_symmetric
from ._temperature import fitted_temperature as fitted_temperature
from ._temperature import tempered_log_loss as tempered_log_loss
from ._uncertainty import MOST_CLASSES as MOST_CLASSES
from ._uncertainty import TransitionUncertainty, transition_uncertainty

__all__ = [
    "Calibration",
    "ClassConditionalTest",
    "EMResult",
    "TransitionUncertainty",
    "anchor_transition_matrix",
    "check_probabilities",
    "check_transition_matrix",
    "cifar10_noise",
    "class_conditional_test",
    "confident_transition_matrix",
    "confusion_transition_matrix",
    "count_transition_matrix",
    "denoise_proba",
    "digits_noise",
    "em_transition_matrix",
    "find_label_issues",
    "flip_labels",
    "flip_noise",
    "floor_transition_matrix",
    "gold_transition_matrix",
    "label_posterior",
    "label_quality",
    "pair_noise",
    "posterior_error_bound",
    "relabel",
    "risk_bound",
    "sampling_limit",
    "superclass_noise",
    "symmetric_noise",
    "transition_error",
    "transition_uncertainty",
    "uniform_noise",
]
