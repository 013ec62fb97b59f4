"""Clean rows that are drawn class by class: how much more often each class is among them than among noisy rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ._calibration import MOST_CLASSES_WITH_MATRIX, CalibratedLikelihood, Calibration
from ._em import MAX_ITER, off_zero
from ._estimation import finite_log, normalise_rows

# rounds in which the shares of the classes settle: 2 to 12, and up to 20 with a class that has few rows
_MAX_ROUNDS = 20
# change of the logarithm of a share at which they have
_TOLERANCE = 0.01
# of a class of which nothing is found
_SMALLEST_SHARE = 1e-6
# probability of shares that are so far from those of noisy rows, in clean rows that are drawn at random
_SURE = 1e-3
#: log of the Bayes factor above which evidence is "positive" (Kass and Raftery, 1995)
POSITIVE_EVIDENCE = 1.0
# share of the largest variance below which a direction has none: probabilities sum to 1
_SINGULAR = 1e-6


def equally_many(n_clean: NDArray) -> bool:
    """Whether there are equally many clean rows of each class, at least two.

    Parameters
    ----------
    n_clean : ndarray of shape (c,)
        Number of clean rows of each class.

    Returns
    -------
    bool
    """
    return bool(n_clean[0] > 1 and not np.ptp(n_clean))


def seem_drawn_by_class(y_meta: NDArray, c: int) -> bool:
    """Whether there are equally many clean rows of each class, at least two; False with more than 20 classes.

    Parameters
    ----------
    y_meta : ndarray of int, shape (n_meta,)
        Their labels.
    c : int
        Number of classes.

    Returns
    -------
    bool
    """
    return c <= MOST_CLASSES_WITH_MATRIX and equally_many(np.bincount(y_meta, minlength=c))


def class_offset(
    likelihood: CalibratedLikelihood, init: NDArray, n_clean: NDArray
) -> tuple[NDArray[np.float64], Calibration]:
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
    n_clean : ndarray of shape (c,)
        Number of clean rows of each class, 1 at least.

    Returns
    -------
    offset : ndarray of shape (c,)
    calibration : Calibration
        The map there.

    References
    ----------
    Prentice, Pyke, "Logistic Disease Incidence Models and Case-Control Studies", 1979. Saerens, Latinne, Decaestecker,
    "Adjusting the Outputs of a Classifier to New a Priori Probabilities", 2002 (shares by expectation-maximisation).
    """
    start, none = off_zero(init), np.zeros_like(init)
    of_clean = shares = n_clean / n_clean.sum()
    for _ in range(_MAX_ROUNDS):
        likelihood.x, likelihood.meta_offset = None, np.log(of_clean / shares)
        likelihood.maximise(start, none, MAX_ITER, 0.0)
        x: Any = likelihood.x
        before, of_noisy = shares, likelihood.counts(x).sum(axis=1)
        shares = np.maximum(of_noisy / of_noisy.sum(), _SMALLEST_SHARE)
        if np.abs(np.log(shares / before)).max() < _TOLERANCE:
            break
    return np.log(of_clean / shares), likelihood.calibration(x)


def evidence_of_drawing_by_class(offset: NDArray, n_clean: NDArray, proba: NDArray, proba_meta: NDArray) -> float:
    """How much more the clean rows look like rows that were drawn class by class than like rows drawn at random.

    Noise that one T does not explain gives a wrong offset too, and so does a network that knows little. No noisy label
    has part in the mean posterior of the clean rows: it is either that of the noisy rows, or that of rows drawn class
    by class from them.

    Parameters
    ----------
    offset : ndarray of shape (c,)
    n_clean : ndarray of shape (c,)
        Number of clean rows of each class; all of them, also where `proba_meta` has a part.
    proba, proba_meta : ndarray of shape (n, c) and (n_meta, c)
        Calibrated posteriors of the noisy rows and of the clean ones, both as of noisy rows.

    Returns
    -------
    float
        Log of a Bayes factor, in normal approximation; minus infinity if a chi-squared test at 0.1 % does not tell the
        shares of the clean rows from those of the noisy ones.
    """
    n, of_clean = n_clean.sum(), n_clean / n_clean.sum()
    shares = of_clean * np.exp(-offset)
    expected = n * shares / shares.sum()
    if special.chdtrc(len(shares) - 1, ((n_clean - expected) ** 2 / expected).sum()) >= _SURE:
        return -np.inf
    mean, of_classes = proba.mean(axis=0), normalise_rows(proba.T @ proba)
    covariance = np.cov(proba.T) * (1 / len(proba_meta) + 1 / len(proba))
    precision = np.linalg.pinv(covariance, rcond=_SINGULAR, hermitian=True)
    at_random, by_class = (proba_meta.mean(axis=0) - m for m in (mean, of_clean @ of_classes))
    return float((at_random @ precision @ at_random - by_class @ precision @ by_class) / 2)


def weights_of_clean_rows(offset: NDArray, y_meta: NDArray) -> NDArray[np.float64]:
    """Weights of clean rows, of mean 1, with which they have the shares of the noisy rows.

    Parameters
    ----------
    offset : ndarray of shape (c,)
    y_meta : ndarray of int, shape (n_meta,)
        Their labels.

    Returns
    -------
    ndarray of shape (n_meta,)
    """
    weights = np.exp(-offset)[y_meta]
    return weights / weights.mean()


def tilted(proba: NDArray, offset: NDArray | float) -> NDArray:
    """Posteriors of rows among which each class is more frequent by exp(offset).

    Parameters
    ----------
    proba : ndarray of shape (n, c)
    offset : ndarray of shape (c,) or float

    Returns
    -------
    ndarray of shape (n, c)
        `proba` itself if the offset is 0.
    """
    return special.softmax(finite_log(proba) + offset, axis=1) if np.any(offset) else proba
