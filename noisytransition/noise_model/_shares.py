"""Estimate class shares and accuracies with intervals, by prediction-powered inference on the posterior."""

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels._encode import shortened
from ..likelihood._fit import cross_fitted
from ..likelihood._shrinkage import with_other_labels
from ..transition._estimation import TINY, jeffreys_interval, normalise_rows
from ._samples import LabelledSamples

# Folds of verified samples for out-of-fold predictions
_FOLDS = 10
# Strata with fewer verified samples are merged
_LEAST_IN_STRATUM = 5
# For another batch: maximum number of steps and tolerance of the maximisation; rounds of the correction
_MAX_STEPS, _TOLERANCE, _ROUNDS = 1000, 1e-7, 5
# Variances below this are rounding errors
_NO_VARIANCE = 1e-12
# Weight of the variance expected by the predictions, if it exceeds the variance of the verified samples
_PSEUDO_SAMPLES = 20.0
# A bound is 0 or 1 if fewer cases are expected there (Brown, Cai, DasGupta, "Interval Estimation for a Binomial
# Proportion", 2001)
_LEAST_CASES = 0.5
# A class with more expected verified samples is hardly missing by chance (probability below exp(-7))
_MOST_EXPECTED = 7.0
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
        few, few_others = (of * self.n_effective < _LEAST_CASES for of in (self.share, 1 - self.share))
        lower = np.where(few, 0, np.minimum(lower, self.share))
        return lower, np.where(few_others, 1, np.maximum(upper, self.share))


def prediction_powered(
    predicted: NDArray,
    of_verified: NDArray,
    true: NDArray,
    strata: Sequence[tuple[NDArray, NDArray]] = (),
    weights: NDArray | None = None,
) -> Estimate:
    """Estimate the mean of a population from predictions of all samples and a verified random subset.

    The estimate is ``mean(lambda f) + mean over verified (y - lambda f)``, with the lambda in [0, 1] of the smallest
    variance; lambda = 0 is the mean of the verified samples.

    `predicted` of shape (n, k) has predictions f of k quantities, such as class probabilities, for samples that are not
    verified; `of_verified` and `true` of shape (m, k) have out-of-fold predictions and true values of verified samples.
    These are drawn from `strata`, pairs of masks of shapes (n,) and (m,), by default one; or with probabilities whose
    inverses are `weights` of shape (m,), up to a factor.

    References
    ----------
    Angelopoulos, Bates, Fannjiang, Jordan, Zrnic, "Prediction-Powered Inference", Science 2023. Angelopoulos, Duchi,
    Zrnic, "PPI++", 2023 (lambda). Zrnic, Candès, "Active Statistical Inference", 2024 (weights).
    """
    n, m = len(predicted) + len(true), len(true)
    parts = _parts(predicted, of_verified, true, strata, weights)
    found = _powered_mean(parts)
    share = np.clip(found.mean, 0, 1)
    # variance if the predictions are the true probabilities
    expected = found.between + sum(
        size**2 * (_variance_of_mean(of_all) + (w / w.sum()) ** 2 @ (f * (1 - f))) for size, of_all, f, _, w in parts
    )
    variance = found.variance + np.maximum(expected - found.variance, 0) * _PSEUDO_SAMPLES / (m + _PSEUDO_SAMPLES)
    variance *= _student(m - len(parts))
    none = found.alone < _NO_VARIANCE
    gain = np.divide(found.alone, variance, out=np.ones_like(share), where=~none & (variance > 0))
    base: Any = m
    if len(parts) > 1 or np.ptp(parts[0][-1]):  # number of random samples with the same variance
        kish = 1 / sum(size**2 * (w**2).sum() / w.sum() ** 2 for size, *_, w in parts)
        at_random = np.clip(share * (1 - share), 1 / (m + 2), None)
        base = np.where(none, kish, at_random / np.where(none, 1, found.alone))
    return Estimate(share, np.minimum(base * np.maximum(gain, 1), n))


class _PoweredMean(NamedTuple):
    """Prediction-powered mean, its variance, the variance of the verified mean, and their part between strata."""

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    alone: NDArray[np.float64]
    between: NDArray[np.float64]


def _powered_mean(parts: list) -> _PoweredMean:
    """Compute the prediction-powered mean of any values."""

    def variance(power: NDArray | float) -> Any:
        return sum(
            size**2 * (power**2 * _variance_of_mean(of_all) + _variance_of_mean(y - power * f, w))
            for size, of_all, f, y, w in parts
        )

    alone, both, whole = variance(0.0), variance(0.5), variance(1.0)  # a parabola in lambda
    curve = 2 * (alone + whole - 2 * both)
    slope = whole - alone - curve
    power = np.clip(np.divide(-slope, 2 * curve, out=np.zeros_like(curve), where=curve > 0), 0, 1)
    means = [
        (power * of_all).mean(axis=0) + np.average(y - power * f, axis=0, weights=w) for _, of_all, f, y, w in parts
    ]
    sizes = np.array([[part[0]] for part in parts])
    mean = (sizes * means).sum(axis=0)
    between = (sizes * (means - mean) ** 2).sum(axis=0) / sum(len(part[1]) for part in parts)
    return _PoweredMean(mean, variance(power) + between, alone + between, between)


def _parts(
    predicted: NDArray, of_verified: NDArray, true: NDArray, strata: Sequence = (), weights: NDArray | None = None
) -> list[tuple[float, NDArray, NDArray, NDArray, NDArray]]:
    """Per stratum: its share, predictions of its samples, predictions, true values and weights of verified samples."""
    strata = strata or [(np.ones(len(predicted), dtype=bool), np.ones(len(true), dtype=bool))]
    w, n = np.ones(len(true)) if weights is None else weights, len(predicted) + len(true)
    parts = [(np.concatenate([predicted[of], of_verified[k]]), of_verified[k], true[k], w[k]) for of, k in strata]
    return [(len(part[0]) / n, *part) for part in parts]


def _student(df: float) -> float:
    """Variance of Student's t with these degrees of freedom, which corrects an estimated variance."""
    return max(df, _LEAST_DF) / (max(df, _LEAST_DF) - 2)


def _variance_of_mean(values: NDArray, weights: NDArray | None = None) -> NDArray[np.float64]:
    """Estimate the variance of a mean, or of a weighted mean by linearisation (Hájek)."""
    n = len(values)
    shares = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    return ((shares[:, None] * (values - shares @ values)) ** 2).sum(axis=0) * n / max(n - 1, 1)


def strata_of_labels(noisy: NDArray[np.intp], of_verified: NDArray[np.intp], n_labels: int) -> list:
    """Group samples by given label; labels with few verified samples, and missing labels, form one stratum."""
    few = np.bincount(of_verified[of_verified >= 0], minlength=n_labels) < _LEAST_IN_STRATUM
    of_noisy, of_verified = (np.where((of < 0) | few[of], n_labels, of) for of in (noisy, of_verified))
    used = np.unique(of_verified)
    if not np.isin(of_noisy, used).all():  # no verified sample has these labels: use the last stratum
        of_noisy = np.where(np.isin(of_noisy, used), of_noisy, used[-1])
    return [(of_noisy == j, of_verified == j) for j in used]


def batch_shares(proba: NDArray, prior: NDArray) -> NDArray[np.float64]:
    """Estimate class shares of a batch by maximum likelihood (Saerens, Latinne, Decaestecker, 2002)."""
    ratio, share = proba / prior, prior
    for _ in range(_MAX_STEPS):
        last, share = share, normalise_rows(ratio * share, proba).mean(axis=0)
        if np.abs(share - last).max() < _TOLERANCE:
            break
    return share


class Population:
    """Samples of a fitted `LabelNoiseModel`, of which the verified samples are a random subset."""

    def __init__(self, model: Any) -> None:
        self.model, self.c, self.d = model, len(model.classes_), len(model.labels_)
        self.of: Any = getattr(model, "held_out_", None)
        if self.of is None or len(self.of.clean) < 2:
            raise ValueError(
                "class shares and accuracies require samples in fit, at least two of them verified. Pass y_verified to "
                "LabelNoiseModel, EMTransitionClassifier or TransitionClassifierCV."
            )
        if model.meta_sampling == "stratified":
            raise ValueError("verified samples are stratified by class, which biases shares. Draw them at random.")
        self.truth = np.eye(self.c)[self.of.clean]
        # not the calibrated probabilities: their calibration has learned that these classes do not occur
        expected = self.of.candidates[0].proba[:, : self.c].mean(axis=0) * len(self.truth)
        if len(missing := model.classes_[(self.truth.sum(axis=0) == 0) & (expected > _MOST_EXPECTED)]):
            warnings.warn(
                f"No verified sample is of class {shortened(missing)}, although several were expected: shares and "
                "accuracies may be biased. Verify samples drawn at random from all samples.",
                stacklevel=3,
            )

    def class_shares(self) -> Estimate:
        """Estimate the shares of the true classes."""
        (predicted, verified), _ = self._own
        return self._powered(predicted, verified, self.truth)

    def accuracy(self, of_labels: bool) -> Estimate:
        """Estimate the share of samples whose noisy label, or else most probable class, is the true class."""
        known = self._known(of_labels)
        given_labels, (_, of_x) = self._own
        noisy, clean = self.of.noisy, self.of.noisy_of_clean
        if not of_labels:
            noisy = self.model.calibrate(self.of.candidates[0].proba[:, : self.c]).argmax(axis=1)
            clean = of_x.argmax(axis=1)  # the model's own calibration has seen their true labels
        padded = [np.pad(p, ((0, 0), (0, self.d - self.c))) for p in given_labels]
        predicted, verified = (p[np.arange(len(p)), k][:, None] for p, k in zip(padded, (noisy, clean), strict=True))
        right = (clean == self.of.clean)[:, None].astype(float)
        return self._powered(predicted, verified, right, known)

    def _known(self, need_labels: bool) -> NDArray[np.bool_]:
        """Mask of the verified samples to use: all, or if noisy labels are required, samples with a noisy label."""
        known = (self.of.noisy_of_clean >= 0) | (not need_labels)
        if not known.any():
            raise ValueError("no verified sample has a noisy label. Keep the noisy labels of verified samples.")
        return known

    def shares_of_batch(self, proba: ArrayLike, y_noisy: Any) -> Estimate:
        """Estimate class shares of another batch.

        The shares solve a linear system: mean scores of the classes, weighted by the shares, equal the mean score of
        the batch. Scores are posteriors at the most likely shares (Lipton, Wang, Smola, "Detecting and Correcting for
        Label Shift with Black Box Predictors", 2018). Class means are prediction-powered; variances use the delta
        method.
        """
        known = self._known(y_noisy is not None)
        if not (counts := self.truth[known].sum(axis=0)).all():
            none = self.model.classes_[counts == 0].tolist()
            raise ValueError(
                f"no sample of {none} is verified. Shares of a batch require verified samples of each class."
            )
        given_labels, scores = self._predictions(self.model._batch(proba, y_noisy))
        predicted, verified, _ = given_labels
        scores = scores if y_noisy is None else given_labels
        prior = normalise_rows(scores[0].mean(axis=0, keepdims=True) + TINY)[0]
        share = batch_shares(scores[2], prior)
        of_noisy, of_clean, of_batch = (normalise_rows(p * (share / prior), p) for p in scores)
        by_class = normalise_rows(predicted.T @ of_noisy + TINY)
        solve = np.linalg.pinv(by_class)
        of_batch = of_batch @ solve
        for _ in range(_ROUNDS):
            ratio = share / (predicted.mean(axis=0) + TINY)  # how much more often each class is in the batch
            weights = self.truth[known] @ ratio

            def errors(y: NDArray, score: NDArray, ratio: NDArray = ratio) -> NDArray:
                return ((y @ ratio)[:, None] * score - (y * ratio) @ by_class) @ solve

            own, true = (errors(y, of_clean)[known] for y in (verified, self.truth))
            found = _powered_mean(_parts(errors(predicted, of_noisy), own, true, *self._strata(known)))
            share = normalise_rows(np.maximum(of_batch.mean(axis=0) - found.mean, 0)[None], share[None])[0]
        df = weights.sum() ** 2 / max((weights**2).sum(), TINY) - 1  # Kish, 1965
        variance = found.variance * _student(df) + _variance_of_mean(of_batch)
        inside = np.clip(share, 1 / (len(of_batch) + 2), 1 - 1 / (len(of_batch) + 2))
        return Estimate(share, inside * (1 - inside) / np.maximum(variance, TINY))

    @cached_property
    def _own(self) -> tuple[list[NDArray], list[NDArray]]:
        return self._predictions()

    def _predictions(self, *batch: LabelledSamples) -> tuple[list[NDArray], list[NDArray]]:
        """Cross-fitted P(true | x, label) and P(true | x) of noisy samples, verified samples and a batch.

        Predictions of verified samples are out-of-fold; all others are means over the folds.
        """
        of, (_, of_noisy, of_clean) = self.of, self.of.candidates[0]
        by_noisy, by_clean = (self.model._likelihood_of_fit(rows) for rows in (of.rows, of.rows_of_clean))
        groups = [
            LabelledSamples(of_noisy, of.noisy, np.full(len(of_noisy), -1), by_noisy),
            LabelledSamples(of_clean, of.noisy_of_clean, np.full(len(of_clean), -1), by_clean),
            *batch,
        ]
        given_labels, given_x = ([np.zeros((len(own.noisy), self.c)) for own in groups] for _ in range(2))
        T = np.vstack([self.model.transition_matrix_, np.eye(self.d)[self.c :]])
        prior = with_other_labels(self.model.prior, self.c, self.d)
        fits = list(cross_fitted(of, T, prior, stratified=False, n_folds=_FOLDS))
        for out, fit in fits:
            for k, group in enumerate(groups):
                rows, n = (out, 1) if k == 1 else (slice(None), len(fits))
                samples = LabelledSamples._make(None if a is None else a[rows] for a in group)
                samples = samples._replace(proba=fit.calibrated(samples.proba)[:, : self.c])
                given_x[k][rows] += samples.proba / n
                given_labels[k][rows] += samples.posterior(fit.channel.of_classes(self.c)) / n
        return given_labels, given_x

    def _strata(self, known: NDArray) -> tuple[Any, NDArray | None]:
        """Strata of the given labels if verified samples can have been drawn by these; or weights of the draw."""
        if self.of.drawn is not None:
            return (), 1 / self.of.drawn[known]
        given = self.of.noisy_of_clean[known]
        return strata_of_labels(self.of.noisy, given, self.d) if (given >= 0).all() else (), None

    def _powered(self, predicted: NDArray, verified: NDArray, true: NDArray, known: NDArray | None = None) -> Estimate:
        known = self._known(False) if known is None else known
        return prediction_powered(predicted, verified[known], true[known], *self._strata(known))
