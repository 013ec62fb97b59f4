"""Whether clean samples differ from noisy ones, and the correction for stratified ones, whose class prior differs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..labels._draw import design_effect
from ..transition._estimation import finite_log
from ._calibration import CalibratedLikelihood
from ._em import replace_zeros
from ._rules import WARN_P

# the class prior converges in 2 to 12 rounds, and in up to 20 with a class of few samples
_MAX_ROUNDS = 20
# change of a log-prior at convergence
_LOG_PRIOR_TOLERANCE = 0.01
# lower bound of the number of samples of a class
_LEAST_SAMPLES = 0.5
# eigenvalues of a covariance matrix below this share of the largest, or of 1, are rounding errors
_NOTHING = 1e-6
_ROUNDING = 1e-12
# differences of probabilities below this hardly change shares and accuracies, even if many samples show them
_DIFFERENT = 0.03


def shares_differ(n_clean: NDArray, of_noisy: NDArray) -> bool:
    """Whether clean and noisy samples, counted by class, have different class priors (chi-squared test)."""
    expected = n_clean.sum() * np.maximum(of_noisy, _LEAST_SAMPLES) / of_noisy.sum()
    return bool(special.chdtrc(len(n_clean) - 1, ((n_clean - expected) ** 2 / expected).sum()) < WARN_P)


def relevant_difference(
    values: NDArray, others: NDArray, weights: NDArray | None, groups: NDArray | None
) -> NDArray[np.float64] | None:
    """Difference as by `mean_difference`, of probabilities; None if it is small or may be chance."""
    difference, pvalue = mean_difference(values, others, weights, groups)
    return None if pvalue >= WARN_P or np.abs(difference).max() <= _DIFFERENT else difference


def mean_difference(
    values: NDArray, others: NDArray, weights: NDArray | None = None, groups: NDArray | None = None
) -> tuple[NDArray[np.float64], float]:
    """Difference of the means of `values` of shape (m, k) and `others` of shape (n, k), and its p-value.

    Hotelling's test with the covariance of both. `weights` and `groups` of shape (m,) are those of `values`: the sum of
    squared weights and the design effect of the groups take the place of 1 / m.
    """
    of_values = np.ones((len(values), 1)) if weights is None else weights[:, None] / weights.mean()
    mean = (of_values * values).mean(axis=0)
    difference = mean - others.mean(axis=0)
    residuals = values - mean
    apart = others - others.mean(axis=0)
    degrees = len(values) + len(others) - 2
    covariance = (residuals.T @ residuals + apart.T @ apart) / max(degrees, 1)
    of_mean = (of_values**2).mean() / len(values) * design_effect(of_values * residuals, groups)
    sizes, directions = np.linalg.eigh(covariance)
    kept = sizes > max(_NOTHING * sizes.max(), _ROUNDING)
    k = int(kept.sum())
    left = degrees - k + 1
    if not k or left < 1:
        return difference, 1.0
    statistic = ((difference @ directions[:, kept]) ** 2 / sizes[kept]).sum() / (of_mean + 1 / len(others))
    return difference, float(special.fdtrc(k, left, statistic * left / (k * degrees)))


# ---------------------------------------------------------------------------- stratified samples
def fit_log_prior_ratio(
    proba: NDArray, y: NDArray, proba_clean: NDArray, y_clean: NDArray, pairs: NDArray, init: NDArray
) -> NDArray[np.float64]:
    r"""Log ratio of the class priors of clean and noisy samples, if the clean samples are stratified.

    With r the class prior of the clean samples and p of the noisy samples, Bayes' rule gives ::

        P_clean(i | x) ~ P(i | x) r_i / p_i

    as in case-control studies. The prior p is the mean expected true class of the noisy samples. It is estimated in
    turn with T and the calibration map, which maximise the likelihood with ``log r / p`` added to the logits.
    Parameters are as in `CalibratedLikelihood`; `init` is the initial T.

    References
    ----------
    Prentice, Pyke, "Logistic Disease Incidence Models and Case-Control Studies", 1979. Saerens, Latinne, Decaestecker,
    "Adjusting the Outputs of a Classifier to New a Priori Probabilities", 2002 (priors by expectation-maximisation).
    """
    likelihood = CalibratedLikelihood(proba, y, proba_clean, y_clean, pairs)
    start = replace_zeros(init)
    of_clean = shares = _shares(likelihood.n_clean)
    for _ in range(_MAX_ROUNDS):
        likelihood.log_prior_ratio = np.log(of_clean / shares)
        likelihood.maximise(start)
        x: Any = likelihood.x
        before = shares
        shares = _shares(likelihood.counts(x).sum(axis=1))
        if np.abs(np.log(shares / before)).max() < _LOG_PRIOR_TOLERANCE:
            break
    return np.log(of_clean / shares)


def _shares(counts: NDArray) -> NDArray[np.float64]:
    """Class prior of counts, none of which is 0."""
    counts = np.maximum(counts, _LEAST_SAMPLES)
    return np.asarray(counts / counts.sum())


def weights_of_clean_rows(log_prior_ratio: NDArray, y_clean: NDArray) -> NDArray[np.float64]:
    """Weights, with mean 1, that give clean samples the class prior of the noisy samples."""
    weights = np.exp(-log_prior_ratio)[y_clean]
    return weights / weights.mean()


def shift_class_prior(proba: NDArray, log_prior_ratio: NDArray | float) -> NDArray:
    """Multiply the class prior behind posteriors by a ratio; return `proba` itself if its logarithm is 0."""
    return special.softmax(finite_log(proba) + log_prior_ratio, axis=1) if np.any(log_prior_ratio) else proba


def log_scores(calibration: Any, proba: NDArray, y: NDArray, log_prior_ratio: NDArray | float) -> NDArray[np.float64]:
    """Log-likelihood of the label of each clean sample."""
    return finite_log(shift_class_prior(calibration(proba), log_prior_ratio)[np.arange(len(y)), y])
