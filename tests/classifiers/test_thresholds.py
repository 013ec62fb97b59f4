"""From where on T is not trusted, or moved: estimates made by hand on both sides of each threshold."""

from types import SimpleNamespace

import numpy as np
import pytest
from posteriors import simulated

from noisytransition.classifiers import _estimate
from noisytransition.classifiers._cross_fitting import Candidate
from noisytransition.classifiers._diagnostics import diagnose
from noisytransition.classifiers._estimate import Estimate, estimate_transition
from noisytransition.transition import pair_noise
from noisytransition.transition._uncertainty import TransitionUncertainty

T2 = np.array([[0.7, 0.3], [0.3, 0.7]])
Z = 1.645  # half width of a 90 % interval in standard errors


def bars(distance=0.0, half_width=0.03):
    """Error bars of a T of two classes whose entries are all so far from those of `T2`."""
    T = T2 + distance * np.array([[-1, 1], [1, -1]])
    scale = np.full((2, 2), half_width / Z)
    return TransitionUncertainty(T, T, scale, scale)


def rows_of(classes, labels, n_noisy=0):
    """What is asked of a run."""
    clean, noisy = (SimpleNamespace(label=np.asarray(y), columns={}) for y in (labels, np.zeros(n_noisy)))
    return SimpleNamespace(classes=np.arange(classes), clean=clean, noisy=noisy, seed=0)


def reasons(own=None, other=None, gain=0.0, clean=([0, 1], [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2), undecided=False):
    """Names of the reasons; `clean`: labels of clean rows, their posteriors at half the training and at its end."""
    labels, *posteriors = clean
    at = np.arange(0), np.arange(len(labels))
    candidates = [Candidate(n, (np.zeros((0, 2)), np.asarray(p)), at) for n, p in enumerate(posteriors, 1)]
    estimate = Estimate(None, candidates[-1], 1.0, [], {}, gain, None, None, np.zeros(2), undecided)
    own = bars() if own is None else own
    return list(diagnose(estimate, candidates, own.joined(other) if other else own, rows_of(2, labels)))


def test_clean_rows_of_unknown_shares_are_a_reason():
    assert reasons(undecided=True) == ["unknown_shares"]


# ---------------------------------------------------------------------------- T at two weights of the clean rows
@pytest.mark.parametrize(("distance", "found"), [(0.2, []), (0.3, ["not_one_T"])])
@pytest.mark.parametrize("half_width", [0.005, 0.03, 0.1])
def test_two_T_are_apart_from_a_quarter_of_their_half_width_on(half_width, distance, found):
    assert reasons(bars(0, half_width), bars(distance * half_width, half_width), gain=1.5) == found
    assert reasons(bars(0, half_width), bars(distance * half_width, half_width / 2), gain=1.5) == found


@pytest.mark.parametrize(("distance", "found"), [(0.001, []), (0.0015, ["not_one_T"])])
def test_half_widths_have_a_least_value(distance, found):
    assert reasons(bars(0, 1e-4), bars(distance, 1e-4), gain=1.5) == found


@pytest.mark.parametrize(("gain", "found"), [(-9, []), (0.9, []), (1.1, ["not_one_T"]), (9, ["not_one_T"])])
def test_clean_rows_that_are_more_likely_at_the_larger_weight_are_a_reason(gain, found):
    assert reasons(bars(), bars(0.02), gain) == found


@pytest.mark.parametrize(("distance", "gain"), [(0.045, 0), (0.055, 0), (0.055, -2.9), (0.055, -3.1), (0.3, -3.1)])
def test_so_are_two_T_that_are_far_apart_and_about_as_likely(distance, gain):
    found = reasons(bars(), bars(distance), gain)
    assert found == (["not_one_T"] if 2 * distance > 0.1 and gain > -3 else [])


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


# ---------------------------------------------------------------------------- the weight that is taken
@pytest.mark.parametrize(
    ("gain", "spread", "weight"), [(-5, 0, 1), (1.9, 0, 1), (2.1, 0, 8), (5, 0, 8), (5, 0.9, 8), (5, 0.95, 1)]
)
def test_the_larger_weight_is_taken_from_a_gain_of_two_and_of_its_standard_error_on(gain, spread, weight, monkeypatch):
    """The standard error of a sum over 30 rows is 30**0.5 times their standard deviation: 4.9 and 5.2."""
    proba, y, noisy = simulated(0, pair_noise(3, 0.3), n=270)
    run = rows_of(3, y[:30], 240)
    run.noisy.label = noisy[30:]
    candidate = Candidate(1, (proba[30:], proba[:30]), (np.arange(240), np.arange(30)))
    monkeypatch.setattr(
        _estimate,
        "HeldOutLoss",
        lambda *args: lambda weight: 5 - (weight > 1) * (gain / 30 + np.resize([-spread, spread], 30)),
    )
    found = estimate_transition([candidate], run, np.full((3, 3), 1 / 3))
    assert found.gain == pytest.approx(gain)
    assert found.weight == weight
    assert len(found.others) == 1
    given = estimate_transition([candidate], run, np.full((3, 3), 1 / 3), weight=weight)
    np.testing.assert_array_equal(found.transition_matrix, given.transition_matrix)
