"""T from posteriors of held-out rows, and what follows from them: functions of arrays."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import EMResult, transition_uncertainty
from ._calibration import CalibratedLikelihood, Calibration, tempered_log_loss
from ._class_offset import class_offset, tilted, weights_of_clean_rows
from ._em import FirstMaximum, first_maximum
from ._instance_dependent import InstanceDependentEstimate, instance_dependent
from ._pair_posterior import PairEstimate, revised_by_pairs
from ._shrinkage import Prior
from ._uncertainty import MOST_CLASSES, TransitionUncertainty

# How often a clean row counts in the calibration behind T: n / n_meta to this power, without and with verified pairs. 0
# is the likelihood, 1 gives all clean rows the weight of all noisy ones. Design half of examples/benchmarks/zoo (two
# seeds), error of T at 0, 1/2, 3/4 and 1: 0.247, 0.177, 0.156, 0.154 and with pairs 0.099, 0.086, 0.091, 0.110.
# With few clean rows of a class, which the zoo has not, 1 is too much (one of each of 12 classes: 0.29 for 0.11).
_POWER, _POWER_OF_FEW, _POWER_WITH_PAIRS = 1.0, 0.75, 0.5
# fewer clean rows than so many times the classes are few
_FEW = 5
# the same where labels may depend on the row: at 3/4 and 1 that is found where there is no noise at all
_POWER_OF_ROWS = 0.5
# standard errors by which a fine-tuned network must be better (0 to 2 are as good on the design half), and by which a
# longer training must make a network right more often: with 10,000 rows 2 points of accuracy are 1.2 to 2.6 of them
_LEAST_GAIN = 1.0
# with more, the inverse of T takes too long for the choice of the last network
_MOST_CLASSES_TO_INVERT = 1000


class Candidate(NamedTuple):
    """Posteriors of held-out noisy and clean rows after a number of epochs."""

    epochs: int
    proba: NDArray
    proba_meta: NDArray


class Labels(NamedTuple):
    """Labels of these rows, as class indices.

    Attributes
    ----------
    noisy, clean : ndarray of int, shape (n,) and (n_meta,)
        Noisy labels, and true ones of the clean rows.
    noisy_of_clean : ndarray of int, shape (n_meta,), or None
        Noisy labels of the clean rows, if they are known.
    pairs : ndarray of shape (c, c) or None
        Counts of all rows of which both labels are known, also those without posteriors.
    """

    noisy: NDArray[np.int64]
    clean: NDArray[np.int64]
    noisy_of_clean: NDArray[np.int64] | None = None
    pairs: NDArray | None = None


class Estimate(NamedTuple):
    """T, and what it comes from.

    Attributes
    ----------
    transition_matrix : ndarray of shape (c, c)
    counts : ndarray of shape (c, c)
        Expected numbers of rows of each true and noisy label.
    calibration : Calibration
        Map that calibrates the posteriors.
    candidate : Candidate
        Whose posteriors T comes from.
    log_evidence : ndarray of float
        Of all candidates.
    one_T : EMResult
        The most likely T that is true for all rows.
    revised : PairEstimate, InstanceDependentEstimate or None
        What took its place, since verified pairs, or without them all labels, spoke against it.
    offset : ndarray of shape (c,)
        Logarithm of how much more often each class is among the clean rows than among the noisy ones.
    bars : TransitionUncertainty or None
        Error bars; None with too many classes.
    """

    transition_matrix: NDArray[np.float64]
    counts: NDArray[np.float64]
    calibration: Calibration
    candidate: Candidate
    log_evidence: NDArray[np.float64]
    one_T: EMResult
    revised: PairEstimate | InstanceDependentEstimate | None
    offset: NDArray[np.float64]
    bars: TransitionUncertainty | None

    @property
    def proba(self) -> NDArray[np.float64]:
        """Calibrated probabilities of the noisy rows."""
        return self.calibration(self.candidate.proba)


def estimate_transition(
    candidates: Sequence[Candidate],
    labels: Labels,
    start: NDArray,
    *,
    prior: Prior = "symmetric",
    stratified: bool = False,
) -> Estimate:
    """T of the candidate under which all labels have the highest evidence, T integrated out.

    It is replaced if verified pairs contradict that one T is true for all rows; or, where there are none, if all labels
    are more likely where they depend on the row. Clean rows that are stratified have other shares of the classes.

    Parameters
    ----------
    candidates : sequence of Candidate
    labels : Labels
    start : ndarray of shape (c, c)
        Where the maximisation starts.
    prior : "symmetric", array-like or None
        As in `em_transition_matrix`.
    stratified : bool, default=False
        Whether the clean rows were drawn class by class.
    """
    has_pairs = labels.pairs is not None
    equal = len(labels.noisy) / len(labels.clean)  # weight of a clean row at which both sets count alike
    offset = _offset(candidates[-1], labels, start) if stratified else np.zeros(len(start))
    model = _Model(labels, start, prior, offset)
    power = _POWER_OF_FEW if len(labels.clean) < _FEW * len(start) else _POWER
    weight = equal ** (_POWER_WITH_PAIRS if has_pairs else power)
    one_T, candidate, log_evidence = model.most_likely(candidates, weight)
    calibration: Any = one_T.calibration  # there are clean rows
    revised: Any = model.by_pairs(one_T, candidate) if has_pairs else model.by_rows(candidate, equal**_POWER_OF_ROWS)
    found = one_T if revised is None else revised
    if revised is not None and not has_pairs:
        calibration = revised.calibration
    bars = model.error_bars(one_T, candidate, revised) if len(start) <= MOST_CLASSES else None
    T, counts = found.transition_matrix, found.counts
    return Estimate(T, counts, calibration, candidate, log_evidence, one_T, revised, offset, bars)


class _Model(NamedTuple):
    """One T for all rows: labels, where the search for T starts, and what is known of T and of the clean rows."""

    labels: Labels
    start: NDArray
    prior: Prior
    offset: NDArray

    def first_maximum(self, candidate: Candidate, weight: float) -> FirstMaximum:
        """Maximum with the posteriors of a candidate, at this weight of a clean row."""
        return first_maximum(
            candidate.proba,
            self.labels.noisy,
            init=self.start,
            prior=self.prior,
            proba_meta=candidate.proba_meta,
            y_meta=self.labels.clean,
            meta_weight=weight,
            meta_offset=self.offset,
            counts=self.labels.pairs,
        )

    def most_likely(
        self, candidates: Sequence[Candidate], weight: float
    ) -> tuple[EMResult, Candidate, NDArray[np.float64]]:
        """T of the candidate with the highest evidence; the evidence of all."""
        best, chosen, log_evidence = None, candidates[0], []
        for candidate in candidates:
            found = self.first_maximum(candidate, weight)
            log_evidence.append(found.log_evidence)
            if best is None or found.log_evidence > best.log_evidence:
                best, chosen = found, candidate  # of the others no copy of the posteriors is kept
        assert best is not None  # there is at least one candidate
        return best.settled(), chosen, np.array(log_evidence)

    def by_pairs(self, one_T: EMResult, candidate: Candidate) -> PairEstimate | None:
        """T by verified pairs, if they contradict the most likely one."""
        calibration: Any = one_T.calibration
        assert self.labels.noisy_of_clean is not None
        assert self.labels.pairs is not None
        return revised_by_pairs(
            calibration(candidate.proba),
            self.labels.noisy,
            one_T.transition_matrix,
            proba_pairs=calibration(candidate.proba_meta),
            y_pairs=self.labels.clean,
            y_noisy_pairs=self.labels.noisy_of_clean,
            counts=self.labels.pairs,
            offset=self.offset,
        )

    def by_rows(self, candidate: Candidate, weight: float) -> InstanceDependentEstimate | None:
        """T of labels that depend on the row, if all labels contradict the most likely one."""
        return instance_dependent(
            candidate.proba.astype(np.float64),
            self.labels.noisy,
            candidate.proba_meta.astype(np.float64),
            self.labels.clean,
            one_T=self.first_maximum(candidate, weight).settled(),
            init=self.start,
            prior=self.prior,
            meta_weight=weight,
            meta_offset=self.offset,
        )

    def error_bars(
        self, one_T: EMResult, candidate: Candidate, revised: PairEstimate | InstanceDependentEstimate | None
    ) -> TransitionUncertainty | None:
        """Error bars; without pairs they reach over those of T where a clean row counts once.

        How far these are apart shows what the assumption of one T is worth.
        """
        own = self._bars(one_T, candidate)
        if isinstance(revised, PairEstimate):
            return revised.error_bars(own.std)
        if self.labels.pairs is not None:
            return own
        once = self.first_maximum(candidate, 1.0).settled()
        bars = own.joined(self._bars(once, candidate))
        return bars if revised is None else bars.around(revised.transition_matrix)

    def _bars(self, one_T: EMResult, candidate: Candidate) -> TransitionUncertainty:
        calibration: Any = one_T.calibration
        return transition_uncertainty(
            calibration(candidate.proba),
            self.labels.noisy,
            one_T.transition_matrix,
            proba_meta=tilted(calibration(candidate.proba_meta), self.offset),
            counts=self.labels.pairs,
        )


def _offset(candidate: Candidate, labels: Labels, start: NDArray) -> NDArray[np.float64]:
    """Logarithm of how much more often each class is among the clean rows."""
    pairs = np.zeros_like(start) if labels.pairs is None else labels.pairs
    proba, proba_meta = (p.astype(np.float64) for p in candidate[1:])
    return class_offset(CalibratedLikelihood(proba, labels.noisy, proba_meta, labels.clean, pairs), start)


# ---------------------------------------------------------------------------- the last network
def last_training(candidates: Sequence[Candidate], best: Candidate, T: NDArray, y: NDArray) -> Candidate:
    """The candidate after whose number of epochs the last network ends: a longer one than the best, if it is better.

    T comes from calibrated posteriors, which hardly show that a step is still large, as before the end of a schedule: a
    network then prefers some classes, and its calibration makes up for it. The last network has no calibration.

    Whether a network is right on its held-out rows is found from their noisy labels y, without bias under T: backward
    correction (Natarajan et al., 2013; Patrini et al., 2017) of the 0-1 loss. Over the noisy labels of a true class,
    rows of the inverse of T have the mean 1 at that class and 0 elsewhere. A network's own posteriors would hold its
    decisions to be right.
    """
    longer = [c for c in candidates if c.epochs > best.epochs]
    if not longer or len(T) > _MOST_CLASSES_TO_INVERT:
        return best
    inverse = np.linalg.pinv(T)
    before, *after = (inverse[y, c.proba.argmax(axis=1)] for c in (best, *longer))
    gains = np.array([right - before for right in after])
    k = gains.mean(axis=1).argmax()
    return longer[k] if gains[k].mean() > _LEAST_GAIN * gains[k].std() / len(y) ** 0.5 else best


def fine_tuning_helps(own: NDArray, fine_tuned: NDArray, y: NDArray, offset: NDArray) -> tuple[bool, dict[str, float]]:
    """Whether held-out clean rows are predicted better after a training on the others alone, and the mean losses.

    Losses are those of both networks at their best temperatures.

    Parameters
    ----------
    own, fine_tuned : ndarray of shape (n, c)
        Posteriors of held-out clean rows.
    y : ndarray of int, shape (n,)
        Their labels.
    offset : ndarray of shape (c,)
        As in `Estimate`; the fine-tuned network has the shares of the clean rows.
    """
    weights = weights_of_clean_rows(offset, y)
    before, after = (tempered_log_loss(proba, y, weights) for proba in (own, tilted(fine_tuned, -offset)))
    gain = before - after
    helps = gain.mean() > _LEAST_GAIN * gain.std(ddof=1) / len(y) ** 0.5
    return bool(helps), {"own": float(before.mean()), "fine-tuned": float(after.mean())}
