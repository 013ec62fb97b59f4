"""Permutation test of class-conditional noise (one T for all rows), where true and noisy labels are known."""

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import check_count, check_probabilities, check_rate
from ._class_conditional_permutations import PermutedLabels
from ._class_conditional_scores import Features, Stratum, sources
from ._class_conditional_words import in_words
from ._flip_labels import RandomState, as_generator
from ._labels import in_class_order, indices_of_both

# statistics that differ by less are equal. Rounding errors of sums of scores of size 1 are below 1e-10 for a million
# rows; the smallest real difference is about 1 / n. A choice, not measured.
_TOLERANCE = 1e-8
# conventional level and power of a test
_LEVEL, _POWER = 0.05, 0.8


class NoiseOfRows(NamedTuple):
    """Share of wrong labels in a subset of the rows.

    Attributes
    ----------
    n_rows : int
    observed : float
        Share of rows whose noisy label is not the true one.
    expected : float
        The share to expect if one T holds for all rows, given the true classes of this subset.
    """

    n_rows: int
    observed: float
    expected: float


class ClassConditionalTest(NamedTuple):
    """Result of `class_conditional_test`; ``str()`` is `explain`.

    Attributes
    ----------
    pvalue : float
        Of the hypothesis that one T holds for all rows. Exact: if it holds, the probability of a p-value of at most p
        is at most p (less with many ties, as in groups of few rows).
    pvalues : dict of str to float
        Of each statistic, already adjusted for their number: "groups: rate", "groups: labels", "features: rate",
        "features: labels", "posteriors: direction", "posteriors: labels". The smallest is `pvalue`.
    class_pvalues : ndarray of shape (n_classes,)
        Of each true class by itself, adjusted for the number of classes and statistics; NaN for classes that could
        not be tested.
    n_rows : int
        Rows of the classes that could be tested.
    noise : dict of str to NoiseOfRows
        Observed and expected share of wrong labels of each group or, for posteriors, of the "easier half" and the
        "harder half" of the rows: those with a posterior of the true class above the median of that class, and the
        others. Of the `n_rows` rows.
    minimum_detectable_difference : float
        Difference between the noise rates of two halves of the rows (or of the two largest groups) that the test
        finds with a power of about 0.8 at level 0.05.
    classes : tuple
        Names of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from noisytransition.transition import class_conditional_test, flip_labels, symmetric_noise
    >>> y, group = np.arange(600) % 3, np.repeat(["careful", "hasty"], 300)
    >>> careful, hasty = (flip_labels(y, symmetric_noise(3, rate), random_state=0) for rate in (0.1, 0.4))
    >>> y_noisy = np.where(group == "careful", careful, hasty)
    >>> found = class_conditional_test(y, y_noisy, groups=group, random_state=0)
    >>> found.pvalue
    0.001
    >>> for name, noise in found.noise.items():
    ...     print(f"{name}: {noise.observed:.0%} wrong, {noise.expected:.0%} expected with one T")
    careful: 12% wrong, 26% expected with one T
    hasty: 40% wrong, 26% expected with one T
    """

    pvalue: float
    pvalues: dict[str, float]
    class_pvalues: NDArray[np.float64]
    n_rows: int
    noise: dict[str, NoiseOfRows]
    minimum_detectable_difference: float
    classes: tuple

    def explain(self, level: float = _LEVEL) -> str:
        """Describe what was tested, the result, and what it means for the use of T.

        Parameters
        ----------
        level : float, default=0.05
            The hypothesis is rejected at p-values of at most this.

        Returns
        -------
        str

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1.
        """
        return in_words(self, check_rate(level, "level"))

    def __str__(self) -> str:
        return self.explain()


def class_conditional_test(
    y_true: ArrayLike,
    y_noisy: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    features: ArrayLike | None = None,
    proba: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    n_permutations: int = 999,
    random_state: RandomState = None,
) -> ClassConditionalTest:
    r"""Test whether one T holds for all rows: within each true class, the noisy label is independent of the row.

    If one T holds, the noisy labels of the rows of a true class are exchangeable. They are permuted within the true
    classes, and the statistics of the data are compared with those of the permutations. Features, true labels and the
    *counts* of pairs of labels are the same in all permutations, so posteriors of a classifier that was fitted with
    these true labels or these counts may be given. The classifier must not have been trained on these noisy labels row
    by row, and the rows must not have been selected by their noisy labels.

    With z the scores of a row, centred in its true class, y its true and s its noisy label, the statistics are:

    * "rate", of groups and features: ``|sum_n z_n 1[s_n != y_n]|^2``. Sensitive to a noise rate that depends on the
      scores in the same way in all classes.
    * "labels": ``sum_i sum_j |sum of z_n over true class i with s_n = j|^2 / n_i``. Sensitive to any dependence of the
      noisy label on the scores.
    * "direction", of posteriors: ``sum_n log proba[n, s_n]``, centred in the true class. Sensitive to noisy labels
      that agree with the classifier more often than one T allows (the score at b = 0 of ``T_n[i, j] ~ T[i, j]
      proba[n, j]^b``, one-sided).

    The scores of a group are its indicator divided by the root of its share; those of a feature (or log-posterior) are
    its ranks within the class and their squares (Legendre's first two polynomials). Several statistics are combined
    by their maximum, after taking cube roots of the quadratic ones and standardising each over the permutations.

    Parameters
    ----------
    y_true, y_noisy : array-like of shape (n,)
        Labels of the same rows: class indices 0..c-1, text, or any labels that `classes` has.
    groups : array-like of shape (n,), optional
        Group of each row: source, annotator, batch. At least one of `groups`, `features` and `proba` is needed; all
        that are given are tested together.
    features : array-like of shape (n, d) or (n,), optional
        Numbers that T may depend on. The power is higher with fewer columns.
    proba : array-like of shape (n, c), optional
        Probabilities of the *true* label, from a classifier. Recommended for images: samples that are hard for a
        classifier are often hard for annotators. A data frame that names the classes is read by names.
    classes : array-like of shape (c,), optional
        All labels, in the order of the columns of `proba`. Default: of text the sorted labels of both.
    n_permutations : int, default=999
        How often the labels are permuted; the smallest p-value is 1 / (n_permutations + 1).
    random_state : int, RandomState, Generator or None
        Source of the permutations.

    Returns
    -------
    ClassConditionalTest

    Raises
    ------
    ValueError
        If an input is not valid, if none of `groups`, `features` and `proba` is given, or if no class has two rows
        with different noisy labels.

    References
    ----------
    * Phipson, Smyth, "Permutation P-values Should Never Be Zero", 2010.
    * Westfall, Young, "Resampling-Based Multiple Testing", 1993, section 2.3 (the largest of several statistics).
    * Mantel, Haenszel, "Statistical Aspects of the Analysis of Data from Retrospective Studies of Disease", 1959
      ("rate": strata and groups).
    * Gretton et al., "A Kernel Statistical Test of Independence", NeurIPS 2007 ("labels", with a linear kernel of
      the scores).

    Examples
    --------
    >>> import numpy as np
    >>> from noisytransition.transition import class_conditional_test, flip_labels, symmetric_noise
    >>> y, group = np.arange(600) % 3, np.arange(600) // 300
    >>> careful, hasty = (flip_labels(y, symmetric_noise(3, rate), random_state=0) for rate in (0.1, 0.4))
    >>> one_T = class_conditional_test(y, hasty, groups=group, random_state=0)
    >>> two_T = class_conditional_test(y, np.where(group == 0, careful, hasty), groups=group, random_state=0)
    >>> one_T.pvalue > 0.05, two_T.pvalue
    (True, 0.001)
    >>> two_T.noise["1"]
    NoiseOfRows(n_rows=300, observed=..., expected=...)
    """
    n_classes = None if proba is None else check_probabilities(proba).shape[1]
    y, s, named = indices_of_both(y_true, y_noisy, n_classes, classes)
    proba = None if proba is None else check_probabilities(in_class_order(proba, named, rows=False))
    n_permutations = check_count(n_permutations, 1, "n_permutations")
    random = np.random.default_rng(list(as_generator(random_state).bytes(16)))
    given, subsets = sources(groups, features, proba, y)
    strata = _strata(y, s)
    terms = [_terms(given, stratum, PermutedLabels(stratum.labels, n_permutations, random)) for stratum in strata]
    names = list(terms[0])
    together = [_statistic(name, np.sum([of_class[name] for of_class in terms], axis=0)) for name in names]
    apart = [_statistic(name, of_class[name]) for of_class in terms for name in names]
    pvalues, of_classes = _adjusted_pvalues(together), np.full(len(named), np.nan)
    of_classes[[stratum.label for stratum in strata]] = _adjusted_pvalues(apart).reshape(len(strata), -1).min(axis=1)
    tested = np.concatenate([stratum.rows for stratum in strata])
    if groups is not None and sum(rows[tested].any() for rows in subsets.values()) < 2:
        raise ValueError("all rows that can be tested are of one group: give more rows, of classes with noise.")
    noise = _noise(y[tested], s[tested], {name: rows[tested] for name, rows in subsets.items()})
    return ClassConditionalTest(
        float(pvalues.min()),
        dict(zip(names, pvalues.tolist(), strict=True)),
        of_classes,
        len(tested),
        noise,
        _minimum_detectable(y[tested], s[tested], [part.n_rows for part in noise.values()], len(names)),
        tuple(named.tolist()),
    )


def _strata(y: NDArray[np.intp], s: NDArray[np.intp]) -> list[Stratum]:
    """Classes whose noisy labels can be permuted."""
    strata = [Stratum(int(label), np.flatnonzero(y == label), s[y == label]) for label in np.unique(y)]
    strata = [stratum for stratum in strata if len(np.unique(stratum.labels)) > 1]
    if not strata:
        raise ValueError(
            "no true class has two rows with different noisy labels: nothing can be permuted. Give more rows, or rows "
            "with noise."
        )
    return strata


# ---------------------------------------------------------------------------- statistics
def _terms(given: Sequence[Features], stratum: Stratum, permuted: PermutedLabels) -> dict[str, NDArray[np.float64]]:
    """Return the term of a class in each statistic, by name."""
    return {name: term for source in given for name, term in source.terms(stratum, permuted).items()}


def _statistic(name: str, term: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standardised statistic in each permutation: 0 if it is the same in all, up to rounding errors.

    Cube roots of sums of squares are close to normal. Scores are of size 1, so the tolerance is absolute as well: a
    statistic that is 0 in exact arithmetic has values of 1e-16.
    """
    if name.endswith("direction"):
        value = term[:, 0]
    else:
        value = np.cbrt((term**2).sum(axis=1) if name.endswith("rate") else term[:, 0])
    std = value.std()
    if std <= _TOLERANCE * max(np.abs(value).max(), 1.0):
        return np.zeros(len(value))
    return (value - value.mean()) / std


def _adjusted_pvalues(statistics: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Share of permutations, the data among them, whose largest statistic is at least each of the data's."""
    largest = np.max(statistics, axis=0)
    return np.array([(largest >= statistic[0] - _TOLERANCE).mean() for statistic in statistics])


# ---------------------------------------------------------------------------- noise rates
def _noise(y: NDArray, s: NDArray, subsets: Mapping[str, NDArray[np.bool_]]) -> dict[str, NoiseOfRows]:
    """Observed and expected share of wrong labels of subsets of the rows."""
    expected = _rates(y, s)
    return {
        name: NoiseOfRows(int(part.sum()), float((s != y)[part].mean()), float(expected[part].mean()))
        for name, part in subsets.items()
        if part.any()
    }


def _rates(y: NDArray, s: NDArray) -> NDArray[np.float64]:
    """Noise rate of each row's true class."""
    return (np.bincount(y, weights=s != y) / np.maximum(np.bincount(y), 1))[y]


def _minimum_detectable(y: NDArray, s: NDArray, sizes: Sequence[int], n_statistics: int) -> float:
    """Difference of noise rates of two subsets that a test of normal means finds with a power of `_POWER`."""
    first, second = sorted(sizes)[-2:] if len(sizes) > 1 else (len(y) / 2, len(y) / 2)
    rates, normal = _rates(y, s), NormalDist()
    z = normal.inv_cdf(1 - _LEVEL / (2 * n_statistics)) + normal.inv_cdf(_POWER)
    return float(min(z * np.sqrt((rates * (1 - rates)).mean() * (1 / first + 1 / second)), 1.0))
