"""T of labels that a rule or a model gives by how a row looks, whatever its true class."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ._calibration import MOST_CLASSES_WITH_MATRIX, SMALLEST_PROBA
from ._em import MAX_ITER
from ._estimation import gold_transition_matrix
from ._likelihood import Likelihood
from ._temperature import fitted_temperature
from ._uncertainty import TransitionUncertainty

# mean gain in log-likelihood of a noisy label below which it may be chance, or a reference that is trained too little:
# 0.06 is reached without noise (design half of examples/benchmarks/zoo)
_LEAST_GAIN = 0.08
# standard errors by which the inequality is broken: 5 %, one-sided
_SURE = 1.645
# standard errors of the difference in how sure the reference is of clean and of noisy rows, up to which they are taken
# to be drawn alike; of digits, whose first 100 rows are of other writers, it is 5 and 6
_ALIKE = 3.0
# change of an entry of S that ends its search, as in `em_transition_matrix`
_TOLERANCE = 1e-5


class RuleEstimate(NamedTuple):
    """T of labels that depend on the row alone: the mean over the clean rows of each class.

    Attributes
    ----------
    transition_matrix : ndarray of shape (c, c)
    std : ndarray of shape (c, c)
        Standard errors, by the number of clean rows.
    counts : ndarray of shape (c, c)
        Expected numbers of rows of each true (i) and noisy (j) label.
    proba, proba_meta : ndarray of shape (n, c) and (n_meta, c)
        Probabilities of the true label of the noisy rows and of the clean ones: the reference's, at its best
        temperature.
    excess : float
        By how much more the noisy labels tell of a row's look than the true labels do, in log-likelihood of a row.
    power : float
        Infinity: labels depend on the row alone.
    """

    transition_matrix: NDArray[np.float64]
    std: NDArray[np.float64]
    counts: NDArray[np.float64]
    proba: NDArray[np.float64]
    proba_meta: NDArray[np.float64]
    excess: float
    power: float = float("inf")

    def error_bars(self) -> TransitionUncertainty:
        """Error bars."""
        return TransitionUncertainty(self.transition_matrix, self.transition_matrix, self.std, self.std)


def labels_of_a_rule(
    proba: NDArray,
    y: NDArray,
    proba_meta: NDArray,
    y_meta: NDArray,
    *,
    T: NDArray,
    reference: NDArray,
    reference_meta: NDArray,
    weights_meta: NDArray | float = 1.0,
    counts: NDArray | None = None,
) -> RuleEstimate | None:
    r"""T of labels that depend on the row alone, if the labels contradict one T for all rows.

    A network learns what a rule or a model does, so that the noisy labels look like true ones: T near the identity
    makes them likely, and the clean rows, which are few, hardly weigh. But under one T a noisy label depends on the
    row through the true class alone, and cannot tell more of how the row looks than the true label does (the data
    processing inequality). Where the probabilities f, of networks that both kinds of labels have trained, predict
    noisy labels better than the probabilities g of a reference, they must predict true labels better too, and by more::

        mean_noisy(log sum_i f_i T[i, y] - log sum_i g_i S[i, y])  <=  mean_clean(log f_y - log g_y)

    with S the most likely T behind g. The reference are networks that clean rows alone have trained at the end. If the
    left side is above 0.08 and above the right one with 95 % confidence, labels are taken to depend on the row alone,
    ``P(j | i, x) = P(j | x)``. T is then the mean of ``P(j | x) = sum_k f_k T[k, j]`` over the clean rows of each
    class. It stays as it is (None) otherwise, with more than 20 classes, and where the reference is surer of the clean
    rows than of the noisy ones, or less sure, by three standard errors of its mean entropy: clean rows from elsewhere
    break the inequality too.

    Parameters
    ----------
    proba, proba_meta : ndarray of shape (n, c) and (n_meta, c)
        Out-of-sample probabilities f of the noisy rows and of the clean ones, calibrated.
    y, y_meta : ndarray of int
        Noisy labels, and true ones.
    T : ndarray of shape (c, c)
        The most likely one T behind f.
    reference, reference_meta : ndarray of shape (n, c) and (n_meta, c)
        Out-of-sample probabilities g of the same rows; their temperature is fitted here.
    weights_meta : ndarray of shape (n_meta,) or float, default=1.0
        Of the clean rows, with mean 1, if they are drawn otherwise than the noisy ones.
    counts : ndarray of shape (c, c), optional
        Of rows of which both labels are known; added to those of the noisy rows, and otherwise not used.

    Returns
    -------
    RuleEstimate or None

    References
    ----------
    Cover, Thomas, "Elements of Information Theory", 2006, section 2.8. Hendrycks et al., "Using Trusted Data to Train
    Deep Networks on Labels Corrupted by Severe Noise", NeurIPS 2018, equation (2) (T as a mean of P(j | x)).
    """
    if len(T) > MOST_CLASSES_WITH_MATRIX:
        return None
    tempered = fitted_temperature(reference_meta, y_meta, weights_meta)
    reference, reference_meta = tempered(reference), tempered(reference_meta)
    none = np.zeros_like(T)
    behind = Likelihood(reference, y, none).maximise(np.full_like(T, 1 / len(T)), none, MAX_ITER, _TOLERANCE)
    of_noisy = _log_of(proba @ T, y) - _log_of(reference @ behind.transition_matrix, y)
    of_clean = _log_of(proba_meta, y_meta) - _log_of(reference_meta, y_meta)
    excess, error = _difference(of_noisy, of_clean, weights_meta)
    if of_noisy.mean() <= _LEAST_GAIN or excess <= _SURE * error:
        return None
    of_noisy, of_clean = (special.entr(g).sum(axis=1) for g in (reference, reference_meta))
    apart, error = _difference(of_noisy, of_clean, weights_meta)
    if abs(apart) > _ALIKE * error:
        return None
    of_classes = gold_transition_matrix(proba_meta @ T, y_meta, missing=T)
    n = np.bincount(y_meta, minlength=len(T))[:, None]
    near = (n * of_classes + 0.5) / (n + 1)  # an entry at 0 has an error too
    std = np.sqrt(near * (1 - near) / np.maximum(n, 1))
    known = 0.0 if counts is None else counts
    expected = reference.sum(axis=0)[:, None] * of_classes + known
    return RuleEstimate(of_classes, std, expected, reference, reference_meta, excess)


def _difference(of_noisy: NDArray, of_clean: NDArray, weights: NDArray | float) -> tuple[float, float]:
    """Difference of two means, and its standard error; clean rows have weights."""
    mean = (weights * of_clean).mean()
    error = np.sqrt(of_noisy.var() / len(of_noisy) + ((weights * (of_clean - mean)) ** 2).mean() / len(of_clean))
    return float(of_noisy.mean() - mean), float(error)


def _log_of(proba: NDArray, y: NDArray) -> NDArray[np.float64]:
    """Log-probability of each row's label."""
    return np.log(np.maximum(proba[np.arange(len(y)), y], SMALLEST_PROBA))
