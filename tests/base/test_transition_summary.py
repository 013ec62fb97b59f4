"""Summary of T in every method with T; error bars in methods that have them."""

import numpy as np
import pytest
from estimators import WITH_TRANSITION, small
from sklearn.exceptions import NotFittedError
from training import fit

from noisytransition import EMTransitionClassifier, ForwardClassifier, GLCClassifier


@pytest.mark.parametrize("cls", [cls for cls in WITH_TRANSITION if cls is not EMTransitionClassifier])
def test_methods_without_error_bars_say_so(cls, plain):
    clf = plain(cls)
    assert len(clf.transition_summary(least=0, top=6).splitlines()) == 6
    with pytest.raises(ValueError, match="error bars"):
        clf.transition_interval()
    assert not hasattr(clf, "transition_std_")
    with pytest.raises(AttributeError, match="error bars"):
        _ = clf.transition_std_


def test_flips_are_listed_by_falling_probability_and_the_rest_is_one_line(blobs):
    T, names = np.array([[0.6, 0.3, 0.1], [0.2, 0.795, 0.005], [0, 0, 1]]), np.array(["ant", "bee", "cat"])
    X, y, X_clean, y_clean, *_ = blobs
    clf = small(GLCClassifier, transition_init=T).fit(X, names[y], meta=(X_clean, names[y_clean]))
    largest = ["ant -> bee 0.30", "bee -> ant 0.20", "ant -> cat 0.10"]
    assert clf.transition_summary().splitlines() == [*largest, "3 other flips: each below 0.01"]
    assert clf.transition_summary(top=1).splitlines()[1:] == ["5 other flips: each 0.20 or less"]
    assert clf.transition_summary(least=1) == "6 other flips: each below 1"
    for bad in ({"top": -1}, {"least": 2}, {"least": np.nan}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            clf.transition_summary(**bad)


def test_standard_errors_are_those_of_the_last_fit(blobs):
    X, y, *meta = blobs[:4]
    clf = fit(EMTransitionClassifier, blobs)
    first = clf.transition_std_
    np.testing.assert_array_equal(first, clf.noise_model_.uncertainty_.std)
    clf.fit(X[:150], y[:150], meta=meta)
    np.testing.assert_array_equal(clf.transition_std_, clf.noise_model_.uncertainty_.std)
    assert not np.array_equal(clf.transition_std_, first)


def test_there_is_no_T_before_fit():
    for method in ("transition_summary", "transition_interval"):
        with pytest.raises(NotFittedError):
            getattr(ForwardClassifier(), method)()
    assert not hasattr(ForwardClassifier(), "transition_std_")
