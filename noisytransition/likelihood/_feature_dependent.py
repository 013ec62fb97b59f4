"""Estimate of T under feature-dependent noise with one more parameter, identified by noisy labels alone."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..transition._estimation import TINY
from ._calibration import MOST_ITER, CalibratedLikelihood, Calibration, EMResult, minimum
from ._class_prior import log_scores
from ._em import FirstMaximum, replace_zeros, with_prior
from ._rules import EVIDENCE


class FeatureDependentEstimate(NamedTuple):
    """Estimate of feature-dependent noise.

    `counts` are expected numbers of samples of each true (i) and noisy (j) label, `power` is the exponent a of the
    dependence on the features, and `log_evidence` the log of the Bayes factor against one T.
    """

    counts: NDArray[np.float64]
    calibration: Calibration
    power: float
    log_evidence: float


def fit_feature_dependent_noise(
    one_T: FirstMaximum, proba_clean: NDArray, y_clean: NDArray
) -> FeatureDependentEstimate | None:
    r"""Estimate T under feature-dependent noise, if the labels contradict one T for all samples.

    People, rules and models err more often on hard samples: a sample that resembles a dog is labelled as a dog more
    often, whatever its true class. ::

        P(j | i, x) = R[i, j] p_j(x)^a / sum_k R[i, k] p_k(x)^a

    with p the calibrated probabilities of the true label. Under one T, a = 0, and easy samples are mislabelled as often
    as hard ones. This identifies a without pairs of true and noisy label. R (not shrunk), a and the calibration map
    jointly maximise the likelihood of all labels, from labels that depend on the features alone (a = 1, R uniform) on:
    then no T makes p as sure of the noisy labels as the features are. T is the mean of ``P(j | i, x)`` over the samples
    of true class i, as expected counts. If the labels resemble true labels drawn from p, one T near the identity is
    equally likely: only pairs of true and noisy label can detect such noise.

    Return None unless the log of the Bayes factor against one T, by Schwarz's criterion and with each label counted
    once, is above 3, and the clean samples are at least as likely. Also return None with a class that has probability 0
    in all samples.

    `one_T` is the maximum of a `CalibratedLikelihood` without pairs, with at most 20 classes. Its likelihood is
    modified. `proba_clean` of shape (n_clean, c) and `y_clean` are those of the clean samples.

    References
    ----------
    Schwarz, "Estimating the Dimension of a Model", 1978. Kass, Raftery, "Bayes Factors", 1995.
    """
    likelihood: Any = one_T.likelihood
    if likelihood.absent.any():
        return None
    one, x = _both_maxima(likelihood, one_T.init)
    log_likelihood = -dependent_loss(likelihood, x)[0] * likelihood.n_rows
    evidence = log_likelihood - one.log_likelihood - np.log(likelihood.n_rows) / 2
    if one_T.prior is not None:  # the one T may owe its evidence to a strong prior
        evidence -= max(0.0, one_T.found.log_evidence - with_prior(one, one_T.prior).log_evidence)
    calibration = likelihood.calibration(x[:-1])
    rows = proba_clean, y_clean, likelihood.log_prior_ratio
    gain = log_scores(calibration, *rows) - log_scores(one.calibration, *rows)
    evidence += ((1 - likelihood.clean_weight) * gain).sum()
    if evidence <= EVIDENCE or gain.sum() < 0:
        return None
    return FeatureDependentEstimate(_sums(likelihood, x)[1], calibration, float(x[-1]), float(evidence))


def _both_maxima(likelihood: Any, init: NDArray) -> tuple[EMResult, NDArray[np.float64]]:
    """Maximum of one T without prior, and the parameters of the maximum with feature-dependent noise."""
    likelihood.x = None  # from the present maximum, both end at lower ones
    one = likelihood.maximise(replace_zeros(init))
    start = np.append(likelihood.x, 1.0)
    start[-1 - init.size : -1] = 0.0  # R is uniform: the labels depend on the features alone
    bounds = [(None, None)] * len(likelihood.x) + [(0.0, None)]
    x = minimum(partial(dependent_loss, likelihood), start, np.ones(()), MOST_ITER, bounds).x
    likelihood.x = x[:-1].copy()  # one T may have ended at a local maximum
    from_there = likelihood.maximise(init)
    return max(one, from_there, key=lambda found: found.log_likelihood), x


def dependent_loss(one_T: CalibratedLikelihood, x: NDArray) -> tuple[float, NDArray[np.float64]]:
    r"""Mean loss of a sample under ``P(j | i, x) ~ R[i, j] p_j(x)^a``, and its gradient.

    p is the calibrated probability of the true label. Parameters are those of `one_T`, with R in place of T, and a. At
    a = 0, R is T and the loss equals that of `one_T`. The prior of a is half-normal with unit scale.
    """
    power = float(x[-1])
    log_likelihood, counts, expected, grad_bias, grad_matrix, of_power = _sums(one_T, x)
    of_one_T = log_likelihood, grad_bias, grad_matrix, counts - expected
    value, gradient = one_T.with_clean_rows(x[:-1], *of_one_T)
    return value + power**2 / (2 * one_T.n_rows), np.append(gradient, (power - of_power) / one_T.n_rows)


def _sums(one_T: CalibratedLikelihood, x: NDArray) -> Any:
    """Sums over the noisy samples, as of `_of_block`."""
    _, A, bias = one_T.map(x[:-1])
    R = special.softmax(one_T.unpack(x[:-1])[3], axis=1)
    rows: Any = one_T.rows
    of_blocks = (_of_block(u, y, A @ u + bias[:, None], R, float(x[-1])) for u, y, _ in rows.blocks)
    return [sum(of_each) for of_each in zip(*of_blocks, strict=True)]


def _of_block(u: NDArray, y: NDArray, z: NDArray, R: NDArray, power: float) -> tuple[Any, ...]:
    """Log-likelihood, observed and expected counts of (true, noisy) labels, and gradients by b, by the matrix and by a.

    u and the calibrated logits z have shape (c, n).
    """
    rows = np.arange(len(y))
    log_p = special.log_softmax(z, axis=0)
    p = np.exp(log_p)
    of_label = np.zeros_like(p)
    of_label[y, rows] = 1.0
    drawn = np.exp(power * log_p)
    norm = np.maximum(R @ drawn, TINY)  # of P(j | i, x), for each i
    joint = p * R[:, y] / norm
    likelihood = np.maximum(joint.sum(axis=0), TINY**2)
    q = joint / likelihood
    shares = q / norm
    expected = drawn * (R.T @ shares)  # probability of each noisy label if the true label is drawn from q
    of_p = q + power * (of_label - expected) - p
    return (
        float(np.log(likelihood).sum() + power * log_p[y, rows].sum()),
        q @ of_label.T,
        R * (shares @ drawn.T),
        of_p.sum(axis=1),
        of_p @ u.T,
        float(((of_label - expected) * log_p).sum()),
    )
