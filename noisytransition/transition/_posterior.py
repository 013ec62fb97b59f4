"""Posterior probabilities of the true label, and the label quality derived from them."""

from __future__ import annotations
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels._encode import class_indices, class_names
from ..labels._pandas import in_class_order
from ._channels import Channel, OneT
from ._checks import blocks_of_rows, check_count, check_probabilities, check_transition_matrix, checked_probabilities
from ._estimation import normalise_rows

# smallest denominator: far above the smallest float64, far below any relevant probability
_MIN_DENOMINATOR = 1e-300
# smallest initial value, as a share of 1/c: the multiplicative update never leaves 0. A choice, not measured.
_MIN_START = 1e-3


def label_posterior(
    proba: ArrayLike, y_noisy: ArrayLike, T: ArrayLike, *, classes: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Compute the probability of each true label, given features and noisy label (Bayes' rule).

    ``P(true = i | x, noisy = j) = proba[i] T[i, j] / sum_k proba[k] T[k, j]``.

    Parameters
    ----------
    proba : array-like of shape (n, c)
        Probabilities of the *true* label, ``P(true = i | x)``.
    y_noisy : array-like of shape (n,)
        Noisy labels: class indices 0..c-1, text, or any labels in `classes`.
    T : array-like of shape (c, c)
        Transition matrix.
    classes : array-like of shape (c,), optional
        Labels in the order of the columns of `proba` and `T`. Default for text: the c sorted labels of `y_noisy`.

    Returns
    -------
    ndarray of shape (n, c), float64
        Rows sum to 1. If the noisy label has probability 0 under `proba` and `T`, the row of `proba` is returned.

    Examples
    --------
    >>> from noisytransition.transition import label_posterior
    >>> label_posterior([[0.5, 0.5], [0.5, 0.5]], [0, 1], [[1, 0], [0.5, 0.5]]).round(3)
    array([[0.667, 0.333],
           [0.   , 1.   ]])
    """
    given = checked_probabilities(proba)
    n_rows, n_classes = given.shape
    named = class_names(y_noisy, n_classes, classes)
    codes = class_indices(y_noisy, n_classes, n_rows, "y_noisy", named)
    order = np.arange(n_classes) if named is None else named
    if hasattr(proba, "columns"):
        given = checked_probabilities(in_class_order(proba, order, rows=False))
    T = check_transition_matrix(in_class_order(T, order), n_classes, "T")
    return LabelledSamples(given, codes, np.full(n_rows, -1)).posterior(OneT(T))


def denoise_proba(noisy_proba: ArrayLike, T: ArrayLike, *, n_iter: int = 5) -> NDArray[np.float64]:
    r"""Solve ``noisy_proba = proba @ T`` for the probabilities of the *true* label.

    A classifier trained on noisy labels without correction predicts noisy labels. Starting from `noisy_proba`, each
    iteration reduces the Kullback-Leibler divergence from ``proba @ T`` (Richardson-Lucy deconvolution)::

        proba[i] <- proba[i] * sum_j T[i, j] noisy_proba[j] / (proba @ T)[j]

    Many iterations amplify the errors of the classifier, as the inverse of T does. Use few (early stopping) unless
    `noisy_proba` is almost exact.

    Parameters
    ----------
    noisy_proba : array-like of shape (n, c)
        Probabilities of the *noisy* label, ``P(noisy = j | x)``; or shares of noisy labels, in one row.
    T : array-like of shape (c, c)
        Transition matrix. If both are data frames, it is matched to the column names of `noisy_proba`.
    n_iter : int, default=5
        Number of iterations. Use 1000 for shares, or if `noisy_proba` is exact.

    Returns
    -------
    ndarray of shape (n, c), float64
        ``P(true = i | x)``, classes as in `noisy_proba`; rows sum to 1. A row with probability 0 under `T` is returned
        unchanged.

    References
    ----------
    Richardson, "Bayesian-Based Iterative Method of Image Restoration", 1972. Patrini, Rozza, Menon, Nock, Qu, CVPR
    2017 (correction of losses by the inverse of T).

    Examples
    --------
    >>> from noisytransition.transition import denoise_proba
    >>> denoise_proba([[0.8, 0.2], [0.4, 0.6], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]], n_iter=1000).round(3)
    array([[1.   , 0.   ],
           [0.333, 0.667],
           [0.   , 1.   ]])
    """
    noisy = check_probabilities(noisy_proba, name="noisy_proba")
    n_classes = noisy.shape[1]
    T = check_transition_matrix(in_class_order(T, getattr(noisy_proba, "columns", None)), n_classes, "T")
    found = normalise_rows(np.maximum(noisy, _MIN_START / n_classes), noisy)
    for _ in range(check_count(n_iter, 1, "n_iter")):
        found = found * ((noisy / np.maximum(found @ T, _MIN_DENOMINATOR)) @ T.T)
    return normalise_rows(found, noisy)


# ---------------------------------------------------------------------------- samples with labels
class LabelledSamples(NamedTuple):
    """Samples with a noisy label, a verified label, or both.

    Attributes
    ----------
    proba : ndarray of shape (n, c)
        Probabilities of the true label, without using the noisy label.
    noisy, true : ndarray of int, shape (n,)
        Noisy and verified labels as class indices; -1 if missing.
    likelihood : ndarray of shape (n, c), or None
        Probability of several labels given each true class; None if a channel gives it (one label).
    """

    proba: NDArray
    noisy: NDArray[np.intp]
    true: NDArray[np.intp]
    likelihood: NDArray | None = None

    @property
    def is_pair(self) -> NDArray[np.bool_]:
        """Mask of samples with both labels."""
        return (self.noisy >= 0) & (self.true >= 0)

    def posterior(self, channel: Channel) -> NDArray[np.float64]:
        """P(true | x, labels) by Bayes' rule, shape (n, c); verified labels are certain."""
        found = np.empty(self.proba.shape)
        for rows, posterior in self._blocks(channel):
            found[rows] = posterior
        return found

    def judge(self, channel: Channel) -> Judged:
        """Assess each noisy label by its posterior, without storing all posteriors."""
        (n, c), noisy = self.proba.shape, self.noisy
        quality, suggested, certainty = np.empty(n), np.empty(n, dtype=np.intp), np.empty(n)
        for rows, posterior in self._blocks(channel):
            quality[rows] = posterior[np.arange(len(posterior)), np.minimum(noisy[rows], c - 1)]
            suggested[rows], certainty[rows] = posterior.argmax(axis=1), posterior.max(axis=1)
        quality[(noisy < 0) | (noisy >= c)] = np.nan  # no label, or a label that is not a class
        n_agreeing = int((self.proba.argmax(axis=1) == noisy).sum())
        agreement = n_agreeing / max(int((noisy >= 0).sum()), 1)
        return Judged(noisy, self.true >= 0, quality, suggested, certainty, agreement)

    def _blocks(self, channel: Channel) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield blocks of rows, and their posteriors."""
        for rows in blocks_of_rows(*self.proba.shape):
            of_class, noisy = self.proba[rows].astype(np.float64, copy=False), self.noisy[rows]
            if self.likelihood is None:
                known, posterior = noisy >= 0, normalise_rows(of_class)
                posterior[known] = channel.posterior(posterior[known], noisy[known])
            else:
                posterior = normalise_rows(of_class * self.likelihood[rows], of_class)
            verified = self.true[rows] >= 0
            posterior[verified] = np.eye(posterior.shape[1])[self.true[rows][verified]]
            yield rows, posterior


class Judged(NamedTuple):
    """Assessment of the noisy label of each sample.

    Attributes
    ----------
    noisy : ndarray of int, shape (n,)
        Noisy labels as class indices; -1 if missing.
    is_verified : ndarray of bool, shape (n,)
    quality : ndarray of shape (n,)
        Probability that the noisy label is correct: 0 or 1 for verified samples, NaN without a noisy label.
    suggested, certainty : ndarray of shape (n,)
        Most probable true class given features and label, and its probability.
    agreement : float
        Share of noisy labels that equal the class predicted from the features alone.
    """

    noisy: NDArray[np.intp]
    is_verified: NDArray[np.bool_]
    quality: NDArray[np.float64]
    suggested: NDArray[np.intp]
    certainty: NDArray[np.float64]
    agreement: float

    def issues(self, threshold: float = 0.5) -> NDArray[np.intp]:
        """Positions of unverified samples with a quality below the threshold, lowest quality first."""
        order = np.argsort(self.quality, kind="stable")
        return order[((self.quality < threshold) & ~self.is_verified)[order]]
