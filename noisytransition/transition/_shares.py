"""Class shares and accuracies with intervals: prediction-powered inference on the posterior of the true class."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ._estimation import TINY
from ._fit import TransitionFit, cross_fitted
from ._posterior import LabelledSamples
from ._shrinkage import with_other_labels

# folds of the verified samples: models that predict them have not seen them
_FOLDS = 10

# strata with fewer verified samples are taken together
_LEAST_IN_STRATUM = 5
# most steps, and the change of a share that ends the maximisation for another batch
_MAX_STEPS, _TOLERANCE = 1000, 1e-7
# a smaller variance is one of rounding
_NO_VARIANCE = 1e-12
# that the variance of few verified samples is shrunk to what the predictions expect, if that is larger
_PSEUDO_SAMPLES = 20.0
# a bound is 0 or 1 if fewer effective samples are expected there: Brown, Cai, DasGupta, "Interval Estimation for a
# Binomial Proportion", 2001
_LEAST_CASES = 0.5
# degrees of freedom, with fewer of which Student's t has hardly a variance
_LEAST_DF = 5


class Interval(NamedTuple):
    """An estimate with its bounds."""

    estimate: float
    lower: float
    upper: float


class Estimate(NamedTuple):
    """Shares of a population, and the numbers of samples of known truth that would tell them as exactly."""

    share: NDArray[np.float64]
    n_effective: NDArray[np.float64]

    def interval(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds by Jeffreys' prior; within [0, 1] and not symmetric for small shares."""
        a, b = (of * self.n_effective + 0.5 for of in (self.share, 1 - self.share))
        lower, upper = special.betaincinv(a, b, (1 - level) / 2), special.betaincinv(a, b, (1 + level) / 2)
        lower = np.where(a < _LEAST_CASES + 0.5, 0, np.minimum(lower, self.share))
        return lower, np.where(b < _LEAST_CASES + 0.5, 1, np.maximum(upper, self.share))


def prediction_powered(
    predicted: NDArray,
    of_verified: NDArray,
    true: NDArray,
    strata: Sequence[tuple[NDArray, NDArray]] = (),
    weights: NDArray | None = None,
) -> Estimate:
    r"""Mean of a population of which a random part is verified, from predictions of all.

    ``mean(lambda f) + mean over verified (y - lambda f)``, with the lambda in [0, 1] of the smallest variance; 0 is
    the mean of the verified samples alone.

    Parameters
    ----------
    predicted : ndarray of shape (n, k)
        Predictions f of k properties, such as the probability of each class, of the samples that are not verified.
    of_verified, true : ndarray of shape (m, k)
        Predictions and truth of verified samples; the former must not have seen the latter.
    strata : sequence of pairs of ndarray of bool, shapes (n,) and (m,)
        Where verified samples were drawn by their stratum: the samples of each. Default: one stratum.
    weights : ndarray of shape (m,), optional
        Inverse probabilities with which verified samples were drawn, up to a factor; then there are no strata.

    Returns
    -------
    Estimate

    References
    ----------
    Angelopoulos, Bates, Fannjiang, Jordan, Zrnic, "Prediction-Powered Inference", Science 2023. Angelopoulos, Duchi,
    Zrnic, "PPI++", 2023 (lambda). Zrnic, Candès, "Active Statistical Inference", 2024 (weights).
    """
    n, m = len(predicted) + len(true), len(true)
    strata = strata or [(np.ones(len(predicted), dtype=bool), np.ones(m, dtype=bool))]
    w = np.ones(m) if weights is None else weights
    parts = [
        (np.concatenate([predicted[of], of_verified[own]]), of_verified[own], true[own], w[own]) for of, own in strata
    ]
    sizes = np.array([len(of_all) / n for of_all, *_ in parts])[:, None]

    def variance(power: NDArray | float) -> NDArray[np.float64]:
        of_parts = [
            power**2 * _variance_of_mean(of_all) + _variance_of_mean(y - power * f, w) for of_all, f, y, w in parts
        ]
        return (sizes**2 * of_parts).sum(axis=0)

    alone, both, whole = variance(0.0), variance(0.5), variance(1.0)  # a parabola in lambda
    curve = 2 * (alone + whole - 2 * both)
    slope = whole - alone - curve
    power = np.clip(np.divide(-slope, 2 * curve, out=np.zeros_like(curve), where=curve > 0), 0, 1)
    means = np.array(
        [(power * of_all).mean(axis=0) + np.average(y - power * f, axis=0, weights=w) for of_all, f, y, w in parts]
    )
    share = np.clip((sizes * means).sum(axis=0), 0, 1)
    between = (sizes * (means - share) ** 2).sum(axis=0) / n  # sizes of strata are those of a sample, too
    smallest = variance(power) + between
    of_parts = [_variance_of_mean(of_all) + _expected(f, w) for of_all, f, _, w in parts]
    expected = between + (sizes**2 * of_parts).sum(axis=0)
    smallest += np.maximum(expected - smallest, 0) * _PSEUDO_SAMPLES / (m + _PSEUDO_SAMPLES)
    smallest *= _student(m - len(parts))
    return Estimate(share, np.minimum(_n_effective(alone + between, smallest, share, parts, sizes), n))


def _n_effective(alone: NDArray, smallest: NDArray, share: NDArray, parts: list, sizes: NDArray) -> NDArray[np.float64]:
    """Number of samples, drawn at random, of the smallest variance; `alone` is that of the verified samples."""
    m, none = sum(len(w) for *_, w in parts), alone < _NO_VARIANCE
    gain = np.divide(alone, smallest, out=np.ones_like(alone), where=~none & (smallest > 0))
    if len(parts) == 1 and not np.ptp(parts[0][-1]):
        return m * np.maximum(gain, 1)  # a random draw
    of_weights = 1 / float((sizes[:, 0] ** 2 * [(w**2).sum() / w.sum() ** 2 for *_, w in parts]).sum())  # Kish, 1965
    at_random = np.clip(share * (1 - share), 1 / (m + 2), None) / np.where(none, 1, alone)
    return np.where(none, of_weights, at_random) * np.maximum(gain, 1)


def _expected(f: NDArray, weights: NDArray) -> NDArray[np.float64]:
    """Variance of a weighted mean of y - f, if f are the probabilities of y."""
    return (weights / weights.sum()) ** 2 @ (f * (1 - f))


def _student(df: int) -> float:
    """Variance of Student's t: that of an estimate divided by its estimated error."""
    return max(df, _LEAST_DF) / (max(df, _LEAST_DF) - 2)


def _variance_of_mean(values: NDArray, weights: NDArray | None = None) -> NDArray[np.float64]:
    """Variance of a mean, or of a weighted one by linearisation (Hájek)."""
    n = len(values)
    if n < 2:
        return np.zeros(values.shape[1])
    if weights is None:
        return values.var(axis=0, ddof=1) / n
    shares = weights / weights.sum()
    return ((shares[:, None] * (values - shares @ values)) ** 2).sum(axis=0) * n / (n - 1)


def strata_of_labels(noisy: NDArray[np.intp], of_verified: NDArray[np.intp], n_labels: int) -> list:
    """Samples by given label; labels with few verified samples, and none, together."""
    few = np.bincount(of_verified[of_verified >= 0], minlength=n_labels) < _LEAST_IN_STRATUM
    of_noisy, of_verified = (np.where((of < 0) | few[of], n_labels, of) for of in (noisy, of_verified))
    used = np.unique(of_verified)
    if not np.isin(of_noisy, used).all():  # no verified sample stands for these: with the next larger stratum
        of_noisy = np.where(np.isin(of_noisy, used), of_noisy, used[-1])
    return [(of_noisy == j, of_verified == j) for j in used]


def batch_shares(likelihood: NDArray, prior: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Class shares of another batch, and their variances, by maximum likelihood (Saerens, Latinne, Decaestecker, 2002).

    Parameters
    ----------
    likelihood : ndarray of shape (n, c)
        Probabilities of the true class at the shares `prior`, times those of the noisy labels, if these are known.
    prior : ndarray of shape (c,)
        Class shares behind the probabilities.
    """
    ratio = likelihood / np.maximum(prior, 1 / (2 * len(likelihood)))
    ratio /= np.maximum(ratio.max(axis=1, keepdims=True), TINY)
    share = prior.copy()
    for _ in range(_MAX_STEPS):
        posterior = ratio * share
        last, share = share, (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(share - last).max() < _TOLERANCE:
            break
    score = ratio / (ratio @ share)[:, None]
    score = score[:, :-1] - score[:, -1:]  # of the free shares: the last is what they leave
    covariance = np.linalg.pinv(score.T @ score)
    return share, np.append(np.diag(covariance), covariance.sum())


class Population:
    """Samples that a `LabelNoiseModel` was fitted to, of which the verified ones are a random part.

    Parameters
    ----------
    model : LabelNoiseModel
        Fitted.

    Raises
    ------
    ValueError
        If there are less than two verified samples, or if these were drawn by their class or by suspicion.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.c, self.d = model, len(model.classes_), len(model.labels_)
        self.of: Any = getattr(model, "held_out_", None)
        if self.of is None or len(self.of.clean) < 2:
            raise ValueError("shares need a model that was fitted to at least two verified samples.")
        how = "because their labels look wrong" if self.of.draw().by_suspicion else ""
        if model.meta_sampling == "stratified" or "unknown_shares" in model.diagnostics_:
            how = "class by class"
        if how:
            raise ValueError(f"verified samples were drawn {how}, and tell no shares; verify some at random.")

    def class_shares(self) -> Estimate:
        """Shares of the true classes."""
        return self._powered(*self._posteriors(), np.eye(self.c)[self.of.clean])

    def accuracy(self, of_labels: bool) -> Estimate:
        """Share of samples of which the noisy label, or else the most probable class, is the true class."""
        known = np.full(len(self.of.clean), True)
        if of_labels:
            noisy, clean = self.of.noisy, self.of.noisy_of_clean
            known = clean >= 0
            if not known.any():
                raise ValueError("no verified sample has a noisy label; the accuracy of the labels needs some.")
        else:
            noisy, clean = (self.model.calibrate(p[:, : self.c]).argmax(axis=1) for p in self.of.candidates[0][1:])
        padded = [np.pad(p, ((0, 0), (0, self.d - self.c))) for p in self._posteriors()]
        predicted, verified = (p[np.arange(len(p)), k][:, None] for p, k in zip(padded, (noisy, clean), strict=True))
        right = (clean == self.of.clean)[:, None].astype(float)
        return self._powered(predicted, verified, right, known)

    def shares_of_batch(self, proba: ArrayLike, y_noisy: Any) -> Estimate:
        """Class shares of other samples; their variance has that of the calibration, by a jackknife."""
        given, of_fit = self.model._checked(proba), np.concatenate([p[:, : self.c] for p in self.of.candidates[0][1:]])
        likelihood: NDArray | float = 1.0
        if y_noisy is not None:
            likelihood = self.model._likelihood(proba, y_noisy)

        def shares(calibrated: Callable[[NDArray], NDArray]) -> tuple[NDArray, NDArray]:
            return batch_shares(calibrated(given) * likelihood, calibrated(of_fit).mean(axis=0))

        share, variance = shares(self.model.calibrate)
        folds = np.array([shares(self._calibration(fit))[0] for _, fit in self._fits()])
        variance = variance + (len(folds) - 1) * folds.var(axis=0)  # delete-a-group jackknife
        smoothed = np.clip(share, 1 / (len(given) + 2), 1 - 1 / (len(given) + 2))
        return Estimate(share, smoothed * (1 - smoothed) / np.maximum(variance, TINY))

    def _fits(self) -> Iterator[tuple[NDArray[np.intp], TransitionFit]]:
        """Fits without each fold of verified samples, which predict these without having seen them."""
        T = np.vstack([self.model.transition_matrix_, np.eye(self.d)[self.c :]])
        prior = with_other_labels(self.model.prior, self.c, self.d)
        return cross_fitted(self.of, T, prior, stratified=False, n_folds=_FOLDS)

    def _calibration(self, fit: TransitionFit) -> Callable[[NDArray], NDArray]:
        return lambda proba: fit.calibrated(np.pad(proba, ((0, 0), (0, self.d - self.c))))[:, : self.c]

    def _posteriors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """P(true | x, label) of noisy samples, the mean of all fits, and of verified ones."""
        of, (_, of_noisy, of_clean) = self.of, self.of.candidates[0]
        noisy, clean, n = np.zeros((len(of_noisy), self.c)), np.empty((len(of_clean), self.c)), 0
        by_noisy, by_clean = (self.model._likelihood_of_fit(rows) for rows in (of.rows, of.rows_of_clean))

        def posterior(fit: TransitionFit, proba: NDArray, labels: NDArray, likelihood: NDArray | None) -> NDArray:
            samples = LabelledSamples(fit.calibrated(proba)[:, : self.c], labels, np.full(len(labels), -1), likelihood)
            return samples.posterior(fit.transition_matrix[: self.c])

        for out, fit in self._fits():
            own = None if by_clean is None else by_clean[out]
            noisy += posterior(fit, of_noisy, of.noisy, by_noisy)
            clean[out] = posterior(fit, of_clean[out], of.noisy_of_clean[out], own)
            n += 1
        return noisy / n, clean

    def _powered(
        self, predicted: NDArray, verified: NDArray, true: NDArray, known: NDArray | slice = slice(None)
    ) -> Estimate:
        """Prediction-powered means, by given label: the draw may have been by that without a test that tells it."""
        given = self.of.noisy_of_clean[known]
        is_by_label = (given >= 0).all() or self.of.draw().by_label
        strata = strata_of_labels(self.of.noisy, given, self.d) if is_by_label and self.of.drawn is None else ()
        weights = None if self.of.drawn is None else 1 / self.of.drawn[known]
        return prediction_powered(predicted, verified[known], true[known], strata, weights)
