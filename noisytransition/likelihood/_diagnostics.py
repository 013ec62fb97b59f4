"""Reasons not to trust T, derived from its fit, its error bars and the held-out samples."""

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from ..labels._arrays import shortened
from ..labels._draw import is_balanced, variance_of_mean
from ..transition._estimation import pair_counts
from ._calibration import tempered_log_loss
from ._class_prior import relevant_difference, shares_differ
from ._fit import NoiseFit
from ._out_of_fold import OutOfFold
from ._rules import EVIDENCE, WARN_P
from ._uncertainty import TransitionUncertainty

# Thresholds were selected on the design half of examples/benchmarks/zoo.
# A network is under-trained if the loss of held-out clean samples, relative to guessing, is above this ...
_HIGH_LOSS = 0.65
# ... and decreased in the second half of training by this many standard errors
_FALLING = 2.0
# half width of the 90 % interval of a diagonal entry above which the class is not separated from other classes
_WIDE = 0.25
# Labels were memorised if the classifier agrees with them more often than T allows, by this and two standard errors.
# The excess is at most 0.03 for out-of-sample probabilities of logistic regression, forests, neighbours and naive Bayes
# (digits and cancer, six noises, 8 seeds), and 0.08 to 0.44 for training samples of a forest or of one neighbour. With
# feature-dependent noise, it is up to 0.09 for out-of-sample probabilities (simulated, three classes) ...
_AGREEMENT = 0.05
_AGREEMENT_WITHOUT_ONE_T = 0.1
_ERRORS_OF_AGREEMENT = 2.0
# ... or if its mean certainty is higher for noisy than for clean samples. The excess is less than 3 standard errors out
# of sample, and 0.05 to 0.27 (at least 3 standard errors) if only the clean samples of a forest are out-of-sample
_CERTAINTY = 0.03
_ERRORS_OF_CERTAINTY = 3.0
# Reported without a warning. "not_one_T" is as frequent, a fifth of the fits without pairs, among fits with good error
# bars as among fits with bad ones; with pairs, T is fitted to them
_NOTES = {"worse_than_labels", "sources_differ", "dependent_sources", "sources_not_verified"}
_NOTES |= {"not_one_T", "not_separated", "under_trained"}
# standard errors by which the accuracy of a classifier must be below that of the labels
_ERRORS_OF_ACCURACY = 2.5
_CHOSEN = "verified samples were chosen because their labels look wrong: shares are biased; pass verified_probability"
_UNKNOWN_SHARES = "classes have equally many clean samples; if these are stratified, set verified_sampling='stratified'"
_NOT_VERIFIED = "no sample is verified: T rests on {} alone, and its error bars are too short; verify 50 samples"


def diagnose(fit: NoiseFit, bars: TransitionUncertainty | None, classes: NDArray) -> dict[str, str]:
    """Reasons not to trust T, by name; empty if there are none.

    Candidates of `fit` must be in ascending order of epochs.
    """
    of = fit.out_of_fold
    c = len(classes)
    views = "the classifier" if of.sources is None else "the classifier and the agreement of sources"
    found = {"not_verified": _NOT_VERIFIED.format(views)}
    if len(of.clean):
        is_random = not fit.log_prior_ratio.any()
        balanced = is_balanced(of.n_clean)
        differ = balanced and shares_differ(of.n_clean, fit.counts.sum(axis=1))
        found = {
            "codes": _codes(fit, bars, classes),
            "missing_class": _named("no clean sample of class {}; verify some of it", classes[of.n_clean[:c] == 0]),
            "unknown_shares": _UNKNOWN_SHARES if is_random and differ else "",
            "chosen": _CHOSEN if is_random and of.is_chosen_by_suspicion() else "",
            "from_elsewhere": _from_elsewhere(fit, classes) if is_random and not balanced else "",
            "verified_labels": _named(
                "verified labels contradict classifier and given label; check the verified samples {} (counted from 0)",
                fit.wrong_true_labels,
            ),
            "not_one_T": _not_one_T(fit),
            "under_trained": _under_trained(of, of.weights_of_clean(fit.log_prior_ratio)),
        }
    never = classes[~fit.best.proba[:, :c].any(axis=0)]
    wide = classes[:0]
    if bars is not None:
        low, high = bars.interval(0.9)
        wide = classes[np.diag(high - low) / 2 > _WIDE]
    found |= {
        "no_probability": _named("class {} has probability 0 in all samples; train the classifier on it", never),
        "memorised": _memorised(fit),
        "not_separated": _named("the error bars of T are wide for class {}; verify more samples", wide),
    }
    return {name: text for name, text in found.items() if text}


def _named(text: str, classes: NDArray) -> str:
    """The text with the names of the classes; empty without classes."""
    return text.format(shortened(classes)) if len(classes) else ""


def warn_of_reasons(reasons: dict[str, str], stacklevel: int) -> None:
    """Warn of reasons not to trust T or the classifier."""
    of_T = [text for name, text in reasons.items() if name not in _NOTES]
    if of_T:
        warnings.warn(f"T may be wrong: {'. Also, '.join(of_T)}.", stacklevel=stacklevel)
    if "worse_than_labels" in reasons:
        warnings.warn(f"{reasons['worse_than_labels']}.", stacklevel=stacklevel)


def worse_than_labels(proba: NDArray, fit: NoiseFit) -> dict[str, str]:
    """Reason by name, if noisy labels of held-out verified samples are more accurate than these predictions."""
    of = fit.out_of_fold
    known = of.noisy_of_clean >= 0
    if known.sum() < 2:
        return {}
    weights = of.weights_of_clean(fit.log_prior_ratio)[known]
    right = np.stack([proba.argmax(axis=1), of.noisy_of_clean], axis=1)[known] == of.clean[known, None]
    gain = np.diff(right.astype(float), axis=1)
    accuracy, of_labels = np.average(right, axis=0, weights=weights)
    if of_labels - accuracy <= _ERRORS_OF_ACCURACY * variance_of_mean(gain, weights)[0] ** 0.5:
        return {}
    fact = f"on held-out verified samples its accuracy is {accuracy:.0%}, that of given labels {of_labels:.0%}"
    advice = "Use other features, another classifier or more epochs, and label_posterior for samples with a label"
    return {"worse_than_labels": f"the classifier is worse than the labels: {fact}. {advice}"}


def _codes(fit: NoiseFit, bars: TransitionUncertainty | None, classes: NDArray) -> str:
    """Another order of the classes explains the verified labels better: by the predictions, or by T and its bars."""
    of = fit.out_of_fold
    places = np.arange(len(classes))
    predicted = pair_counts(of.clean, fit.best.proba_clean[:, places].argmax(axis=1), len(places))
    order = _better_order(predicted, predicted)
    own, other = (predicted[places, of_order][order != places].sum() for of_order in (places, order))
    if special.bdtrc(other - 1, own + other, 0.5) >= WARN_P:  # McNemar, 1947
        order = places if bars is None else _better_order(*bars.interval(0.9))
    moved = order != places
    if not moved.any():
        return ""
    pairs = zip(classes[moved].tolist(), classes[order[moved]].tolist(), strict=True)
    named = ", ".join(f"{i!r} as {j!r}" for i, j in pairs)
    fact = f"Most samples that are verified as one class are labelled or predicted as another: {named}"
    return f"are y, the verified labels and the columns of probabilities coded alike? {fact}"


def _better_order(lower: NDArray, upper: NDArray) -> NDArray[np.intp]:
    """Order of the classes with the largest sum; the given one, unless each moved class is above its own place."""
    places = np.arange(len(lower))
    _, order = optimize.linear_sum_assignment(-lower[:, places])
    moved = order != places
    return order if (lower[places, order] > upper[places, places])[moved].all() else places


def _from_elsewhere(fit: NoiseFit, classes: NDArray) -> str:
    """Verified samples have other features than the rest: Hotelling's test of the mean out-of-sample probabilities."""
    of = fit.out_of_fold
    k = len(classes) - 1
    of_noisy, of_clean = (proba[:, :k] for proba in fit.best[1:])  # others follow from their sum
    weights = of.weights_of_clean(fit.log_prior_ratio)
    groups = None if of.groups is None else of.groups[1]
    m = len(of_clean) if groups is None else len(np.unique(groups))
    difference = relevant_difference(of_clean, of_noisy, weights, groups) if m > 2 * k else None
    if difference is None:
        return ""
    most = np.abs(difference).argmax()
    mean = of_noisy[:, most].mean()
    fact = f"the mean probability of class {classes.tolist()[most]!r} is {mean + difference[most]:.2f} and {mean:.2f}"
    return f"verified samples differ from the others: {fact}; verify some samples drawn from all"


def _not_one_T(fit: NoiseFit) -> str:
    """Labels contradict the assumption that one T holds for all samples."""
    if fit.is_one_T and fit.conflict <= EVIDENCE:
        return ""
    fact = "samples that look like another class have more wrong labels"
    advice = "; verify samples that have a noisy label, so that T can be fitted to these pairs"
    if fit.is_one_T:
        fact = "clean and noisy samples contradict each other under one T"
    elif fit.out_of_fold.pairs.any():
        fact = "the verified pairs contradict one T for all samples"
        advice = ", unless many verified labels are wrong"
    return f"{fact}: the noise probably depends on the features, and T is an average over the samples{advice}"


def _under_trained(out_of_fold: OutOfFold, weights: NDArray) -> str:
    """The loss of held-out clean samples was high at the end, and still decreasing."""
    candidates = out_of_fold.candidates
    y = out_of_fold.clean
    half, end = (tempered_log_loss(candidates[k].proba_clean, y, weights) for k in ((len(candidates) - 1) // 2, -1))
    fell = half - end
    guessing = np.log(len(out_of_fold.pairs))
    if len(y) < 2 or fell.mean() <= _FALLING * fell.std() / len(y) ** 0.5 or end.mean() <= _HIGH_LOSS * guessing:
        return ""
    loss = f"its loss on held-out clean samples, {end.mean():.2f} (guessing: {guessing:.2f})"
    return f"the network is under-trained: {loss}, was still decreasing at the end; use more epochs or a larger lr"


def _memorised(fit: NoiseFit) -> str:
    """The classifier agrees with noisy labels, or is certain of them, more than out-of-sample."""
    of = fit.out_of_fold
    known = of.noisy_of_clean >= 0
    # T is about all samples, including the verified ones
    given = np.concatenate([fit.best.proba, fit.best.proba_clean[known]])
    noisy = np.concatenate([of.noisy, of.noisy_of_clean[known]])
    predicted = given.argmax(axis=1)
    agreement = (predicted == noisy).mean()
    expected = np.einsum("ni,ni->n", fit.calibrated(given), fit.transition_matrix.T[predicted]).mean()
    least = _AGREEMENT if fit.is_one_T else _AGREEMENT_WITHOUT_ONE_T
    if agreement - expected > least + _ERRORS_OF_AGREEMENT * (agreement * (1 - agreement) / len(noisy)) ** 0.5:
        fact = f"the classifier agrees with {agreement:.0%} of the noisy labels, but T implies {expected:.0%}"
        return f"{fact}: use out-of-sample probabilities, and verify samples since the noise may depend on the features"
    of_noisy, of_clean = (proba.max(axis=1) for proba in fit.best[1:])
    if len(of_clean) < 2:
        return ""
    of_clean = of_clean * of.weights_of_clean(fit.log_prior_ratio)
    certain = of_noisy.mean()
    clean = of_clean.mean()
    error = of_clean.std(ddof=1) / len(of_clean) ** 0.5
    if certain - clean <= _CERTAINTY + _ERRORS_OF_CERTAINTY * error:
        return ""
    fact = f"the classifier is more certain of noisy samples ({certain:.2f}) than of clean ones ({clean:.2f})"
    return f"{fact}: use out-of-sample probabilities, and clean samples of the same distribution"
