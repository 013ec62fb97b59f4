"""Clean rows that are drawn class by class: how much more often each class is among them than among noisy rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ._calibration import CalibratedLikelihood
from ._em import MAX_ITER, off_zero
from ._estimation import finite_log

# rounds in which the shares of the classes settle: 2 to 12, and up to 20 with a class that has few rows
_MAX_ROUNDS = 20
# change of the logarithm of a share at which they have
_TOLERANCE = 0.01
# of a class of which nothing is found
_SMALLEST_SHARE = 1e-6
# probability of shares that are so far from those of noisy rows, in clean rows that are drawn at random
_SURE = 1e-3


def equally_many(n_clean: NDArray) -> bool:
    """Whether there are equally many clean rows of each class, at least two; their numbers have the shape (c,)."""
    return bool(n_clean[0] > 1 and not np.ptp(n_clean))


def unlike_shares(n_clean: NDArray, of_noisy: NDArray) -> bool:
    """Whether a chi-squared test tells the shares of the clean rows from those of the noisy ones, both by class."""
    expected = n_clean.sum() * np.maximum(of_noisy / of_noisy.sum(), _SMALLEST_SHARE)
    return bool(special.chdtrc(len(n_clean) - 1, ((n_clean - expected) ** 2 / expected).sum()) < _SURE)


def class_offset(likelihood: CalibratedLikelihood, init: NDArray) -> NDArray[np.float64]:
    r"""Logarithm of how much more often each class is among the clean rows than among the noisy ones.

    Clean rows that are drawn class by class have other shares of the classes than the noisy rows. With r the shares of
    the clean rows and p those of the noisy ones, their posterior is (Bayes) ::

        P_clean(i | x) ~ P(i | x) r_i / p_i

    as in case-control samples. The shares p are those of the expected true classes of the noisy rows, at the T and the
    map that are most likely with the offset ``log r / p``: they are sought in turn.

    Parameters
    ----------
    likelihood : CalibratedLikelihood
        Of all rows, not maximised; it is changed.
    init : ndarray of shape (c, c)
        T to start from.

    Returns
    -------
    ndarray of shape (c,)

    References
    ----------
    Prentice, Pyke, "Logistic Disease Incidence Models and Case-Control Studies", 1979. Saerens, Latinne, Decaestecker,
    "Adjusting the Outputs of a Classifier to New a Priori Probabilities", 2002 (shares by expectation-maximisation).
    """
    start, none = off_zero(init), np.zeros_like(init)
    n_clean = np.maximum(likelihood.clean.sum(axis=0), 0.5)  # a class may have no row in half of them
    of_clean = shares = n_clean / n_clean.sum()
    for _ in range(_MAX_ROUNDS):
        likelihood.x, likelihood.meta_offset = None, np.log(of_clean / shares)
        likelihood.maximise(start, none, MAX_ITER, 0.0)
        x: Any = likelihood.x
        before, of_noisy = shares, likelihood.counts(x).sum(axis=1)
        shares = np.maximum(of_noisy / of_noisy.sum(), _SMALLEST_SHARE)
        if np.abs(np.log(shares / before)).max() < _TOLERANCE:
            break
    return np.log(of_clean / shares)


def weights_of_clean_rows(offset: NDArray, y_meta: NDArray) -> NDArray[np.float64]:
    """Weights of clean rows, of mean 1, with which they have the shares of the noisy rows."""
    weights = np.exp(-offset)[y_meta]
    return weights / weights.mean()


def tilted(proba: NDArray, offset: NDArray | float) -> NDArray:
    """Posteriors of rows among which each class is more frequent by exp(offset); `proba` itself if that is 0."""
    return special.softmax(finite_log(proba) + offset, axis=1) if np.any(offset) else proba
