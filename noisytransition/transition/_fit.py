"""Fit of T to held-out samples: one T, or a posterior if labels contradict one T."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._calibration import MOST_CLASSES_WITH_MATRIX, CalibratedLikelihood
from ._channels import Channel, OneT
from ._class_offset import class_offset, log_scores, shift_class_prior
from ._em import EMResult, FirstMaximum, first_maximum
from ._estimation import POSITIVE_EVIDENCE, anchor_transition_matrix, gold_transition_matrix
from ._feature_dependent import FeatureDependentEstimate, fit_feature_dependent_noise
from ._held_out import Candidate, HeldOut
from ._metrics import transition_error
from ._pair_posterior import PairEstimate, fit_channel, fit_pair_posterior, wrong_true_labels
from ._rectified import rectified
from ._shrinkage import Prior, shrunk_to_symmetric
from ._uncertainty import MOST_CLASSES, TransitionUncertainty, transition_uncertainty

# Clean samples get the same total weight as the noisy ones, unless weight 1 of each predicts clean samples out-of-fold
# better by this many standard errors. Error of T on the design half of examples/benchmarks/zoo (two seeds), where noise
# often depends on the features: 0.154 with equal totals, 0.223 at weight 1, 0.156 by this rule; in large problems with
# one T (seeds 0 to 2 of examples/paper/many_seeds.py): 0.085, 0.031, 0.058, and 0.044 with the largest weight
_LEAST_GAIN = 1.0
# If one T holds, both weights give about the same T: they differ by at most 0.15 in the zoo's design half and in large
# problems with one T. They differ by 0.3 to 0.9 in networks on 10,000 images with human labels (seeds 0 to 2), and in
# 21 generated problems with an uncertain classifier and noise that depends on the features (as in
# tests/transition/test_noise_model.py). There, T at weight 1 is nearly symmetric (error 0.36 and 0.49), equal totals
# overfit few clean samples (0.23 and 0.46), and a weight between them is the most robust (0.24 and 0.40). With fewer
# clean samples than the map has parameters, T is better too, but a classifier trained through it is not (1,900 noisy
# and 100 clean samples of ten classes, 12 seeds: error of T 0.33 instead of 0.37, accuracy 1.2 +- 0.4 points lower)
_LARGEST_DIFFERENCE, _POWER_IF_DIFFERENT = 0.25, 0.75
#: largest weight of a clean sample, about the largest n / n_meta in the zoo. Without this limit, networks overfit few
#: clean samples (generated data of examples/benchmarks/em_transition.py, seeds 0 to 2: accuracy 0.741 instead of 0.749)
LARGEST_WEIGHT = 20.0
# folds of the clean samples, and iterations of each fit without a fold, which start from the fit to all of them
_N_FOLDS, _N_ITER = 5, 40
# power in the fit of feature-dependent noise: at 3/4 and 1 it is detected in data without noise
_POWER_OF_FEATURES = 0.5
# log-evidence for wrong true labels against one T (Kass and Raftery, 1995); the evidence against feature-dependent
# noise must be positive
_STRONG_EVIDENCE = 3.0


def shrunk_gold_start(held_out: HeldOut) -> NDArray[np.float64]:
    """Initial T: mean probabilities of the clean samples of each class, shrunk."""
    c, (_, proba, proba_meta) = len(held_out.pairs), held_out.candidates[0]
    if not len(held_out.clean):
        return np.full((c, c), 1 / c)
    missing = anchor_transition_matrix(proba) if (held_out.n_clean == 0).any() else None
    T = gold_transition_matrix(proba_meta, held_out.clean, missing=missing)
    return shrunk_to_symmetric(T, proba_meta, held_out.clean)


class TransitionFit:
    """Estimate T from the candidate with the highest evidence, the likelihood of all labels with T integrated out.

    This assumes that one T holds for all samples. If verified pairs contradict it, T is estimated from a posterior
    fitted to the pairs. Without pairs, T is estimated under feature-dependent noise if this has a higher likelihood.

    Parameters
    ----------
    held_out : HeldOut
    start : ndarray of shape (c, c)
        Initial T.
    prior : "symmetric", array-like or None
        As in `em_transition_matrix`.
    stratified : bool
        Whether the clean samples are stratified by class.
    show : callable, default=iter
        Iterates over the candidates, with a progress bar.
    rectify : bool, default=True
        Correct T by the residuals of pairs that contradict one T.

    Attributes
    ----------
    offset : ndarray of shape (c,)
        Log ratio of the class priors of clean and noisy samples.
    log_evidence : ndarray of float
        Log-evidence of each candidate.
    best : Candidate
        Candidate with the highest evidence.
    one_T : EMResult
        Maximum-likelihood T that holds for all samples.
    revised : PairEstimate, FeatureDependentEstimate or None
        The estimate that replaces it.
    wrong_true_labels : ndarray of int
        Positions of clean samples whose true label is probably wrong; empty unless this best explains the pairs.
    pairs : ndarray of shape (c, c)
        Counts of verified pairs, scaled to the number of samples with posteriors.
    weights : ndarray of shape (n_meta,)
        Weights, with mean 1, that make the clean samples representative of all samples.
    transition_matrix, counts : ndarray of shape (c, c)
        T, and expected numbers of samples of each true and noisy label.
    channel : Channel
        Model of the noisy label of a sample.
    calibration : Calibration or None
        Map that calibrates the posteriors; None without clean samples.
    """

    def __init__(
        self,
        held_out: HeldOut,
        start: NDArray,
        prior: Prior,
        *,
        stratified: bool,
        show: Any = iter,
        rectify: bool = True,
    ) -> None:
        self.held_out, self.start, self.prior = held_out, start, prior
        self.offset = self._class_offset() if stratified and len(held_out.clean) else np.zeros(len(start))
        self.weights = held_out.weights_of_clean(self.offset)
        # without folds, as few as the noisy samples with posteriors
        self.pairs = held_out.pairs * (len(held_out.noisy) / held_out.n_noisy)
        self.log_evidence, self.best, best = self._most_likely(show)
        self.one_T = self._more_predictive(best)
        self.revised: PairEstimate | FeatureDependentEstimate | None = None
        self.wrong_true_labels: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        if held_out.pairs.any():
            self.revised = self._by_pairs()
        elif len(held_out.clean) and len(start) <= MOST_CLASSES_WITH_MATRIX:
            self.revised = self._by_features()
        estimate = self.one_T if self.revised is None else self.revised
        self.transition_matrix, self.counts = estimate.transition_matrix, estimate.counts
        self.channel: Channel = OneT(self.transition_matrix)
        self.calibration = self.one_T.calibration
        if isinstance(self.revised, FeatureDependentEstimate):
            self.calibration = self.revised.calibration
        if isinstance(self.revised, PairEstimate):
            self.channel = self.revised.channel
            if rectify and self.bars is not None:
                self.transition_matrix = self.bars.transition_matrix
                self.counts = self.counts.sum(axis=1, keepdims=True) * self.transition_matrix

    @cached_property
    def proba(self) -> NDArray[np.float64]:
        """Calibrated posteriors of the noisy samples."""
        return self.calibrated(self.best.proba)

    def calibrated(self, proba: NDArray) -> NDArray:
        """Calibrate probabilities; without clean samples, return them unchanged."""
        return proba if self.calibration is None else self.calibration(proba)

    # ---- one T
    def _weight(self) -> float:
        """Mean weight of clean samples in the calibration, for equal totals of clean and noisy ones, up to a limit.

        With pairs, every label counts once: then a draw by features and noisy labels changes nothing (Rubin, "Inference
        and Missing Data", 1976).
        """
        of = self.held_out
        if not len(of.clean) or of.pairs.any():
            return 1.0
        return min(len(of.noisy) / len(of.clean), LARGEST_WEIGHT)

    def _more_predictive(self, balanced: FirstMaximum) -> EMResult:
        """T at this weight of a clean sample, or at weight 1 if this predicts clean samples out-of-fold better.

        If one T holds, weight 1 is the most precise. If the two T differ, one T does not hold: use a weight between,
        unless there are few clean samples.
        """
        T, n = balanced.finish(), len(self.held_out.clean)
        if self._weight() == 1 or n < _N_FOLDS or len(self.start) > MOST_CLASSES_WITH_MATRIX:
            return T
        likely, T_likely = self.at_weight_one
        gain = self._out_of_fold_scores(likely, T_likely) - self._out_of_fold_scores(balanced, T)
        if gain.sum() <= _LEAST_GAIN * gain.std() * n**0.5:
            return T
        few = n <= len(self.start) ** 2  # fewer than the map's parameters
        if few or transition_error(T.transition_matrix, T_likely.transition_matrix) <= _LARGEST_DIFFERENCE:
            return T_likely
        return self._first_maximum(self.best, self._weight() ** _POWER_IF_DIFFERENT).finish()

    def _out_of_fold_scores(self, of: FirstMaximum, found: EMResult) -> NDArray[np.float64]:
        """Log-likelihood of each clean sample by a calibration fitted without its fold, starting from this result."""
        proba, y, scores = self.best.proba_meta.astype(np.float64), self.held_out.clean, np.empty(len(self.weights))
        pseudo_counts = np.zeros_like(self.pairs) if found.prior is None else found.strength * found.prior
        for out in folds_of(np.argsort(proba[np.arange(len(y)), y]), _N_FOLDS):  # whatever the order of the samples
            assert isinstance(of.likelihood, CalibratedLikelihood)  # there are clean samples
            maximum = of.likelihood.without(out).maximise(found.transition_matrix, pseudo_counts, _N_ITER, 0.0)
            scores[out] = log_scores(maximum.calibration, proba[out], y[out], self.offset)
        return scores

    def _first_maximum(self, candidate: Candidate, weight: float) -> FirstMaximum:
        """Maximise the likelihood with the posteriors of a candidate, at this weight of a clean sample."""
        of = self.held_out
        return first_maximum(
            candidate.proba,
            of.noisy,
            candidate.proba_meta,
            of.clean,
            self.start,
            self.prior,
            self.pairs,
            weight * (1.0 if self.offset.any() or of.pairs.any() else self.weights),
            self.offset,
        )

    @cached_property
    def at_weight_one(self) -> tuple[FirstMaximum, EMResult]:
        """Maximum at weight 1 of each clean sample, and its T."""
        found = self._first_maximum(self.best, 1.0)
        return found, found.finish()

    def _most_likely(self, show: Any) -> tuple[NDArray[np.float64], Candidate, FirstMaximum]:
        """Log-evidence of all candidates, the best candidate, and its maximum."""
        best, chosen, log_evidence = None, self.held_out.candidates[0], []
        for candidate in show(self.held_out.candidates):
            found = self._first_maximum(candidate, self._weight())
            log_evidence.append(found.log_evidence)
            if best is None or found.log_evidence > best.log_evidence:
                best, chosen = found, candidate  # keep copies of the posteriors of the best only
        assert best is not None  # there is at least one candidate
        return np.array(log_evidence), chosen, best

    def _class_offset(self) -> NDArray[np.float64]:
        """Log ratio of the class priors of clean and noisy samples."""
        of, (proba, proba_meta) = self.held_out, (p.astype(np.float64) for p in self.held_out.candidates[-1][1:])
        return class_offset(CalibratedLikelihood(proba, of.noisy, proba_meta, of.clean, of.pairs), self.start)

    # ---- if one T does not hold for all samples
    def _by_pairs(self) -> PairEstimate | None:
        """Estimate T from verified pairs if they contradict one T, unless wrong true labels explain this."""
        calibration, of, T = self.one_T.calibration, self.held_out, self.one_T.transition_matrix
        assert calibration is not None  # there are clean samples
        known = of.noisy_of_clean >= 0
        pairs = calibration(self.best.proba_meta[known]), of.clean[known], of.noisy_of_clean[known]
        found = fit_pair_posterior(calibration(self.best.proba), of.noisy, T, pairs, self.pairs, self.offset)
        evidence, wrong = wrong_true_labels(*pairs, T, self.offset)
        if evidence > max(_STRONG_EVIDENCE, (found.log_evidence if found else 0.0) + POSITIVE_EVIDENCE):
            self.wrong_true_labels = np.flatnonzero(known)[wrong > 0.5]
        return None if len(self.wrong_true_labels) else found

    def _by_features(self) -> FeatureDependentEstimate | None:
        """Estimate T under feature-dependent noise, if the labels contradict one T."""
        weight = self._weight() ** _POWER_OF_FEATURES
        return fit_feature_dependent_noise(
            self.best.proba.astype(np.float64),
            self.held_out.noisy,
            self.best.proba_meta.astype(np.float64),
            self.held_out.clean,
            one_T=self._first_maximum(self.best, weight).finish(),
            init=self.start,
            prior=self.prior,
            meta_weight=weight * (1.0 if self.offset.any() else self.weights),
            meta_offset=self.offset,
        )

    # ---- error bars
    @cached_property
    def bars(self) -> TransitionUncertainty | None:
        """Error bars of T; None with too many classes.

        Without pairs they cover the bars of T at weight 1 of a clean sample: a difference contradicts one T.
        """
        if len(self.start) > MOST_CLASSES:
            return None
        own, T = self._bars(self.one_T), self.transition_matrix
        if isinstance(self.revised, PairEstimate):
            bars = TransitionUncertainty(T, T, own.std, own.std)
            # pairs that are stratified by true class do not represent the samples with their given label
            return bars if self.offset.any() else self._rectified(bars)
        if self.held_out.pairs.any() or not len(self.held_out.clean):
            return own
        bars = own if self.one_T is self.at_weight_one[1] else own.merge(self._bars(self.at_weight_one[1]))
        return bars if self.revised is None else bars.around(T)

    def _rectified(self, model: TransitionUncertainty) -> TransitionUncertainty:
        """Correct T by the residuals of the pairs."""
        of, T = self.held_out, self.one_T.transition_matrix
        known = of.noisy_of_clean >= 0
        proba, y, noisy = self.calibrated(self.best.proba_meta[known]), of.clean[known], of.noisy_of_clean[known]
        of_pairs = self.channel.posterior(proba, noisy)
        for out in folds_of(np.argsort(proba[np.arange(len(y)), y]), _N_FOLDS):
            channel, _ = fit_channel(proba[~out], y[~out], noisy[~out], T)
            of_pairs[out] = channel.posterior(proba[out], noisy[out])
        of_noisy = self.channel.posterior(self.proba, of.noisy)
        sizes = np.bincount(of.noisy, minlength=len(T)) + self.pairs.sum(axis=0)
        # within a given label, weights of its draw are equal
        weights = np.ones(len(y)) if of.drawn is None else self.weights[known]
        return rectified(model, of_noisy, of.noisy, of_pairs, y, noisy, weights, sizes)

    def _bars(self, found: EMResult) -> TransitionUncertainty:
        proba, meta = self.best.proba, None
        if found.calibration is not None:
            proba = found.calibration(proba)
            meta = shift_class_prior(found.calibration(self.best.proba_meta), self.offset)
        T, of = found.transition_matrix, self.held_out
        return transition_uncertainty(proba, of.noisy, T, proba_meta=meta, counts=self.pairs)


def cross_fitted(
    held_out: HeldOut, start: NDArray, prior: Prior, *, stratified: bool, n_folds: int = _N_FOLDS
) -> Iterator[tuple[NDArray[np.intp], TransitionFit]]:
    """Leave out each fold of the clean samples in turn; yield its positions and the fit to all other samples.

    A calibration predicts the clean samples it was fitted to too well. Folds are random: with fixed class shares, a
    class would be rarer in a fit if it is more frequent in the fold, and predicted too seldom.
    """
    for out in folds_of(np.random.default_rng(0).permutation(len(held_out.clean)), n_folds):
        yield (
            np.flatnonzero(out),
            TransitionFit(held_out.without(out), start, prior, stratified=stratified, rectify=False),
        )


def folds_of(order: NDArray[np.intp], n_folds: int) -> Iterator[NDArray[np.bool_]]:
    """Masks of folds, each of every n-th sample in this order, unless a fold has all samples or none."""
    for k in range(n_folds):
        out = np.zeros(len(order), dtype=bool)
        out[order[k::n_folds]] = True
        if out.any() and not out.all():
            yield out
