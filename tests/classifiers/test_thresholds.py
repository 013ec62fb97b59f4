"""From where on T is not trusted, or moved: estimates made by hand on both sides of each threshold."""

import numpy as np
import pytest

from noisytransition.classifiers._diagnostics import diagnose
from noisytransition.classifiers._estimate import Candidate, Estimate, Labels
from noisytransition.transition._uncertainty import TransitionUncertainty

T2 = np.array([[0.7, 0.3], [0.3, 0.7]])
Z = 1.645  # half width of a 90 % interval in standard errors


def bars(distance=0.0, half_width=0.03):
    """Error bars of a T of two classes whose entries are all so far from those of `T2`."""
    T = T2 + distance * np.array([[-1, 1], [1, -1]])
    scale = np.full((2, 2), half_width / Z)
    return TransitionUncertainty(T, T, scale, scale)


def reasons(own=None, other=None, clean=([0, 1], [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2), counts=(1, 1)):
    """Names of the reasons; `clean`: labels of clean rows, their posteriors at half the training and at its end."""
    y, *posteriors = map(np.asarray, clean)
    candidates = [Candidate(n, np.zeros((0, 2)), p) for n, p in enumerate(posteriors, 1)]
    own = bars() if own is None else own
    own = own.joined(other) if other else own
    estimate = Estimate(T2, np.diag(counts), None, candidates[-1], np.zeros(2), None, None, np.zeros(2), own)
    return list(diagnose(estimate, candidates, Labels(np.zeros(0), y), y, np.arange(2)))


@pytest.mark.parametrize(
    ("n", "counts", "found"), [(20, (90, 10), ["unknown_shares"]), (20, (6, 4), []), (1, (9, 1), [])]
)
def test_equally_many_clean_rows_of_unequal_classes_are_a_reason(n, counts, found):
    guess = [[0.5, 0.5]] * 2 * n
    assert reasons(clean=([0, 1] * n, guess, guess), counts=counts) == found


# ---------------------------------------------------------------------------- T at two weights of the clean rows
@pytest.mark.parametrize(("distance", "half_width", "found"), [(0.06, 0.2, ["not_one_T"]), (0.06, 0.3, [])])
def test_two_T_are_apart_from_a_quarter_of_their_half_width_on(distance, half_width, found):
    assert reasons(bars(0, half_width), bars(distance, half_width))[:1] == (found or reasons(bars(0, half_width))[:1])


@pytest.mark.parametrize(("distance", "found"), [(0.045, []), (0.055, ["not_one_T"])])
def test_and_from_an_error_of_a_tenth_on(distance, found):
    assert reasons(bars(), bars(distance)) == found


@pytest.mark.parametrize(("half_width", "found"), [(0.24, []), (0.26, ["not_separated"])])
def test_intervals_of_more_than_a_quarter_to_each_side_leave_a_class_open(half_width, found):
    assert reasons(bars(0, half_width)) == found


# ---------------------------------------------------------------------------- losses of held-out clean rows
def guessed(right, wrong):
    """Clean rows, so many of which the network tells right at its end, all as sure; at half, it guessed."""
    n = right + wrong
    labels, posterior = np.arange(n) % 2, np.array([[0.7, 0.3], [0.3, 0.7]])
    return labels, np.full((n, 2), 0.5), posterior[np.where(np.arange(n) < right, labels, 1 - labels)]


@pytest.mark.parametrize(("right", "found"), [(81, ["under_trained"]), (83, ["under_trained"]), (84, []), (90, [])])
def test_a_low_loss_is_no_reason(right, found):
    """At its best temperature the loss is the entropy of the share that is right: 0.65 of guessing at 0.833."""
    assert reasons(clean=guessed(right, 100 - right)) == found


@pytest.mark.parametrize(("right", "wrong", "found"), [(21, 5, []), (26, 6, ["under_trained"])])
def test_a_fall_within_two_standard_errors_is_no_reason(right, wrong, found):
    share = right / (right + wrong)
    fell = np.log(2) + np.repeat(np.log([share, 1 - share]), [right, wrong])
    assert (fell.mean() > 2 * fell.std() / len(fell) ** 0.5) == bool(found)
    assert reasons(clean=guessed(right, wrong)) == found
