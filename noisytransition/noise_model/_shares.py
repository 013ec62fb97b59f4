"""Estimate class shares and accuracies with intervals, by prediction-powered inference on the posterior."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels._arrays import as_array, shortened
from ..labels._columns import read_names
from ..labels._draw import effective_size, of_samples, sums_by_group, variance_of_mean
from ..likelihood._fit import NoiseFit, folds_of
from ..transition._estimation import TINY, jeffreys_interval, normalise_rows
from ._samples import LabelledSamples

# Folds of verified samples for out-of-fold predictions
_FOLDS = 10
# Noisy samples for each verified one in the fits without a fold: with more, predictions hardly improve, since the
# errors of few verified samples dominate; intervals hold for any predictions
_NOISY_PER_VERIFIED = 100
# Strata with fewer verified samples are merged
_LEAST_IN_STRATUM = 5
# For another batch: maximum number of steps and tolerance of the maximisation; rounds of the correction
_MAX_STEPS = 1000
_SHARE_TOLERANCE = 1e-7
_ROUNDS = 5
# Half an event that no prediction predicts, as in Jeffreys' prior of a proportion, in the stratum where it counts most:
# of few rare events, none may be among the verified samples
_UNSEEN = 0.5
# A bound is 0 or 1 if fewer cases are expected there (Brown, Cai, DasGupta, "Interval Estimation for a Binomial
# Proportion", 2001)
_LEAST_CASES = 0.5
# A class with more expected verified samples is hardly missing by chance (probability below exp(-7))
_MOST_EXPECTED = 7.0
# Masks of noisy and of verified samples
_Masks = tuple[NDArray[np.bool_], NDArray[np.bool_]]
# Fewest degrees of freedom: Student's t has no variance below 3
_LEAST_DF = 5


class Interval(NamedTuple):
    """Estimate with lower and upper bound."""

    estimate: float
    lower: float
    upper: float


class Estimate(NamedTuple):
    """Estimated shares, and the numbers of verified samples with the same precision."""

    share: NDArray[np.float64]
    n_effective: NDArray[np.float64]

    def interval(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute bounds with Jeffreys' prior. They are within [0, 1] and asymmetric for small shares."""
        lower, upper = jeffreys_interval(self.share, self.n_effective, level)
        few = self.share * self.n_effective < _LEAST_CASES
        few_others = (1 - self.share) * self.n_effective < _LEAST_CASES
        lower = np.where(few, 0, np.minimum(lower, self.share))
        return lower, np.where(few_others, 1, np.maximum(upper, self.share))

    def one_interval(self, level: float) -> Interval:
        """Compute the interval of the first share."""
        lower, upper = self.interval(level)
        return Interval(float(self.share[0]), float(lower[0]), float(upper[0]))


def prediction_powered(
    predicted: NDArray,
    of_verified: NDArray,
    true: NDArray,
    strata: Sequence[tuple[NDArray, NDArray]] = (),
    weights: NDArray | None = None,
    groups: tuple[NDArray, NDArray] | None = None,
    design: tuple[NDArray, NDArray] | None = None,
) -> Estimate:
    """Estimate the mean of a population from predictions of all samples and a verified random subset.

    The estimate is ``mean(lambda f) + mean over verified (y - lambda f)``, with the lambda in [0, 1] of the smallest
    variance; lambda = 0 is the mean of the verified samples.

    `predicted` of shape (n, k) has predictions f of k quantities, such as class probabilities, for samples that are not
    verified; `of_verified` and `true` of shape (m, k) have out-of-fold predictions and true values of verified samples.
    These are drawn from `strata`, pairs of masks of shapes (n,) and (m,), by default one; or with probabilities whose
    inverses are `weights` of shape (m,), up to a factor. `groups` of shapes (n,) and (m,) are those of dependent
    samples, which are drawn group by group, and `design` has the weights of samples in the population; with one of
    them, there is one stratum. See Angelopoulos et al., "Prediction-Powered Inference", 2023; Angelopoulos, Duchi,
    Zrnic, "PPI++", 2023 (lambda); Zrnic, Candès, "Active Statistical Inference", 2024 (weights).
    """
    parts = _stratified(predicted, of_verified, true, strata, weights, groups, design)
    m = sum(len(sums_by_group(part.true, part.groups)) for part in parts)  # draws
    mean, variance, alone = _powered_mean(parts)
    unseen = _UNSEEN * max(part.share / effective_size(part.weights, part.groups) for part in parts) ** 2
    alone = alone + unseen
    variance = (variance + unseen) * _student(m - len(parts))
    base: Any = m
    if len(parts) > 1 or np.ptp(parts[0].weights) or groups is not None:  # random samples with the same variance
        counted = sum(part.share * part.mean(np.zeros(())) for part in parts)
        smooth = (m * counted + _UNSEEN) / (m + 2 * _UNSEEN)
        base = smooth * (1 - smooth) / alone
    n_effective = np.minimum(base * np.maximum(alone / variance, 1), len(predicted) + len(true))
    return Estimate(np.clip(mean, 0, 1), n_effective)


class _Stratum(NamedTuple):
    """A stratum, and its share of the population."""

    share: float
    predicted: NDArray  # of all its samples; other arrays of its verified samples
    of_verified: NDArray
    true: NDArray
    weights: NDArray
    groups: NDArray | None  # of dependent verified samples
    verified: float  # share of its samples, or groups, that are verified
    weights_of_all: NDArray | None

    def variance(self, power: NDArray | float) -> NDArray[np.float64]:
        """Variance of the prediction-powered mean of the stratum, with ``lambda = power``.

        That of the corrections falls with the share of verified samples; that of the population's own mean remains
        (two-phase sampling: Särndal, Swensson, Wretman, "Model Assisted Survey Sampling", 1992, chapter 9).
        """
        alone = variance_of_mean(self.true, self.weights, self.groups)
        corrections = variance_of_mean(self.true - power * self.of_verified, self.weights, self.groups)
        return (1 - self.verified) * corrections + self.verified * alone

    def mean(self, power: NDArray) -> NDArray[np.float64]:
        """Prediction-powered mean of the stratum, with ``lambda = power``."""
        corrections = self.true - power * self.of_verified
        of_all = np.average(power * self.predicted, axis=0, weights=self.weights_of_all)
        return of_all + np.average(corrections, axis=0, weights=self.weights)


def _powered_mean(parts: list[_Stratum]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Prediction-powered mean of any values, its variance, and the variance of the mean of verified samples alone."""

    def variance(power: NDArray | float) -> Any:
        return sum(part.share**2 * part.variance(power) for part in parts)

    # a parabola in lambda
    alone = variance(0.0)
    whole = variance(1.0)
    curve = 2 * (alone + whole - 2 * variance(0.5))
    slope = whole - alone - curve
    power = np.clip(np.divide(-slope, 2 * curve, out=np.zeros_like(curve), where=curve > 0), 0, 1)
    means = [part.mean(power) for part in parts]
    shares = np.array([[part.share] for part in parts])
    mean = (shares * means).sum(axis=0)
    between = (shares * (means - mean) ** 2).sum(axis=0) / sum(len(part.predicted) for part in parts)
    return mean, variance(power) + between, alone + between


def _stratified(
    predicted: NDArray, of_verified: NDArray, true: NDArray, strata: Any, weights: Any, groups: Any, design: Any
) -> list[_Stratum]:
    """Split the population of `prediction_powered` into its strata, by default one."""
    weights = np.ones(len(true)) if weights is None else weights
    weights_of_all = None
    if design is not None:
        weights = weights * design[1]
        weights_of_all = np.concatenate(design)
    parts = []
    for j, k in strata or [(slice(None), slice(None))]:
        part = np.concatenate([predicted[j], of_verified[k]])
        share = len(part) / (len(predicted) + len(true))
        verified = len(true[k]) / len(part)
        names = None
        if groups is not None:
            names = groups[1]
            verified = len(np.unique(names)) / len(np.unique(np.concatenate(groups)))
        parts.append(_Stratum(share, part, of_verified[k], true[k], weights[k], names, verified, weights_of_all))
    return parts


def _student(df: float) -> float:
    """Variance of Student's t with these degrees of freedom, which corrects an estimated variance."""
    return max(df, _LEAST_DF) / (max(df, _LEAST_DF) - 2)


def strata_of_labels(noisy: NDArray[np.intp], of_verified: NDArray[np.intp], n_labels: int) -> list:
    """Group samples by given label; labels with few verified samples, and missing labels, form one stratum.

    Return no strata if this one has samples but no verified ones.
    """
    few = np.bincount(of_verified[of_verified >= 0], minlength=n_labels) < _LEAST_IN_STRATUM
    noisy = np.where((noisy < 0) | few[noisy], n_labels, noisy)
    of_verified = np.where((of_verified < 0) | few[of_verified], n_labels, of_verified)
    used = np.unique(of_verified)
    return [(noisy == j, of_verified == j) for j in used] if np.isin(noisy, used).all() else []


def batch_shares(proba: NDArray, prior: NDArray) -> NDArray[np.float64]:
    """Estimate class shares of a batch by maximum likelihood (Saerens, Latinne, Decaestecker, 2002)."""
    ratio = proba / prior
    share = prior
    for _ in range(_MAX_STEPS):
        last = share
        share = normalise_rows(ratio * share, proba).mean(axis=0)
        if np.abs(share - last).max() < _SHARE_TOLERANCE:
            break
    return share


def predicted_classes(model: Any) -> NDArray[np.intp]:
    """Out-of-fold predicted class of each sample of the fit that is not verified."""
    if model._predicted is not None:
        return model._predicted[0]
    proba = model.out_of_fold_.candidates[0].proba[:, : len(model.classes_)]
    if model.calibration_ is not None:  # else they are those of the true label
        proba = model.calibration_(proba)
    return proba.argmax(axis=1)


class Population:
    """Samples of a fitted `LabelNoiseModel`, of which the verified samples are a random subset."""

    def __init__(self, model: Any) -> None:
        self.model, self.c, self.d = model, len(model.classes_), len(model.labels_)
        self.of: Any = getattr(model, "out_of_fold_", None)
        if self.of is None or len(self.of.clean) < 2:
            raise ValueError("class shares and accuracies require samples in fit, at least two of them verified.")
        if model.verified_sampling == "stratified":
            raise ValueError("verified samples are stratified by class, which biases shares. Draw them at random.")
        self.truth = np.eye(self.c)[self.of.clean]
        self.everywhere: _Masks = np.ones(len(self.of.noisy), dtype=bool), np.ones(len(self.truth), dtype=bool)
        # not the calibrated probabilities: their calibration has learned that these classes do not occur
        expected = self.of.candidates[0].proba[:, : self.c].mean(axis=0) * len(self.truth)
        if len(missing := model.classes_[(self.truth.sum(axis=0) == 0) & (expected > _MOST_EXPECTED)]):
            fact = f"No verified sample is of class {shortened(missing)}, although several were expected"
            warnings.warn(f"{fact}. Draw samples to verify at random, else shares are biased.", stacklevel=3)
        if (self.of.noisy < 0).any() and (self.of.noisy_of_clean >= 0).all():
            fact = f"{np.mean(self.of.noisy < 0):.0%} of the samples have no label, and none of these is verified"
            warnings.warn(f"{fact}: shares assume that they are like the others. Verify some of them.", stacklevel=3)

    def subgroups(self, by: Any) -> Iterator[tuple[Any, _Masks]]:
        """Yield the name of each subgroup of the samples of X, and its samples."""
        rows, of_clean = self.of.rows, self.of.rows_of_clean
        n = len(as_array(by, "by"))
        if n <= (last := max(rows.max(), of_clean.max())):
            raise ValueError(f"by has {n} values, but the fit has samples at positions up to {last}. Pass one each.")
        names, codes = read_names(by, n, "by")
        for k, name in enumerate(names.tolist()):
            is_inside = codes == k
            yield name, (is_inside[rows], is_inside[of_clean] & (of_clean >= 0))

    def n_of_class(self, used: _Masks) -> NDArray[np.intp]:
        """Number of verified samples of each class among these samples."""
        return self.truth[used[1]].sum(axis=0).astype(np.intp)

    def class_shares(self, used: _Masks) -> Estimate:
        """Estimate the shares of the true classes among these samples, from predictions by fits to all."""
        (predicted, verified), _ = self._cross_fitted
        return self._powered(predicted, verified, self.truth, used)

    def accuracy(self, of_labels: bool, used: _Masks) -> Estimate:
        """Estimate the share of these samples whose noisy label, or else most probable class, is the true class."""
        if of_labels:
            return self.accuracy_of(self.of.noisy, self.of.noisy_of_clean, (used[0], used[1] & self._has_label()))
        predicted = self.model._predicted
        if predicted is None:
            _, (_, proba_verified) = self._cross_fitted  # the model's calibration has seen the true labels of these
            predicted = predicted_classes(self.model), proba_verified.argmax(axis=1)
        return self.accuracy_of(predicted[0], predicted[1], used)

    def _has_label(self) -> NDArray[np.bool_]:
        """Mask of the verified samples with a noisy label."""
        has_label = self.of.noisy_of_clean >= 0
        if not has_label.any():
            raise ValueError("no verified sample has a noisy label. Keep the noisy labels of verified samples.")
        return has_label

    def accuracy_of(self, of_noisy: NDArray[np.intp], of_verified: NDArray[np.intp], used: _Masks) -> Estimate:
        """Estimate the share of correct labels among these samples, of those that have one (not -1)."""
        labels = of_noisy, of_verified
        posteriors, _ = self._cross_fitted
        padded = [np.pad(p, ((0, 0), (0, self.d - self.c))) for p in posteriors]
        predicted, verified = (np.take_along_axis(p, y[:, None], axis=1) for p, y in zip(padded, labels, strict=True))
        right = (of_verified == self.of.clean)[:, None].astype(float)
        return self._powered(predicted, verified, right, (used[0] & (of_noisy >= 0), used[1] & (of_verified >= 0)))

    def accuracy_by_source(self) -> Estimate:
        """Estimate the share of correct labels of each source, from its own verified labels."""
        codes = [self.of.sources.at(rows).T for rows in (self.of.rows, self.of.rows_of_clean)]
        found = [self.accuracy_of(noisy, verified, self.everywhere) for noisy, verified in zip(*codes, strict=True)]
        return Estimate(*np.concatenate([[of.share, of.n_effective] for of in found], axis=1))

    def shares_of_batch(self, proba: ArrayLike, y_noisy: ArrayLike | None) -> Estimate:
        """Estimate class shares of another batch.

        The shares solve a linear system: mean scores of the classes, weighted by the shares, equal the mean score of
        the batch. Scores are posteriors at the most likely shares (Lipton, Wang, Smola, "Detecting and Correcting for
        Label Shift with Black Box Predictors", 2018). Class means are prediction-powered; variances use the delta
        method.
        """
        batch, used = self._compared(proba, y_noisy)
        if len(missing := self.model.classes_[self.n_of_class(used) == 0]):
            raise ValueError(f"no sample of {missing.tolist()} is verified. A batch requires some of each class.")
        posteriors, probas = ([p[0][used[0]], *p[1:]] for p in self._predictions(batch))
        predicted = probas if y_noisy is None else posteriors
        prior = normalise_rows(predicted[0].mean(axis=0, keepdims=True) + TINY)[0]
        share = batch_shares(predicted[2], prior)
        scores = [normalise_rows(p * (share / prior), p) for p in predicted]
        by_class = normalise_rows(posteriors[0].T @ scores[0] + TINY)
        solve = np.linalg.pinv(by_class)
        solved = scores[2] @ solve
        weights = None if self.of.weights is None else self.of.weights[0][used[0]]
        of_fit = np.average(posteriors[0], axis=0, weights=weights)
        for _ in range(_ROUNDS):
            ratio = share / (of_fit + TINY)  # how much more often each class is in the batch
            bias, variance = self._bias(posteriors, scores, ratio, by_class, solve, used)
            share = normalise_rows(np.maximum(solved.mean(axis=0) - bias, 0)[None], share[None])[0]
        n = len(solved)
        variance = variance + variance_of_mean(solved, np.ones(n))
        inside = np.clip(share, 1 / (n + 2), 1 - 1 / (n + 2))
        return Estimate(share, inside * (1 - inside) / np.maximum(variance, TINY))

    def _compared(self, proba: ArrayLike, y_noisy: ArrayLike | None) -> tuple[LabelledSamples, _Masks]:
        """A batch, and the samples of the fit that it is compared with: labelled ones, if its labels are known."""
        batch = self.model._batch(proba, y_noisy)
        if y_noisy is None:
            return batch, self.everywhere
        if n_missing := int((batch.noisy < 0).sum()):
            raise ValueError(f"y_noisy is missing for {n_missing} samples of the batch. Pass all labels, or none.")
        return batch, (self.of.noisy >= 0, self._has_label())

    def _bias(
        self, posteriors: list, scores: list, ratio: NDArray, by_class: NDArray, solve: NDArray, used: _Masks
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and variance of errors in the shares of a batch that are due to errors of the class means `by_class`."""

        def errors(y: NDArray, score: NDArray) -> NDArray:
            return ((y @ ratio)[:, None] * score - (y * ratio) @ by_class) @ solve

        of_verified = errors(posteriors[1], scores[1])[used[1]]
        true = errors(self.truth, scores[1])[used[1]]
        predicted = errors(posteriors[0], scores[0])
        mean, variance, _ = _powered_mean(_stratified(predicted, of_verified, true, *self._design(used)))
        return mean, variance * _student(effective_size(self.truth[used[1]] @ ratio) - 1)

    @property
    def _cross_fitted(self) -> tuple[list[NDArray], list[NDArray]]:
        """Predictions without a batch, which the model keeps: ten fits of the noise."""
        if self.model._cross_fitted is None:
            self.model._cross_fitted = self._predictions()
        return self.model._cross_fitted

    def _predictions(self, *batch: LabelledSamples) -> tuple[list[NDArray], list[NDArray]]:
        """Cross-fitted P(true | x, label) and P(true | x) of noisy samples, verified samples and a batch.

        Predictions of verified samples are out-of-fold; all others are means over the folds.
        """
        of = self.of
        _, proba, proba_clean = of.candidates[0]
        parts = [
            LabelledSamples(p, noisy, np.full(len(noisy), -1), self.model._likelihood(rows))
            for p, noisy, rows in ((proba, of.noisy, of.rows), (proba_clean, of.noisy_of_clean, of.rows_of_clean))
        ]
        parts += batch
        calibrated = [np.zeros((len(part.noisy), self.c)) for part in parts]
        posteriors = [np.zeros((len(part.noisy), self.c)) for part in parts]
        fits = list(self._fits())
        for out, fit in fits:
            for k, part in enumerate(parts):
                rows, n = (out, 1) if k == 1 else (slice(None), len(fits))
                part = LabelledSamples._make(None if a is None else a[rows] for a in part)
                part = part._replace(proba=fit.calibrated(part.proba)[:, : self.c])
                calibrated[k][rows] += part.proba / n
                posteriors[k][rows] += part.posterior(fit.channel.of_classes(self.c)) / n
        return posteriors, calibrated

    def _fits(self) -> Iterator[tuple[NDArray[np.bool_], NoiseFit]]:
        """Yield the verified samples of each fold, and a fit of the noise without them."""
        of = self.of
        T = np.vstack([self.model.transition_matrix_, np.eye(self.d)[self.c :]])
        # random folds: with fixed class shares, a class that is more frequent in a fold would be predicted too seldom
        rng = np.random.default_rng(0)
        order = rng.permutation(len(of.clean))
        some = rng.permutation(len(of.noisy)) < _NOISY_PER_VERIFIED * len(of.clean)
        for out in folds_of(order, _FOLDS, None if of.groups is None else of.groups[1]):
            yield out, self.model._fit_noise(of.select(some, ~out), self.model.classes_, T)

    def _design(self, used: _Masks) -> tuple[Any, NDArray | None, Any, Any]:
        """Strata of the given labels if verified samples can have been drawn by these; weights, groups, and weights.

        The first weights are those of the draw, the others those of the population, as in `prediction_powered`.
        """
        of = self.of
        noisy, clean = used
        groups = of_samples(of.groups, noisy, clean)
        design = of_samples(of.weights, noisy, clean)
        if of.drawn is not None:
            return (), 1 / of.drawn[clean], groups, design
        strata = strata_of_labels(of.noisy[noisy], of.noisy_of_clean[clean], self.d)
        if groups is not None or design is not None or not strata:
            return (), of.weights_of_clean(np.zeros(self.d))[clean], groups, design
        return strata, None, None, None

    def _powered(self, predicted: NDArray, verified: NDArray, true: NDArray, used: _Masks) -> Estimate:
        """Estimate means of the samples used; without verified samples, predicted ones of no precision."""
        noisy, clean = used
        if not clean.any():
            return Estimate(predicted[noisy].mean(axis=0), np.zeros(predicted.shape[1]))
        return prediction_powered(predicted[noisy], verified[clean], true[clean], *self._design(used))
