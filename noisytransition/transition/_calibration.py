"""Probabilities of a classifier set right: a map of its logits, by clean rows and by noisy ones through T."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from ._checks import check_probabilities

# keeps logarithms finite
_TINY = 1e-12
#: with more classes, n_classes^2 numbers are more than clean rows can tell about
MOST_FOR_A_FULL_MAP = 20
# precision of what the matrix adds to a logit, where the logits it is made of vary by 1
_PRECISION = 40.0
_MOST_STEPS = 500
# with many classes a T that is free fits chance, and draws the map along: the climb ends before
_MOST_STEPS_MANY_CLASSES = 40
# change of the mean log-likelihood of a row that ends the climb
_SETTLED = 1e-7


class Calibration(NamedTuple):
    """Affine map of logits, ``softmax(A u + b)`` with u = log proba.

    Attributes
    ----------
    matrix : ndarray of shape (c, c)
        A.
    bias : ndarray of shape (c,)
        b; minus infinity for a class that no row may have.
    log_likelihood : float
        Of the clean rows, with the prior of the map.
    """

    matrix: NDArray[np.float64]
    bias: NDArray[np.float64]
    log_likelihood: float

    def __call__(self, proba: ArrayLike) -> NDArray[np.float64]:
        """Calibrated probabilities of rows, shape (n, c), from those of the classifier.

        Parameters
        ----------
        proba : array-like of shape (n, c)

        Returns
        -------
        ndarray of shape (n, c), float64

        Raises
        ------
        ValueError
            If `proba` is not made of probabilities of c classes.
        """
        return special.softmax(
            centred_logits(check_probabilities(proba, len(self.bias))) @ self.matrix.T + self.bias, axis=1
        )


def calibrate(
    proba: NDArray, y: NDArray, proba_meta: NDArray, y_meta: NDArray, T: NDArray, known: NDArray
) -> Calibration:
    """Find the map under which clean labels, and noisy ones through a free T, are most likely.

    ``A = s I + B``. Priors: log s and b unit normal; B normal, an entry adding a sixth of the logits' spread.
    """
    problem = _Problem(proba, y, proba_meta, y_meta, known)
    start = problem.pack(0.0, np.zeros(len(T)), np.zeros_like(T), np.log(np.maximum(T, _TINY)))
    most = _MOST_STEPS if problem.full else _MOST_STEPS_MANY_CLASSES
    options = {"maxiter": most, "ftol": _SETTLED, "maxcor": 20}
    found = optimize.minimize(problem.height, start, jac=True, method="L-BFGS-B", options=options)
    return problem.calibration(found.x)


class _Problem:
    """Log-likelihood of the map and T, with its slopes."""

    def __init__(self, proba: NDArray, y: NDArray, proba_meta: NDArray, y_meta: NDArray, known: NDArray) -> None:
        self.c, self.n, self.known = len(known), len(y), known
        order = np.argsort(y, kind="stable")  # the rows of a noisy label are one block: its counts are their sum
        self.y, self.u = y[order], centred_logits(np.concatenate([proba[order], proba_meta]))
        self.named, self.first = np.unique(self.y, return_index=True)
        self.clean = np.eye(self.c)[y_meta]
        self.absent = ~(proba.any(axis=0) | proba_meta.any(axis=0) | self.clean.any(axis=0))
        self.precision = _PRECISION * self.u.var(axis=1).mean()
        self.full = self.c <= MOST_FOR_A_FULL_MAP

    def pack(self, log_scale: Any, bias: NDArray, added: NDArray, logits_T: NDArray) -> NDArray[np.float64]:
        """All that is sought, in one vector; without B for many classes."""
        return np.concatenate([[log_scale], bias, added.ravel() if self.full else [], logits_T.ravel()])

    def unpack(self, x: NDArray) -> tuple[float, NDArray, NDArray, NDArray]:
        """Log s, b, B and the logits of T."""
        c = self.c
        added = x[1 + c : -c * c].reshape(c, c) if self.full else np.zeros((c, c))
        return x[0], x[1 : 1 + c], added, x[-c * c :].reshape(c, c)

    def height(self, x: NDArray) -> tuple[float, NDArray]:
        """Mean loss of all rows, and its gradient."""
        n = len(self.u)
        log_scale, bias, added, logits_T = self.unpack(x)
        log_T = special.log_softmax(logits_T, axis=1)
        T, scale = np.exp(log_T), np.exp(log_scale)
        z = scale * self.u + bias
        log_p = special.log_softmax(z + self.u @ added.T if self.full else z, axis=1)
        p = np.exp(log_p)
        joint = p[: self.n] * T.T[self.y]
        of_row = np.maximum(joint.sum(axis=1, keepdims=True), _TINY**2)
        posterior = joint / of_row
        pull = np.concatenate([posterior, self.clean]) - p
        counts = self.known.copy()
        counts[:, self.named] += np.add.reduceat(posterior, self.first).T
        likelihood = np.log(of_row).sum() + (self.clean * log_p[self.n :]).sum() + (self.known * log_T).sum()
        slopes = self.pack(
            scale * (pull * self.u).sum() - log_scale,
            pull.sum(axis=0) - bias,
            pull.T @ self.u - self.precision * added if self.full else added,
            counts - T * counts.sum(axis=1, keepdims=True),
        )
        return -(likelihood + self.log_prior(log_scale, bias, added)) / n, -slopes / n

    def log_prior(self, log_scale: float, bias: NDArray, added: NDArray) -> float:
        """Of the map, but for a constant."""
        return -float(log_scale**2 + (bias**2).sum() + self.precision * (added**2).sum()) / 2

    def calibration(self, x: NDArray) -> Calibration:
        """The map that was found, and how likely it makes the clean rows."""
        log_scale, bias, added, _ = self.unpack(x)
        matrix = added + np.exp(log_scale) * np.eye(self.c)
        log_p = special.log_softmax(self.u[self.n :] @ matrix.T + bias, axis=1)
        likelihood = float((self.clean * log_p).sum()) + self.log_prior(log_scale, bias, added)
        return Calibration(matrix, np.where(self.absent, -np.inf, bias), likelihood)


def centred_logits(proba: NDArray) -> NDArray[np.float64]:
    """Logarithms of probabilities, less their mean in each row."""
    u = np.log(np.maximum(proba, _TINY))
    return u - u.mean(axis=1, keepdims=True)
