"""Samples with labels: the posterior of their true label, and the quality of their noisy label."""

from __future__ import annotations
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..likelihood._pair_posterior import Channel
from ..transition._checks import blocks_of_rows
from ..transition._estimation import normalise_rows


def data_frame(columns: Any, index: Any = None) -> Any:
    """Create a data frame."""
    from pandas import DataFrame  # slow to import

    return DataFrame(columns, index=index)


def in_series(values: NDArray, index: Any, name: object) -> Any:
    """Values as a Series with this index; unchanged without an index."""
    if index is None:
        return values
    from pandas import Series  # slow to import

    return Series(values, index=index, name=name)


class LabelledSamples(NamedTuple):
    """Samples with a noisy label, a verified label, or both, as class indices; -1 if missing."""

    proba: NDArray  # of the true label, without using the noisy label
    noisy: NDArray[np.intp]
    true: NDArray[np.intp]
    likelihood: NDArray | None = None  # of several labels given each true class; of one label, a channel gives it

    def posterior(self, channel: Channel) -> NDArray[np.float64]:
        """P(true | x, labels) by Bayes' rule, shape (n, c); verified labels are certain."""
        return np.concatenate([posterior for _, posterior in self._blocks(channel)] or [np.empty(self.proba.shape)])

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
            proba = self.proba[rows].astype(np.float64, copy=False)
            noisy, true = self.noisy[rows], self.true[rows]
            if self.likelihood is None:
                posterior = normalise_rows(proba)
                posterior[noisy >= 0] = channel.posterior(posterior[noisy >= 0], noisy[noisy >= 0])
            else:
                posterior = normalise_rows(proba * self.likelihood[rows], proba)
            posterior[true >= 0] = np.eye(posterior.shape[1])[true[true >= 0]]
            yield rows, posterior


class Judged(NamedTuple):
    """Assessment of the noisy label of each sample."""

    noisy: NDArray[np.intp]  # -1 if missing
    is_verified: NDArray[np.bool_]
    quality: NDArray[np.float64]  # probability that the label is correct; NaN without a label
    suggested: NDArray[np.intp]  # most probable true class given features and label
    certainty: NDArray[np.float64]  # its probability
    agreement: float  # share of noisy labels that equal the class predicted from the features alone

    def issues(self, threshold: float = 0.5) -> NDArray[np.intp]:
        """Positions of unverified samples with a quality below the threshold, lowest quality first."""
        order = np.argsort(self.quality, kind="stable")
        return order[((self.quality < threshold) & ~self.is_verified)[order]]
