"""Summary of T in every method with T; error bars in methods that have them."""

import re

import numpy as np
import pytest
from estimators import WITH_TRANSITION, small
from sklearn.exceptions import NotFittedError

from noisytransition import EMTransitionClassifier, ForwardClassifier, GLCClassifier

NAMES = np.array(["ant", "bee", "cat"])
WITHOUT_BARS = [cls for cls in WITH_TRANSITION if cls is not EMTransitionClassifier]


def named(cls, blobs, **params):
    X, y, X_clean, y_clean, *_ = blobs
    return small(cls, **params).fit(X, NAMES[y], meta=(X_clean, NAMES[y_clean]))


@pytest.mark.parametrize("cls", WITH_TRANSITION)
def test_flips_are_listed_by_falling_probability_and_methods_without_error_bars_say_so(cls, blobs):
    clf = named(cls, blobs)
    T, lines = clf.transition_matrix_, clf.transition_summary(least=0, top=6).splitlines()
    if cls not in WITHOUT_BARS:
        assert "assume the model" in lines.pop()
    found = [re.match(r"(\w+) -> (\w+) (\d\.\d\d)( \[(\d\.\d\d), (\d\.\d\d)\])?$", line).groups() for line in lines]
    flips = [(np.searchsorted(NAMES, true), np.searchsorted(NAMES, noisy)) for true, noisy, *_ in found]
    assert sorted(flips) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert [f[2] for f in found] == [f"{T[flip]:.2f}" for flip in flips]
    assert [T[flip] for flip in flips] == sorted((T[flip] for flip in flips), reverse=True)
    assert all(f[3] is None for f in found) == (cls in WITHOUT_BARS)
    if cls in WITHOUT_BARS:
        with pytest.raises(ValueError, match="error bars"):
            clf.transition_interval()
        assert not hasattr(clf, "transition_std_")
        with pytest.raises(AttributeError, match="error bars"):
            _ = clf.transition_std_


def test_the_rest_is_one_line(blobs):
    T = np.array([[0.6, 0.3, 0.1], [0.2, 0.795, 0.005], [0, 0, 1]])
    clf = named(GLCClassifier, blobs, transition_init=T)
    assert clf.transition_summary() == "\n".join(
        ["ant -> bee 0.30", "bee -> ant 0.20", "ant -> cat 0.10", "3 other flips: each below 0.01"]
    )
    assert clf.transition_summary(top=1).splitlines()[1:] == ["5 other flips: each 0.20 or less"]
    assert clf.transition_summary(least=1) == "6 other flips: each below 1"
    with pytest.raises(ValueError, match="top"):
        clf.transition_summary(top=-1)
    with pytest.raises(ValueError, match="least"):
        clf.transition_summary(least=2)


def test_standard_errors_are_those_of_the_last_fit(blobs):
    clf = named(EMTransitionClassifier, blobs)
    first = clf.transition_std_
    np.testing.assert_array_equal(first, clf.noise_model_.uncertainty_.std)
    X, y, X_clean, y_clean, *_ = blobs
    clf.fit(X[:150], NAMES[y[:150]], meta=(X_clean, NAMES[y_clean]))
    np.testing.assert_array_equal(clf.transition_std_, clf.noise_model_.uncertainty_.std)
    assert not np.array_equal(clf.transition_std_, first)


@pytest.mark.parametrize("method", ["transition_summary", "transition_interval"])
def test_there_is_no_T_before_fit(method):
    with pytest.raises(NotFittedError):
        getattr(ForwardClassifier(), method)()
    assert not hasattr(ForwardClassifier(), "transition_std_")
