"""A small problem and its arguments, for all cases."""

from typing import Any, NamedTuple

import numpy as np

from noisytransition.transition import pair_noise


class Case(NamedTuple):
    """One bad input."""

    name: str  # what is bad
    target: str  # name of a function or method
    given: dict[str, Any]  # arguments that replace good ones; of a function, "args" are its positional ones
    words: str  # regular expression that the message must match


def _rows(n, seed):
    y = np.arange(n) % 3
    centres = np.array([[0.0, 0, 0, 0], [0, 3, 0, 3], [3, 0, 3, 0]])
    return np.random.default_rng(seed).normal(size=(n, 4)) + centres[y], y


X, TRUE = _rows(60, 0)
Y = np.where(np.arange(60) % 5 == 0, (TRUE + 1) % 3, TRUE)
X_META, Y_META = _rows(18, 1)
X_TEST, Y_TEST = _rows(12, 2)
T = pair_noise(3, 0.2)
PROBA = np.full((60, 3), 0.1) + 0.7 * np.eye(3)[TRUE]


def changed(array, where, value):
    """A copy with one entry replaced."""
    copy = np.array(array, dtype=np.result_type(np.asarray(array), np.asarray(value)))
    copy[where] = value
    return copy
