"""Samples with labels: the posterior of their true label, and the quality of their noisy label."""

from __future__ import annotations
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..likelihood._channels import Channel
from ..transition._checks import blocks_of_rows
from ..transition._estimation import normalise_rows


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
        n, c = self.proba.shape
        noisy = self.noisy
        quality, suggested, certainty = np.empty(n), np.empty(n, dtype=np.intp), np.empty(n)
        for rows, posterior in self._blocks(channel):
            quality[rows] = posterior[np.arange(len(posterior)), np.minimum(noisy[rows], c - 1)]
            suggested[rows], certainty[rows] = posterior.argmax(axis=1), posterior.max(axis=1)
        quality[(noisy < 0) | (noisy >= c)] = np.nan  # no label, or a label that is not a class
        agreement = int((self.proba.argmax(axis=1) == noisy).sum()) / max(int((noisy >= 0).sum()), 1)
        return Judged(noisy, self.true >= 0, quality, suggested, certainty, agreement)

    def _blocks(self, channel: Channel) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield blocks of rows, and their posteriors."""
        for rows in blocks_of_rows(*self.proba.shape):
            of_class = self.proba[rows].astype(np.float64, copy=False)
            if self.likelihood is None:
                posterior = normalise_rows(of_class)
                known = self.noisy[rows] >= 0
                posterior[known] = channel.posterior(posterior[known], self.noisy[rows][known])
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
