"""T where labels are wrong on hard rows more often: one number more than T, which noisy labels tell by themselves."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ._calibration import MOST_CLASSES_WITH_MATRIX, CalibratedLikelihood, Calibration, minimum
from ._class_offset import tilted
from ._em import MAX_ITER, EMResult, off_zero, prior_at_maximum
from ._estimation import POSITIVE_EVIDENCE, TINY, finite_log, normalise_rows
from ._shrinkage import Prior

# where the search for the power begins; it is 0 where one T is true for all rows
_FIRST_POWER = 0.1
_LARGEST_POWER = 2.0
_MAX_ITER = 500


class InstanceDependentEstimate(NamedTuple):
    """T of labels that depend on the row: the mean over all noisy rows.

    Attributes
    ----------
    transition_matrix : ndarray of shape (c, c)
    counts : ndarray of shape (c, c)
        Expected numbers of rows of each true (i) and noisy (j) label.
    calibration : Calibration
        Map of the probabilities.
    power : float
        How much labels depend on the row; 0 where one T is true for all rows.
    log_evidence : float
        Log of the Bayes factor against one T.
    """

    transition_matrix: NDArray[np.float64]
    counts: NDArray[np.float64]
    calibration: Calibration
    power: float
    log_evidence: float


def instance_dependent(
    proba: NDArray,
    y: NDArray,
    proba_meta: NDArray,
    y_meta: NDArray,
    *,
    one_T: EMResult,
    init: NDArray,
    prior: Prior = "symmetric",
    meta_weight: float = 1.0,
    meta_offset: NDArray | float = 0.0,
) -> InstanceDependentEstimate | None:
    r"""T of labels that depend on the row, if the labels contradict one T for all rows.

    People, rules and models err on hard rows more often. A row that looks like a dog is called a dog more often,
    whatever it is::

        P(j | i, x) = R[i, j] p_j(x)^a / sum_k R[i, k] p_k(x)^a

    with p the calibrated probabilities of the true label. Under one T, a = 0, and easy rows are mislabelled as often as
    hard ones: that is what tells a, without a row of which both labels are known. R, a and the map that calibrates p
    have the highest likelihood of all labels together; R is not shrunk. T is the mean of ``P(j | i, x)`` over the rows
    of true class i, as expected counts. Towards a = 1 labels look as if they were true ones, drawn from p, and one T
    near the identity is as likely: such noise shows only in rows of which both labels are known.

    One T stays as it is (None) unless the log of the Bayes factor against it, by Schwarz's criterion, is above 1, and
    the clean rows are not less likely without it: T may differ between rows in other ways too. It also stays with more
    than 20 classes, or a class of which nothing is known.

    Parameters
    ----------
    proba, proba_meta : ndarray of shape (n, c) and (n_meta, c)
        Out-of-sample probabilities of the noisy rows and of the clean ones, before the calibration.
    y, y_meta : ndarray of int
        Noisy labels, and true ones.
    one_T : EMResult
        The most likely one T, of the same rows, `init`, `prior` and `meta_weight`.
    init : ndarray of shape (c, c)
        T to start from.
    prior : "symmetric", array-like or None
        That of the one T.
    meta_weight : float, default=1.0
        How often a clean row counts.
    meta_offset : ndarray of shape (c,) or float, default=0.0
        As in `CalibratedLikelihood`.

    Returns
    -------
    InstanceDependentEstimate or None

    References
    ----------
    Schwarz, "Estimating the Dimension of a Model", 1978. Kass, Raftery, "Bayes Factors", 1995.
    """
    none = np.zeros_like(init)
    if len(init) > MOST_CLASSES_WITH_MATRIX:
        return None
    likelihood = CalibratedLikelihood(proba, y, proba_meta, y_meta, none, meta_weight, meta_offset)
    if likelihood.absent.any():
        return None
    unshrunk = likelihood.maximise(off_zero(init), none, MAX_ITER, 0.0)
    dependent = InstanceDependentLikelihood(likelihood)
    x, log_likelihood = dependent.maximise()
    penalty = np.log(len(y)) / 2
    if log_likelihood - unshrunk.log_likelihood - penalty > POSITIVE_EVIDENCE:
        likelihood.x = x[:-1].copy()  # one T may only have ended at a lower maximum
        from_there = likelihood.maximise(init, none, MAX_ITER, 0.0)
        unshrunk = max(unshrunk, from_there, key=lambda found: found.log_likelihood)
    evidence = log_likelihood - unshrunk.log_likelihood - penalty
    if prior is not None:  # the one T may owe its evidence to a strong prior
        evidence -= max(0.0, one_T.log_evidence - prior_at_maximum(prior, unshrunk)[2])
    maps = one_T.calibration, likelihood.calibration(x[:-1])
    before, after = (_log_score(f, proba_meta, y_meta, meta_offset) for f in maps)
    if evidence <= POSITIVE_EVIDENCE or after < before:
        return None
    counts = dependent.sums(x).counts
    T = normalise_rows(counts + one_T.transition_matrix)  # a class without any row keeps its T
    return InstanceDependentEstimate(T, counts, maps[1], float(x[-1]), float(evidence))


def _log_score(calibration: Calibration | None, proba: NDArray, y: NDArray, offset: NDArray | float) -> float:
    """Log-likelihood of the labels of clean rows."""
    assert calibration is not None  # there are clean rows
    return float(finite_log(tilted(calibration(proba), offset)[np.arange(len(y)), y]).sum())


class InstanceDependentLikelihood:
    r"""Log-likelihood of noisy labels that depend on the row, ``P(j | i, x) ~ R[i, j] p_j(x)^a``, and of clean rows.

    p is the calibrated probability of the true label: a row that looks like a dog is called a dog more often, whatever
    it is. At a = 0, R is T and the likelihood is that of `CalibratedLikelihood`. The prior of a is the positive half of
    a unit normal.

    Parameters
    ----------
    one_T : CalibratedLikelihood
        At its maximum; of at most 20 classes, without pairs.
    """

    def __init__(self, one_T: CalibratedLikelihood) -> None:
        self.one_T = one_T

    def maximise(self) -> tuple[NDArray[np.float64], float]:
        """Find the maximum from that of one T; give its parameters, a last, and how high it is."""
        x: Any = self.one_T.x
        unit = np.append(self.one_T.units(x, self.one_T.pairs), 1.0)
        bounds = [(None, None)] * len(x) + [(0.0, _LARGEST_POWER)]
        found = minimum(self.objective, np.append(x, _FIRST_POWER), unit, _MAX_ITER, bounds)
        return found.x, -float(found.fun) * self.one_T.n_rows

    def objective(self, x: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Mean loss of a row, and its gradient."""
        power, n, sums = float(x[-1]), self.one_T.n_rows, self.sums(x)
        of_R = sums.counts - sums.expected
        value, gradient = self.one_T.with_clean_rows(
            x[:-1], sums.log_likelihood, 0.0, sums.of_bias, sums.of_matrix, of_R
        )
        return value + power**2 / (2 * n), np.append(gradient, (power - sums.of_power) / n)

    def sums(self, x: NDArray) -> "_Sums":
        """Sums over the noisy rows."""
        log_scale, bias, matrix, logits = self.one_T.unpack(x[:-1])
        linear, offset = self.one_T.linear(log_scale, matrix), self.one_T.bias_of_all(bias)[:, None]
        R, power, c = special.softmax(logits, axis=1), float(x[-1]), len(bias)
        total: list[Any] = [0.0, np.zeros((c, c)), np.zeros((c, c)), np.zeros(c), np.zeros((c, c)), 0.0]
        blocks: Any = self.one_T.rows.blocks
        for u, y in blocks:
            of_block = _of_block(u, y, special.log_softmax(linear @ u + offset, axis=0), R, power)
            total = [a + b for a, b in zip(total, of_block, strict=True)]
        return _Sums(*total)


class _Sums(NamedTuple):
    """Log-likelihood, its gradients, and counts of (true, noisy) that are found, and that are expected at the rows."""

    log_likelihood: float
    counts: NDArray
    expected: NDArray
    of_bias: NDArray
    of_matrix: NDArray
    of_power: float


def _of_block(u: NDArray, y: NDArray, log_p: NDArray, R: NDArray, power: float) -> _Sums:
    """Sums over rows, whose classes come first: u and log p are of shape (c, n)."""
    rows, p = np.arange(len(y)), np.exp(log_p)
    of_label = np.zeros_like(p)
    of_label[y, rows] = 1.0
    drawn = np.exp(power * log_p)
    norm = np.maximum(R @ drawn, TINY)  # of P(j | i, x), for each i
    joint = p * R[:, y] / norm
    of_row = np.maximum(joint.sum(axis=0), TINY**2)
    q = joint / of_row
    shares = q / norm
    expected = drawn * (R.T @ shares)  # probability of each noisy label, the true one drawn from q
    of_p = q + power * (of_label - expected) - p
    return _Sums(
        float(np.log(of_row).sum() + power * log_p[y, rows].sum()),
        q @ of_label.T,
        R * (shares @ drawn.T),
        of_p.sum(axis=1),
        of_p @ u.T,
        float(((of_label - expected) * log_p).sum()),
    )
