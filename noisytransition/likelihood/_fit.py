"""Fit of the noise to held-out samples: calibration, T and channel."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..labels._draw import design_effect, in_order_of_appearance
from ..transition._estimation import anchor_transition_matrix, finite_log, gold_transition_matrix, normalise_rows
from ._calibration import MOST_CLASSES_WITH_MATRIX, Calibration, EMResult
from ._class_prior import fit_log_prior_ratio, shift_class_prior
from ._em import FirstMaximum, first_maximum, pseudo_counts
from ._feature_dependent import fit_feature_dependent_noise
from ._out_of_fold import Candidate, OutOfFold
from ._pair_posterior import Channel, OneT, fit_channel, fit_pair_posterior, wrong_true_labels
from ._rectified import Rectified, rectified
from ._rules import EVIDENCE, N_FOLDS
from ._shrinkage import Prior, shrunk_to_symmetric
from ._uncertainty import MOST_CLASSES, TransitionUncertainty, error_bars, leave_one_out

#: largest weight of a clean sample, about the largest n / m in the zoo. Without this limit, networks overfit few
#: clean samples (generated data of examples/benchmarks/em_transition.py, seeds 0 to 2: accuracy 0.741 instead of 0.749)
LARGEST_WEIGHT = 20.0
# The influence of the noisy labels: a clean sample has one of these powers of n / m as weight. Five powers give the
# same error of T as three (design half of examples/benchmarks/zoo). The first alone gives up to twice the error where
# one T holds (examples/benchmarks/em_transition.py, symmetric noise of 0.6, six seeds). Feature-dependent noise has the
# second: at the first, where the calibration overfits few clean samples, it is detected in data without noise
_POWERS = (1.0, 0.5, 0.0)


class NoiseFit(NamedTuple):
    """Fitted model of the noise, from `fit_noise`."""

    out_of_fold: OutOfFold  # without the samples that have no label
    best: Candidate  # with the highest evidence
    log_evidence: NDArray[np.float64]  # of each candidate
    log_prior_ratio: NDArray[np.float64]  # log ratio of the class priors of clean and noisy samples
    one_T: EMResult  # maximum-likelihood T that holds for all samples
    weights: NDArray[np.float64]  # of the clean samples in it
    calibration: Calibration | None  # None without clean samples
    channel: Channel  # model of the noisy label of a sample
    transition_matrix: NDArray[np.float64]
    counts: NDArray[np.float64]  # expected numbers of samples of each true and noisy label
    at_weight_one: NDArray[np.float64]  # T if a clean sample has the weight 1
    all_samples: OutOfFold  # with the best candidate, and with samples that have no label
    conflict: float  # gain in the log-score of clean samples by a lower influence of the noisy labels
    is_one_T: bool = True  # whether one T holds for all samples, as far as the labels tell
    power: float = 0.0  # exponent of feature-dependent noise that was found without pairs
    # positions of clean samples whose true label is probably wrong; empty unless this best explains the pairs
    wrong_true_labels: NDArray[np.intp] = np.zeros(0, dtype=np.intp)

    def calibrated(self, proba: NDArray) -> NDArray:
        """Calibrate probabilities; without clean samples, return them unchanged."""
        return proba if self.calibration is None else self.calibration(proba)

    @property
    def of_pairs(self) -> tuple[NDArray, NDArray, NDArray]:
        """Calibrated probabilities, true and noisy labels of the pairs with probabilities."""
        of = self.out_of_fold
        known = of.noisy_of_clean >= 0
        return self.calibrated(self.best.proba_clean[known]), of.clean[known], of.noisy_of_clean[known]


def fit_noise(out_of_fold: OutOfFold, start: NDArray, prior: Prior, *, stratified: bool, show: Any = iter) -> NoiseFit:
    """Fit calibration and T to all labels, and a channel if the labels contradict one T for all samples.

    `start` of shape (c, c) is the initial T, `prior` as in `em_transition_matrix`. If `stratified`, the clean samples
    are stratified by class. `show` iterates over the candidates, with a progress bar.
    """
    of = out_of_fold.labelled()
    log_prior_ratio = np.zeros(len(start))
    if stratified and len(of.clean):
        last = of.candidates[-1]
        log_prior_ratio = fit_log_prior_ratio(last.proba, of.noisy, last.proba_clean, of.clean, of.pairs, start)
    weights = _weights_of_clean(of, log_prior_ratio)
    path, log_evidence = _maxima(of, start, prior, weights, log_prior_ratio, show)
    best = int(log_evidence.argmax())
    scores = _left_out_scores(of, of.candidates[best], path, weights, log_prior_ratio)
    k = int(np.argmax(scores))
    one_T = path[k].finish()
    fit = NoiseFit(
        of,
        of.candidates[best],
        log_evidence,
        log_prior_ratio,
        one_T,
        weights[k],
        one_T.calibration,
        OneT(one_T.transition_matrix),
        one_T.transition_matrix,
        one_T.counts,
        one_T.transition_matrix if k == len(path) - 1 else path[-1].found.transition_matrix,
        out_of_fold._replace(candidates=[out_of_fold.candidates[best]]),
        conflict=scores[k] - scores[-1],
    )
    if of.pairs.any():
        return _by_pairs(fit)
    if len(of.clean) and len(start) <= MOST_CLASSES_WITH_MATRIX:
        return _by_features(fit, path[len(path) // 2])
    return fit


def _weights_of_clean(of: OutOfFold, log_prior_ratio: NDArray) -> list[NDArray[np.float64]]:
    """Weights of the clean samples by decreasing influence, which make them representative.

    Clean samples get the same total weight as noisy ones, up to a limit. If one T holds, weight 1 is the most precise.
    Otherwise, the many noisy labels mislead the calibration. With pairs, every label counts once: then a draw by
    features and noisy labels is ignorable (Rubin, "Inference and Missing Data", 1976).
    """
    m = len(of.clean)
    if of.pairs.any():
        return [np.ones(m)]
    weights = np.ones(m) if log_prior_ratio.any() else of.weights_of_clean(log_prior_ratio)
    most = min(len(of.noisy) / m, LARGEST_WEIGHT) if m else 1.0
    if most <= 1 or len(of.pairs) > MOST_CLASSES_WITH_MATRIX:
        return [most * weights]
    return [most**power * weights for power in _POWERS]


def _maxima(
    of: OutOfFold, start: NDArray, prior: Prior, weights: list[NDArray], log_prior_ratio: NDArray, show: Any
) -> tuple[list[FirstMaximum], NDArray[np.float64]]:
    """Maxima of the most likely candidate with these weights of clean samples, and the evidence of each candidate."""
    pairs = of.pairs
    log_evidence: list[float] = []
    for _, proba, of_clean in show(of.candidates):
        maximum = first_maximum(proba, of.noisy, of_clean, of.clean, start, prior, pairs, weights[0], log_prior_ratio)
        if not log_evidence or maximum.found.log_evidence > max(log_evidence):
            path = [maximum]  # others would keep copies of their probabilities
        log_evidence.append(maximum.found.log_evidence)
    for lower in weights[1:]:
        path.append(path[-1].with_weights(lower))
    return path, np.array(log_evidence)


def _left_out_scores(
    of: OutOfFold, best: Candidate, path: list[FirstMaximum], weights: list[NDArray], log_prior_ratio: NDArray
) -> list[float]:
    """Leave-one-out log-score of the clean samples at each maximum, if there are several."""
    if len(path) == 1:
        return [0.0]
    scores = []
    for maximum, of_clean in zip(path, weights, strict=True):
        found = maximum.found
        left_out = _left_out(of, best, found, found.calibration, of_clean, log_prior_ratio)
        scores.append(float(finite_log(left_out[np.arange(len(of.clean)), of.clean]).sum()))
    return scores


def _left_out(
    of: OutOfFold, best: Candidate, found: EMResult, calibration: Any, weights: NDArray, log_prior_ratio: NDArray
) -> NDArray[np.float64]:
    """Calibrated probabilities of the clean samples, with their class prior, each by a calibration without it."""
    given = shift_class_prior(calibration(best.proba_clean), log_prior_ratio)
    counts = of.pairs + pseudo_counts(found)
    T = found.transition_matrix
    return leave_one_out(calibration(best.proba), of.noisy, T, given, of.clean, weights, counts)


# ---------------------------------------------------------------------------- if one T does not hold for all samples
def _by_pairs(fit: NoiseFit) -> NoiseFit:
    """Fit a posterior to verified pairs that contradict one T, unless wrong true labels explain this."""
    of = fit.out_of_fold
    pairs = fit.of_pairs
    T = fit.transition_matrix
    proba = fit.calibrated(fit.best.proba)
    of_pairs, true, noisy = pairs
    effect = design_effect(np.eye(len(T))[true] - fit.channel.posterior(of_pairs, noisy), of.groups_of_pairs)
    found = fit_pair_posterior(proba, of.noisy, T, pairs, of.pairs, fit.log_prior_ratio, effect)
    evidence, wrong = wrong_true_labels(*pairs, T, fit.log_prior_ratio, effect)
    if evidence > EVIDENCE + (found.log_evidence if found else 0.0):
        known = np.flatnonzero(of.noisy_of_clean >= 0)
        fit = fit._replace(wrong_true_labels=known[wrong > 0.5])
    if found is None or len(fit.wrong_true_labels):
        return fit
    channel, T, counts, _ = found
    return fit._replace(channel=channel, transition_matrix=T, counts=counts, is_one_T=False)


def _by_features(fit: NoiseFit, one_T: FirstMaximum) -> NoiseFit:
    """Estimate T under feature-dependent noise, if the labels contradict one T.

    Without pairs, the labels do not tell how much of the noise depends on the features: T is the mean of both T.
    """
    found = fit_feature_dependent_noise(one_T, fit.best.proba_clean.astype(np.float64), fit.out_of_fold.clean)
    if found is None:
        return fit
    counts = (fit.counts + found.counts) / 2
    T = normalise_rows(counts, fit.transition_matrix)
    fit = fit._replace(calibration=found.calibration, power=found.power, is_one_T=False)
    return fit._replace(channel=OneT(T), transition_matrix=T, counts=counts)


# ---------------------------------------------------------------------------- error bars
def with_error_bars(fit: NoiseFit) -> tuple[NoiseFit, TransitionUncertainty | None]:
    """Error bars of T; None with too many classes. If pairs contradict one T, they correct T."""
    of = fit.out_of_fold
    T = fit.transition_matrix
    if len(T) > MOST_CLASSES:
        return fit, None
    _, proba, of_clean = fit.best
    if fit.one_T.calibration is not None:
        proba = fit.one_T.calibration(proba)
        of_clean = shift_class_prior(fit.one_T.calibration(of_clean), fit.log_prior_ratio)
    effects = (1.0, 1.0, 1.0) if of.groups is None else _design_effects(fit, proba, of_clean, of.groups)
    bars = error_bars(proba, of.noisy, fit.one_T.transition_matrix, of_clean, of.pairs, effects)
    # differences between estimates of T contradict the model: by influence, ...
    bars = bars.widened(fit.one_T.transition_matrix - fit.at_weight_one)
    # with the class prior of other samples, pairs do not represent those with their given label
    by_design = of.pairs.any() and not fit.log_prior_ratio.any()
    if fit.is_one_T:  # ... by design, ...
        return fit, bars.widened(_rectified(fit).bias_of(T)) if by_design else bars
    if not of.pairs.any():  # ... and by features
        bars = bars.widened(2 * (T - bars.transition_matrix))  # T is the mean of both
    bars = TransitionUncertainty(T, T, bars.std, bars.std)
    if by_design:
        bars = _rectified(fit).mean_with(bars)
        T = bars.transition_matrix
        fit = fit._replace(transition_matrix=T, counts=fit.counts.sum(axis=1, keepdims=True) * T)
    return fit, bars


def _design_effects(
    fit: NoiseFit, proba: NDArray, of_clean: NDArray, groups: tuple[NDArray, NDArray]
) -> tuple[float, float, float]:
    """Design effects of groups on the information in noisy samples, clean samples and pairs."""
    of = fit.out_of_fold
    one = np.eye(len(of.pairs))
    T = fit.one_T.transition_matrix
    known = of.noisy_of_clean >= 0
    of_pairs = one[of.noisy_of_clean[known]] - T[of.clean[known]]
    return (
        design_effect(one[of.noisy] - proba @ T, groups[0]),
        design_effect(one[of.clean] - of_clean, groups[1]),
        design_effect(of_pairs, of.groups_of_pairs),
    )


def _rectified(fit: NoiseFit) -> Rectified:
    """T by the residuals of the pairs."""
    of = fit.out_of_fold
    T = fit.one_T.transition_matrix
    proba, y, noisy = fit.of_pairs
    of_pairs = fit.channel.posterior(proba, noisy)
    if not fit.is_one_T:
        order = np.argsort(proba[np.arange(len(y)), y])  # whatever the order of the samples
        for out in folds_of(order, N_FOLDS, of.groups_of_pairs):
            channel, _ = fit_channel(proba[~out], y[~out], noisy[~out], T)
            of_pairs[out] = channel.posterior(proba[out], noisy[out])
    of_noisy = fit.channel.posterior(fit.calibrated(fit.best.proba), of.noisy)
    known = of.noisy_of_clean >= 0
    of_others, of_clean = of.weights or (np.ones(len(of.noisy)), np.ones(len(of.clean)))
    design = np.append(of_others, of_clean[known])
    sizes = np.bincount(np.append(of.noisy, noisy), design, len(T))
    # within a given label, weights of its draw are equal
    of_draw = 1.0 if of.drawn is None else of.weights_of_clean(fit.log_prior_ratio)[known]
    of_labels = of_noisy, of.noisy, of_pairs, y, noisy
    return rectified(fit.transition_matrix, *of_labels, of_draw * of_clean[known], sizes, design, of.groups_of_pairs)


# ---------------------------------------------------------------------------- start, and predictions of clean samples
def gold_start(proba: Any, proba_clean: NDArray, y: NDArray, *, is_shrunk: bool = True) -> NDArray[np.float64]:
    """Initial T: mean probabilities of the clean samples of each class, or an anchor point; uniform without any.

    The probabilities of the noisy samples, `proba`, are only used for a class without clean samples.
    """
    c = proba_clean.shape[1]
    if not len(y):
        return np.full((c, c), 1 / c)
    missing = anchor_transition_matrix(proba) if len(np.unique(y)) < c else None
    T = gold_transition_matrix(proba_clean, y, missing=missing)
    return shrunk_to_symmetric(T, proba_clean, y) if is_shrunk else T


def left_out_of_clean(fit: NoiseFit) -> NDArray[np.float64]:
    """Calibrated probabilities of the clean samples, each by a calibration without it, approximately.

    With more than 50 classes, where the information about T is too large to invert, by the calibration of all.
    """
    of = fit.out_of_fold
    if not len(of.clean) or len(of.pairs) > MOST_CLASSES:
        return fit.calibrated(fit.best.proba_clean)
    left_out = _left_out(of, fit.best, fit.one_T, fit.calibration, fit.weights, fit.log_prior_ratio)
    return shift_class_prior(left_out, -fit.log_prior_ratio)


def folds_of(order: NDArray[np.intp], n_folds: int, groups: NDArray | None = None) -> Iterator[NDArray[np.bool_]]:
    """Masks of folds, each of every n-th sample or group in this order, unless a fold has all samples or none."""
    place = np.arange(len(order)) if groups is None else in_order_of_appearance(groups[order])
    for k in range(n_folds):
        out = np.zeros(len(order), dtype=bool)
        out[order[place % n_folds == k]] = True
        if out.any() and not out.all():
            yield out
