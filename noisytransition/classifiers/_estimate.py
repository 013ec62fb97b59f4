"""T from posteriors of held-out rows: how many epochs, how much a clean row counts, what verified pairs say."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..transition import EMResult, transition_uncertainty
from ..transition._calibration import CalibratedLikelihood, Calibration
from ..transition._class_offset import (
    POSITIVE_EVIDENCE,
    class_offset,
    evidence_of_drawing_by_class,
    seem_drawn_by_class,
    tilted,
    weights_of_clean_rows,
)
from ..transition._clean_weight import HeldOutLoss
from ..transition._em import FirstMaximum, first_maximum
from ..transition._estimation import pair_counts
from ..transition._instance_dependent import InstanceDependentEstimate, instance_dependent
from ..transition._pair_posterior import PairEstimate, revised_by_pairs
from ..transition._rule_labels import RuleEstimate, labels_of_a_rule
from ..transition._shrinkage import Prior
from ..transition._uncertainty import MOST_CLASSES, TransitionUncertainty
from ._cross_fitting import Candidate, last_training
from ._folds import N_FOLDS, fold_of_rows
from ._run import Run

# rise of the log-likelihood of held-out clean rows for which a larger weight is taken, if it is also above its
# standard error: below, a few rows decide (design half of examples/benchmarks/zoo, seeds 11 to 13, and em_defaults.py)
_LEAST_GAIN = 2.0
# powers of n / n_meta that are tried as the weight of a clean row, the largest first
_POWERS = (1.0, 0.75, 0.5)
# with more, the inverse of T takes too long for the choice of the last network
_MOST_CLASSES_TO_INVERT = 1000


class Likely(NamedTuple):
    """A most likely T, and the posteriors that it comes from."""

    result: EMResult
    candidate: Candidate


class Estimate(NamedTuple):
    """T, and what it comes from.

    Attributes
    ----------
    result : EMResult
    candidate : Candidate
        Whose posteriors T comes from.
    weight : float
        How often a clean row counted in their calibration.
    others : list of Likely
        T at the weights 1 and n / n_meta as far as they were not taken, and T of networks that the clean rows have
        fine-tuned.
    evidence : dict of ndarray
        ``epochs`` and ``log_evidence`` of all candidates.
    gain : float
        By how much the weight that was taken raises the log-likelihood of held-out clean rows; n / n_meta if that is 1.
    revised : PairEstimate, RuleEstimate, InstanceDependentEstimate or None
        T after verified pairs, or if there are none all labels, spoke against one T for all rows.
    rule : RuleEstimate or None
        What the labels say of a rule, with pairs or without.
    offset : ndarray of shape (c,)
        Logarithm of how much more often each class is among the clean rows than among the noisy ones.
    is_undecided : bool
        Whether the clean rows may have been drawn class by class or at random.
    """

    result: EMResult
    candidate: Candidate
    weight: float
    others: list[Likely]
    evidence: dict[str, NDArray]
    gain: float
    revised: PairEstimate | RuleEstimate | InstanceDependentEstimate | None
    rule: RuleEstimate | None
    offset: NDArray
    is_undecided: bool

    @property
    def calibration(self) -> Calibration | None:
        """Map that calibrates the posteriors."""
        return (self.revised if isinstance(self.revised, InstanceDependentEstimate) else self.result).calibration

    @property
    def proba(self) -> NDArray[np.float64] | None:
        """Probabilities of the true label of the candidate's noisy rows; None without a calibration."""
        if self.rule is not None:
            return self.rule.proba
        return None if self.calibration is None else self.calibration(self.candidate.posteriors[0])

    @property
    def transition_matrix(self) -> NDArray[np.float64]:
        """T."""
        return self.result.transition_matrix if self.revised is None else self.revised.transition_matrix

    @property
    def counts(self) -> NDArray[np.float64]:
        """Expected numbers of rows of each true and noisy label."""
        return self.result.counts if self.revised is None else self.revised.counts

    def last_training(self, candidates: Sequence[Candidate], run: Run) -> int:
        """Number of epochs of the last network.

        Those of T where labels follow a rule, since a network that learns the rule seems right under one T; and with so
        many classes that the inverse of T takes long.
        """
        if self.rule is not None or len(self.transition_matrix) > _MOST_CLASSES_TO_INVERT:
            return self.candidate.epochs
        return last_training(candidates, self.candidate, self.transition_matrix, run)


def estimate_transition(
    candidates: Sequence[Candidate],
    run: Run,
    start: NDArray,
    *,
    fine_tuned: Candidate | None = None,
    prior: Prior = "symmetric",
    strength: float | str = "auto",
    weight: float | str = "auto",
    depends: bool = True,
    sampling: str = "auto",
) -> Estimate:
    """T of the candidate under which all labels have the highest evidence, T integrated out.

    The evidence supposes that one T is true for all rows. Where it is not, it moves the classes' boundary instead, and
    the clean rows, which are few, hardly weigh. Therefore clean rows are held out of the calibration to decide how
    often each counts: once, as in the likelihood, or up to so often that all together weigh as much as the noisy rows.
    T is revised if pairs of true and noisy labels are known and contradict it; or, where none are known and `depends`,
    if all labels are far more likely where labels may depend on the row.
    Clean rows that are drawn class by class, by `sampling`, have other shares of the classes in all of it.
    """
    offset, is_undecided = _offset(candidates[-1], run, start, sampling)
    params = {"prior": prior, "strength": strength, "meta_offset": offset}
    likeliest = partial(_first_maximum, run=run, start=start, params=params)

    def settled(candidate: Candidate, weight: float) -> Likely:
        return Likely(likeliest(candidate, weight=weight).settled(), candidate)

    if fine_tuned:  # on clean rows alone
        of_noisy, of_clean = (tilted(p, -offset) for p in fine_tuned.posteriors)
        fine_tuned = fine_tuned._replace(posteriors=(of_noisy, of_clean))
    first = 1.0 if isinstance(weight, str) else float(weight)
    chosen, evidence = _highest_evidence(candidates, partial(likeliest, weight=first))
    taken, others, gain = chosen.candidate, [], 0.0
    if isinstance(weight, str):
        equal = len(taken.rows[0]) / len(taken.rows[1])
        first, gain = _preferred_weight(taken, run, start, equal, offset)
        found = {w: chosen if w == 1 else settled(taken, w) for w in {1.0, equal, first}}
        chosen = found[first]
        # with as many clean rows as noisy ones all weights are 1
        others = [found[w] for w in (1.0, equal) if w != first] or [chosen]
        if fine_tuned:
            others.append(settled(fine_tuned, equal))
    rule = _of_a_rule(chosen, fine_tuned, run, offset) if depends and strength == "auto" else None
    revised: Any = _revised(chosen, rule, run, offset) or rule
    if depends and revised is None and known_pairs(run) is None and strength == "auto":
        revised = _instance_dependent(chosen, run, start, prior, first, offset)
    return Estimate(*chosen, first, others, evidence, gain, revised, rule, offset, is_undecided)


def _offset(candidate: Candidate, run: Run, start: NDArray, sampling: str) -> tuple[NDArray[np.float64], bool]:
    """Logarithm of how much more often each class is among the clean rows, and whether that is undecided.

    It is 0 unless they are known to be drawn class by class, or seem so and look so.
    """
    n_clean, none = np.bincount(run.clean.label, minlength=len(start)), np.zeros(len(start))
    is_known = sampling == "by_class"
    if sampling == "random" or not (is_known or seem_drawn_by_class(run.clean.label, len(start))):
        return none, False
    offset, calibration = class_offset(_likelihood(candidate, run), start, n_clean)
    if is_known:
        return offset, False
    evidence = evidence_of_drawing_by_class(offset, n_clean, *(calibration(p) for p in candidate.posteriors))
    return offset if evidence > POSITIVE_EVIDENCE else none, abs(evidence) <= POSITIVE_EVIDENCE


def _highest_evidence(
    candidates: Sequence[Candidate], likeliest: Callable[[Candidate], FirstMaximum]
) -> tuple[Likely, dict[str, NDArray]]:
    """The candidate with the highest evidence, and evidence of all by their number of epochs."""
    best, log_evidence = None, []
    for candidate in candidates:
        found = likeliest(candidate)
        log_evidence.append(found.log_evidence)
        if best is None or found.log_evidence > best[0].log_evidence:
            best = found, candidate  # of the others no copy of the posteriors is kept
    assert best is not None  # there is at least one candidate
    evidence = {"epochs": np.array([c.epochs for c in candidates]), "log_evidence": np.array(log_evidence)}
    return Likely(best[0].settled(), best[1]), evidence


def _revised(likely: Likely, rule: RuleEstimate | None, run: Run, offset: NDArray) -> PairEstimate | None:
    """T by verified pairs, if there are any, and they contradict the most likely T, or that of a rule."""
    (result, candidate), counts = likely, known_pairs(run)
    if counts is None or result.calibration is None:
        return None
    y, y_meta = candidate.labels(run)
    if rule is None:
        T, (proba, proba_meta) = result.transition_matrix, (result.calibration(p) for p in candidate.posteriors)
    else:
        T, proba, proba_meta = rule.transition_matrix, rule.proba, rule.proba_meta
    return revised_by_pairs(
        proba,
        y,
        T,
        proba_pairs=proba_meta,
        y_pairs=y_meta,
        y_noisy_pairs=run.clean.columns["noisy_label"][candidate.rows[1]],
        counts=counts,
        offset=offset,
    )


def _of_a_rule(likely: Likely, fine_tuned: Candidate | None, run: Run, offset: NDArray) -> RuleEstimate | None:
    """T of labels that depend on the row alone, if they tell more of how it looks than true labels do."""
    result, candidate = likely
    if result.calibration is None or fine_tuned is None:
        return None
    (proba, proba_meta), (y, y_meta) = (result.calibration(p) for p in candidate.posteriors), candidate.labels(run)
    reference, reference_meta = fine_tuned.posteriors
    return labels_of_a_rule(
        proba,
        y,
        proba_meta,
        y_meta,
        T=result.transition_matrix,
        reference=reference,
        reference_meta=reference_meta,
        weights_meta=weights_of_clean_rows(offset, y_meta),
        counts=known_pairs(run),
    )


def _instance_dependent(
    likely: Likely, run: Run, start: NDArray, prior: Prior, weight: float, offset: NDArray
) -> InstanceDependentEstimate | None:
    """T of labels that depend on the row, if all labels contradict the most likely T."""
    result, candidate = likely
    if result.calibration is None:
        return None
    (proba, proba_meta), (y, y_meta) = (p.astype(np.float64) for p in candidate.posteriors), candidate.labels(run)
    how: dict[str, Any] = {"prior": prior, "meta_weight": weight, "meta_offset": offset}
    return instance_dependent(proba, y, proba_meta, y_meta, one_T=result, init=start, **how)


def _first_maximum(
    candidate: Candidate, run: Run, start: NDArray, weight: float, params: dict[str, Any]
) -> FirstMaximum:
    (proba, proba_meta), (y, y_meta) = candidate.posteriors, candidate.labels(run)
    return first_maximum(
        proba,
        y,
        init=start,
        counts=known_pairs(run),
        proba_meta=proba_meta,
        y_meta=y_meta,
        meta_weight=weight,
        **params,
    )


def _preferred_weight(
    candidate: Candidate, run: Run, start: NDArray, equal: float, offset: NDArray
) -> tuple[float, float]:
    """The largest weight that held-out clean rows prefer to 1, else 1; and its gain, or that of the largest one."""
    held_out_loss, gains = _held_out_loss(candidate, run, start, offset), []
    once = held_out_loss(1.0)
    for weight in (equal**power for power in _POWERS):
        of_rows = once - held_out_loss(weight)
        gains.append(float(of_rows.sum()))
        if gains[-1] > max(_LEAST_GAIN, of_rows.std() * len(of_rows) ** 0.5):
            return weight, gains[-1]
    return 1.0, gains[0]


def _held_out_loss(candidate: Candidate, run: Run, start: NDArray, offset: NDArray) -> HeldOutLoss:
    """Loss of each clean row, held out of the calibration, as a function of how often the others count."""
    proba_meta, y_meta = candidate.posteriors[1].astype(np.float64), candidate.labels(run)[1]
    folds = fold_of_rows(y_meta, min(N_FOLDS, len(y_meta)), np.random.default_rng(run.seed))
    return HeldOutLoss(_likelihood(candidate, run, offset), start, proba_meta, y_meta, folds)


def _likelihood(candidate: Candidate, run: Run, offset: NDArray | float = 0.0) -> CalibratedLikelihood:
    pairs, c = known_pairs(run), len(run.classes)
    (proba, proba_meta), (y, y_meta) = (p.astype(np.float64) for p in candidate.posteriors), candidate.labels(run)
    known = np.zeros((c, c)) if pairs is None else pairs
    return CalibratedLikelihood(proba, y, proba_meta, y_meta, known, meta_offset=offset)


def error_bars(estimate: Estimate, run: Run) -> TransitionUncertainty | None:
    """Error bars of T; None with too many classes.

    They reach over those of the T at other weights of the clean rows, and of the T of fine-tuned networks: how far
    these are apart shows what the assumption of one T is worth.
    """
    if len(run.classes) > MOST_CLASSES:
        return None
    revised, rule = estimate.revised, estimate.rule
    if isinstance(revised, RuleEstimate):  # the one T is contradicted: the bars do not reach over its own
        return revised.error_bars()
    own = _error_bars(Likely(estimate.result, estimate.candidate), run, estimate.offset)
    if isinstance(revised, PairEstimate):  # not without a calibration, so there are error bars of the one T
        return revised.error_bars(own.std if rule is None else rule.std)
    if own is None:
        return None
    bars = own.joined(*(_error_bars(other, run, estimate.offset) for other in estimate.others))
    return bars if revised is None else bars.around(revised.transition_matrix)


def _error_bars(likely: Likely, run: Run, offset: NDArray) -> Any:
    result, candidate = likely
    if result.calibration is None:
        return None
    return transition_uncertainty(
        result.calibration(candidate.posteriors[0]),
        candidate.labels(run)[0],
        result.transition_matrix,
        proba_meta=tilted(result.calibration(candidate.posteriors[1]), offset),
        counts=known_pairs(run),
    )


def known_pairs(run: Run) -> NDArray | None:
    """Counts of the clean rows whose noisy labels are known."""
    noisy = run.clean.columns.get("noisy_label")
    return None if noisy is None else pair_counts(run.clean.label, noisy, len(run.classes))
