"""Draw samples to verify next, plan how many are needed, and compare a new batch with the samples of a fit."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ..labels._arrays import encode, is_number, shortened
from ..labels._draw import read_groups
from ..likelihood._class_prior import relevant_difference
from ..transition._checks import check_count, check_level
from ..transition._estimation import normalise_rows
from ..transition._noise import RandomState, as_generator
from ._samples import LabelledSamples, data_frame
from ._shares import predicted_classes

#: estimates that verified samples can improve
TARGETS = ("transition", "shares", "accuracy")
# Share of the draw that is at random; its inverse bounds the weights. With 0.2, intervals of shares are longer (digits)
_AT_RANDOM = 0.5
# Smallest unit of a class relative to the largest, so that a rare class does not dominate the draw
_SMALLEST_UNIT = 1e-4


class Plan(NamedTuple):
    """Number of samples to verify for intervals of a given width, from `LabelNoiseModel.plan_verification`.

    Attributes
    ----------
    table : DataFrame
        One row per quantity, with the columns ``estimate``, ``half_width`` (now), ``n_verified`` and ``n_to_verify``
        (for this quantity alone).
    n_samples : int
        Number of samples to verify for all quantities.
    words : str
        The plan as a sentence.
    """

    table: Any
    n_samples: int
    words: str

    def __str__(self) -> str:
        return self.words


# ---------------------------------------------------------------------------- which
def suggest_samples(model: Any, n: int, target: str, of: Any, random_state: RandomState) -> Any:
    """Draw samples with known probabilities; see `LabelNoiseModel.suggest_samples`."""
    samples = samples_of_fit(model)
    if model.verified_sampling == "stratified":
        raise ValueError("verified samples are stratified by class. suggest_samples requires a draw at random.")
    n = check_count(n, 1, "n")
    if n > (most := len(samples.noisy)):
        raise ValueError(f"n={n}, but only {most} samples are not verified; pass at most {most}.")
    probability = inclusion_probabilities(draw_sizes(model, target, of), n)
    chosen = draw_systematically(probability, as_generator(random_state))
    relative = probability[chosen] * (most / n)
    return data_frame({"position": samples.rows[chosen], "probability": relative})


def draw_sizes(model: Any, target: str, of: Any = None) -> NDArray[np.float64]:
    """Compute probabilities of the draw, up to a factor, for samples that are not verified.

    An inverse-probability-weighted mean has the smallest variance if samples are drawn in proportion to the standard
    deviation of their verified value (Neyman, 1934). Variances of the classes are divided by the squared class size for
    T, whose rows are shares of a class, and by their mean for shares. To find samples of a class, they are drawn in
    proportion to its posterior probability.
    """
    if target not in (*TARGETS, "class"):
        raise ValueError(f"target={target!r}; pass one of {', '.join(map(repr, TARGETS))}, or 'class'.")
    if (target == "class") != (of is not None):
        raise ValueError(f"target={target!r} and of={of!r}; pass of, the class to find, with target='class' alone.")
    if target == "class":
        (k,) = encode(np.array([of]), model.classes_, "of")
        return _half_at_random(model.posterior_of_fit()[:, k])
    variance = _posterior_variances(model, target)
    unit = variance.mean(axis=0)
    if target == "transition":
        unit = model.posterior_of_fit().mean(axis=0) ** 2
    unit = np.maximum(unit, _SMALLEST_UNIT * max(unit.max(), np.finfo(float).tiny))
    return _half_at_random(np.sqrt((variance / unit).sum(axis=1)))


def _half_at_random(size: NDArray) -> NDArray[np.float64]:
    """Mix probabilities in proportion to a size with equal ones."""
    share = normalise_rows(size[None], 1 / len(size))[0]
    return _AT_RANDOM / len(size) + (1 - _AT_RANDOM) * share


def _posterior_variances(model: Any, target: str) -> NDArray[np.float64]:
    """Posterior variance of each quantity in each sample that is not verified, of shape (n, k)."""
    posterior = model.posterior_of_fit()
    if target == "accuracy":
        posterior = np.take_along_axis(posterior, predicted_classes(model)[:, None], axis=1)
    return posterior * (1 - posterior)


def inclusion_probabilities(sizes: NDArray, n: int) -> NDArray[np.float64]:
    """Scale positive sizes to probabilities of at most 1 that sum to n."""
    probability = np.ones(len(sizes))
    certain = np.zeros(len(sizes), dtype=bool)
    while True:
        left = sizes[~certain]
        probability[~certain] = (n - certain.sum()) * left / max(left.sum(), np.finfo(float).tiny)
        if not (more := ~certain & (probability >= 1)).any():
            return probability
        certain |= more
        probability[certain] = 1.0


def draw_systematically(probability: NDArray, rng: np.random.RandomState | np.random.Generator) -> NDArray[np.intp]:
    """Draw positions of samples with given probabilities, by systematic sampling in random order (Madow, 1949).

    The number of samples is the sum of the probabilities.
    """
    order = rng.permutation(len(probability))
    ends = probability[order].cumsum()
    n = round(ends[-1])
    points = rng.uniform() + np.arange(n)
    return order[np.minimum(np.searchsorted(ends * (n / ends[-1]), points, side="right"), len(order) - 1)]


# ---------------------------------------------------------------------------- how many
def plan(model: Any, target: str, width: float, level: float) -> Plan:
    """Plan samples to verify; see `LabelNoiseModel.plan_verification`."""
    if not is_number(width) or not 0 < width < 0.5:
        raise ValueError(f"width={width!r}; pass the half width of the intervals, a number above 0 and below 0.5.")
    check_level(level)
    return plan_rates(model, width, level) if target == "transition" else plan_shares(model, target, width, level)


def plan_rates(model: Any, width: float, level: float) -> Plan:
    """Plan samples of each class for an interval of its noise rate r of at most ± width.

    m pairs of labels have an interval of half width ``h = z sqrt(r (1 - r) / m)``. Information is additive: with the
    present half width h0, ``1 / h^2 = 1 / h0^2 + m / (z^2 r (1 - r))``. Rates below the width are replaced by the
    width.
    """
    rate = 1 - model.transition_matrix_.diagonal()
    half_width = np.full(len(rate), 0.5)
    information: Any = 0.0
    if model.uncertainty_ is not None:
        low, high = model.transition_interval(level)
        half_width = (high - low).diagonal() / 2
        information = 1 / np.maximum(half_width, 1e-12) ** 2
    bounded = np.clip(rate, width, 1 - width)
    m = _z(level) ** 2 * bounded * (1 - bounded) * (1 / width**2 - information)
    m = np.ceil(np.maximum(m, 0) - 1e-9).astype(np.intp)
    samples = getattr(model, "out_of_fold_", None)
    n_verified = 0 if samples is None else samples.pairs.sum(axis=1)[: len(rate)]
    columns = {"estimate": rate, "half_width": half_width, "n_verified": n_verified, "n_to_verify": m}
    counts = model.noisy_class_counts_
    drawn = m[counts > 0] * counts.sum() / counts[counts > 0]  # at random
    n = int(np.ceil(drawn.max(initial=0) - 1e-9))
    n = n if samples is None else min(n, len(samples.noisy))
    names = [f"{m[i]} of {model.classes_[i]}" for i in np.argsort(-m, kind="stable") if m[i]]
    listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    words = _words("the noise rate of every class", width, f"about {n} more random samples, for {listed}" if n else "")
    if len(short := model.classes_[m > counts]):
        words += f" Fewer samples exist of class {shortened(short)}."
    return Plan(data_frame(columns, model.classes_), n, words)


def _words(what: str, width: float, to_verify: str) -> str:
    """The plan as a sentence; `to_verify` is empty if nothing has to be verified."""
    if not to_verify:
        return f"{what[0].upper()}{what[1:]} is known within ± {width:g}."
    return f"To know {what} within ± {width:g}, verify {to_verify}."


def _z(level: float) -> float:
    """Half width of a normal interval in standard errors."""
    return float(special.ndtri((1 + level) / 2))


def plan_shares(model: Any, target: str, width: float, level: float) -> Plan:
    """Plan samples of `suggest_samples` for intervals of shares or of the accuracy of at most ± width.

    A share p has the variance ``p (1 - p) / n`` if all n samples are verified, plus ``R / m`` for m samples verified at
    random. For m' suggested samples, R is multiplied by g, from the posterior and the probabilities of the draw::

        p (1 - p) / n + R (m + g m') / (m + m')^2 = (width / z)^2

    Hence ``(m + m')^2 = b (m + g m')``, with b = R divided by the variance that random samples may add.
    """
    samples = samples_of_fit(model)
    g = _factor_of_draw(model, target)
    if target == "shares":
        what = "every class share"
        table = model.class_shares(level)
    else:
        what = "the classifier's accuracy"
        table = data_frame([model.accuracy_interval(level)], ["classifier"])
    z = _z(level)
    m = len(samples.clean)
    left = len(samples.noisy)
    p = table.iloc[:, 0].to_numpy()
    half_width = (table.upper - table.lower).to_numpy() / 2
    least = p * (1 - p) / (m + left)
    now = np.maximum((half_width / z) ** 2 - least, 0)
    goal = (width / z) ** 2 - least
    b = np.divide(now * m, goal, out=np.full(len(p), np.inf), where=goal > 0)
    b = np.minimum(b, 1e3 * (m + left) ** 2)
    half = g * b / 2 - m
    more = half + np.sqrt(np.maximum(half**2 - m * (m - b), 0))
    more = np.where(now <= goal, 0, np.minimum(np.ceil(more), left)).astype(np.intp)
    n = int(more.max())
    words = _words(what, width, f"about {n} more samples of suggest_samples(target={target!r})" if n else "")
    if (goal <= 0).any():
        words = f"± {width:g} is out of reach: if all samples are verified, an interval of {what} is ± "
        words += f"{z * np.sqrt(least.max()):.2g} in the population that they come from."
    columns = {"estimate": p, "half_width": half_width, "n_verified": m, "n_to_verify": more}
    return Plan(data_frame(columns, table.index), n, words)


def _factor_of_draw(model: Any, target: str) -> NDArray[np.float64]:
    """Factor g by which suggested samples change the variance R of each quantity, compared to random samples."""
    relative = draw_sizes(model, target)
    variance = _posterior_variances(model, target)
    return (variance * relative.mean() / relative[:, None]).mean(axis=0) / np.maximum(variance.mean(axis=0), 1e-300)


def samples_of_fit(model: Any) -> Any:
    """Samples of the fit; raise without a fit, or if T was given."""
    samples = getattr(model, "out_of_fold_", None)
    if samples is None:
        raise ValueError("the model was not fitted to samples. Call fit with probabilities and labels.")
    return samples


# ---------------------------------------------------------------------------- when
_ADVICE = "verify samples of the batch, and fit again with them"


def reasons_to_verify(
    model: Any, proba: NDArray, y_noisy: Any, groups: ArrayLike | None, of_fit: LabelledSamples
) -> dict[str, str]:
    """Reasons to verify samples of a batch; see `LabelNoiseModel.needs_verification`."""
    noisy = model._given_labels(y_noisy, len(proba))
    codes = read_groups(groups, len(proba))
    classes = model.classes_.tolist()
    reasons = {}
    batch, usual = (np.eye(len(classes))[p.argmax(axis=1)] for p in (proba, of_fit.proba))
    difference = relevant_difference(batch, usual, None, codes)
    if difference is not None:
        most = np.abs(difference).argmax()
        fact = f"the classifier predicts class {classes[most]!r} for {batch[:, most].mean():.0%} of the samples"
        reasons["classes"] = f"{fact}, and for {usual[:, most].mean():.0%} of those of fit; {_ADVICE}"
    if (noisy >= 0).any():
        reasons |= _other_labels(len(classes), proba, noisy, of_fit, codes)
    return reasons


def _other_labels(
    c: int, proba: NDArray, noisy: NDArray[np.intp], of_fit: LabelledSamples, groups: NDArray | None
) -> dict[str, str]:
    """The classifier agrees more or less often with labels of the batch, given its predictions.

    Samples of the batch get weights with which its predictions have the shares of those in the fit.
    """
    predicted, agrees = _agreement(proba, noisy)
    predicted_in_fit, agrees_in_fit = _agreement(of_fit.proba, of_fit.noisy)
    n = np.bincount(predicted, minlength=c)
    n_in_fit = np.bincount(predicted_in_fit, minlength=c)
    used = n_in_fit[predicted] > 0
    if not used.any():
        return {}
    agrees = agrees[used]
    agrees_in_fit = agrees_in_fit[n[predicted_in_fit] > 0]
    weights = (n_in_fit / np.maximum(n, 1))[predicted[used]]
    groups = None if groups is None else groups[noisy >= 0][used]
    difference = relevant_difference(agrees[:, None], agrees_in_fit[:, None], weights, groups)
    if difference is None:
        return {}
    usual = agrees_in_fit.mean()
    now = f"the classifier agrees with {usual + difference[0]:.0%} of the labels, weighted by its predictions in fit"
    return {"labels": f"{now}, and with {usual:.0%} of those of fit; {_ADVICE}"}


def _agreement(proba: NDArray, noisy: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Predicted class of each sample with a label, and 1 if it is the label, else 0."""
    has_label = noisy >= 0
    predicted = proba[has_label].argmax(axis=1)
    return predicted, (predicted == noisy[has_label]).astype(float)
