"""Valid input at its limits: results are finite and sum to 1, and class names have no effect."""

import warnings

import numpy as np
import pytest
from estimators import CLASSIFIERS, WITH_TRANSITION, small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noisytransition import EMTransitionClassifier

NAMES = {
    "integers": np.array([-(2**60), 0, 7, 2**60]),
    "text": np.array(["?", "Ä", "日本", "zebra 🦓"]),
    "floats": np.array([-1e15, 0.0, 2.0, 1e15]),
    "objects": np.array(["a", "b", "c", "d"], dtype=object),
    "truth values": np.array([False, True]),
}


def columns(draw, n, random):
    """A table with columns of very different sizes."""
    kinds = {
        "plain": random.normal(size=n),
        "constant": np.full(n, 3.0),
        "zeros": np.zeros(n),
        "tiny": random.normal(size=n) * 1e-300,
        "small": random.normal(size=n) * 1e-20,
        "shifted": random.normal(size=n) + 100.0,
        "rare": (np.arange(n) == 0).astype(float),
    }
    return np.stack([kinds[name] for name in draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=4))], 1)


@st.composite
def problems(draw):
    """Noisy and clean rows of 2 to 4 classes, few or imbalanced or all alike, and names of the classes."""
    names = NAMES[draw(st.sampled_from(sorted(NAMES)))]
    c = draw(st.integers(2, len(names)))
    n, m = draw(st.integers(2 * c, 40)), draw(st.integers(c, 12))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    X = columns(draw, n + m, random)
    if draw(st.booleans()):
        X[:] = X[:1]  # every row the same
    majority = draw(st.booleans())
    y = np.concatenate([np.arange(c), np.zeros(n - c, int) if majority else random.integers(c, size=n - c)])
    y_clean = np.concatenate([np.arange(c), random.integers(c, size=m - c)])
    dtype = draw(st.sampled_from([np.float64, np.float32, ">f8", np.longdouble, np.float16]))
    return X[:n].astype(dtype), names[y], X[n:].astype(dtype), names[y_clean]


def check(clf, X):
    """Posteriors and T of a fitted classifier are finite, and rows sum to 1."""
    proba = clf.predict_proba(X)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
    assert set(clf.predict(X).tolist()) <= set(clf.classes_.tolist())
    if type(clf) not in WITH_TRANSITION:
        return
    for T in (clf.transition_matrix_, clf.transition_init_, *clf.transition_history_):
        assert (T >= 0).all()
        np.testing.assert_allclose(T.sum(axis=1), 1, atol=1e-9)
    assert np.isfinite(clf.noisy_class_counts_).all()
    if isinstance(clf, EMTransitionClassifier) and len(clf.classes_) <= 50:  # of more classes there are no error bars
        assert np.isfinite(clf.transition_std_).all()
        assert all(np.isfinite(bound).all() for bound in clf.transition_interval())


def fitted(cls, X, y, X_clean, y_clean):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return small(cls, max_epochs=1, lr=0.01).fit(X, y, meta=(X_clean, y_clean))


few = settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("cls", CLASSIFIERS)
@few
@given(problem=problems())
def test_fits_of_extreme_input_are_finite(cls, problem):
    check(fitted(cls, *problem), problem[0])


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_hundred_classes_of_one_row_each(cls):
    X, y = np.eye(100) + np.random.default_rng(0).normal(size=(100, 100)) / 10, np.arange(100)
    check(fitted(cls, X, y, X, y), X)


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4", np.longdouble, np.float16, np.uint8, np.int64, bool])
def test_all_numbers_that_double_precision_holds_are_the_same_input(dtype, blobs):
    X, y, X_clean, y_clean, *_ = blobs
    X, X_clean = (np.abs(rows).round().clip(0, 1) for rows in (X, X_clean))
    plain, other = (fitted(CLASSIFIERS[0], X.astype(t), y, X_clean.astype(t), y_clean) for t in (np.float64, dtype))
    np.testing.assert_array_equal(plain.predict_proba(X), other.predict_proba(X.astype(dtype)))
