"""What T is shrunk towards, and how much: empirical Bayes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from ._checks import as_array, check_transition_matrix, is_number
from ._estimation import TINY, normalise_rows

# pseudo-counts per class among which the evidence chooses, a tenth of a decade apart: its maximum is flat
_STRENGTHS = np.geomspace(0.1, 1e6, 71)
# of the strengths that are tried first, one in so many; then the neighbours of the best
_STRIDE = 7
# numbers in a block: 64 KiB, which the processor's cache holds
_BLOCK_SIZE = 2**13
# beyond, the evidence is that of T = M, up to rounding errors that grow
_LARGEST_STRENGTH = 1e12

Prior = str | ArrayLike | None


def fitted_prior(prior: Prior, strength: float | str, counts: NDArray) -> tuple[NDArray, float, float]:
    """Matrix to shrink towards, its strength in pseudo-counts per class, and the log-evidence of the counts under it.

    A strength that the evidence chooses is 0 where most wrong labels are at entries that would get less than one
    pseudo-count: such a Dirichlet distribution is highest at 0 and 1, and says that rows of T are unlike the matrix.
    Pseudo-counts would pull them there all the same.
    """
    given: Any = prior
    groups = [] if np.ndim(given) == 2 else _groups(given, counts)
    M = _rates(groups, counts) if groups else np.asarray(given, dtype=np.float64)
    strengths = _STRENGTHS.tolist() if isinstance(strength, str) else [max(float(strength), TINY)]
    evidence, best = _highest_evidence(counts, M, strengths, groups)
    wrong = M * ~np.eye(len(M), dtype=bool)
    if isinstance(strength, str) and wrong[best * M < 1].sum() > wrong.sum() / 2:
        best = 0.0
    return M, float(best) if best > TINY else 0.0, evidence


def _highest_evidence(
    counts: NDArray, M: NDArray, strengths: Sequence[float], groups: list[NDArray]
) -> tuple[float, float]:
    """Highest log-evidence, and its strength."""

    def best(tried: range) -> tuple[float, int]:
        return max((log_evidence(counts, M, strengths[i], groups), i) for i in tried)

    n = len(strengths)
    _, i = best(range(0, n, _STRIDE))
    evidence, i = best(range(max(0, i - _STRIDE + 1), min(n, i + _STRIDE)))
    return evidence, strengths[i]


def _groups(prior: Prior, counts: NDArray) -> list[NDArray[np.bool_]]:
    """Entries that have one rate together: right labels; wrong ones within the superclass; and outside of it."""
    own = np.eye(len(counts), dtype=bool)
    given = np.zeros(len(counts)) if isinstance(prior, str) else np.asarray(prior)
    alike = given[:, None] == given
    return [group for group in (own, alike & ~own, ~alike) if counts[group].sum() > 0]


def _rates(groups: list[NDArray[np.bool_]], counts: NDArray) -> NDArray[np.float64]:
    """Matrix with the rates of the groups in the counts."""
    M = sum(g * counts[g].sum() / np.maximum(g.sum(axis=1, keepdims=True), 1) for g in groups)
    return normalise_rows(M, np.eye(len(counts)))


def log_evidence(counts: NDArray, M: NDArray, a: float, groups: list[NDArray[np.bool_]]) -> float:
    """Log-likelihood of counts with T integrated out under Dirichlet(a M), less that at the T which fits them best.

    The rates that M has from the counts are integrated out too, by Laplace's method.
    """
    counts = np.where(M > 0, counts, 0.0)  # entries that the prior rules out have no part in it
    n, seen, a = counts.sum(axis=1), counts > 0, min(a, _LARGEST_STRENGTH)
    allowed, best, observed = M[seen], normalise_rows(counts, M)[seen], counts[seen]
    of_rows = gammaln(a) - gammaln(a + n)
    of_entries = gammaln(a * allowed + observed) - gammaln(a * allowed) - observed * np.log(best)
    return float(of_rows.sum() + of_entries.sum()) - _log_information(counts, M, a, groups) / 2


def _log_information(counts: NDArray, M: NDArray, a: float, groups: list[NDArray[np.bool_]]) -> float:
    """Log-determinant of the information in counts about the rates of the groups, which sum to 1."""
    if not groups:
        return 0.0
    prior = a * np.maximum(M, TINY)
    of_entry = prior**2 * (_trigamma(prior) - _trigamma(prior + counts))
    of_log_rate = np.array([max(of_entry[group].sum(), 1.0) for group in groups])  # at least that of one row
    rates = np.array([M[group].sum() for group in groups])
    return float(np.log(of_log_rate).sum() + np.log((rates**2 / of_log_rate).sum()))


def _trigamma(x: NDArray) -> NDArray[np.float64]:
    """Trigamma function of positive numbers, to a relative error of 1e-12, in a tenth of the time of scipy's."""
    flat, found = x.ravel(), np.empty(x.size)
    for i in range(0, x.size, _BLOCK_SIZE):
        found[i : i + _BLOCK_SIZE] = _trigamma_of_block(flat[i : i + _BLOCK_SIZE])
    return found.reshape(x.shape)


def _trigamma_of_block(x: NDArray) -> NDArray[np.float64]:
    """By the recurrence up to arguments of at least 10, and there by the asymptotic series.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 1964, equations 6.4.6 and 6.4.12.
    """
    x, found = np.array(x), np.zeros(len(x))
    for _ in range(10):
        found += 1 / (x * x)
        x += 1
    square = 1 / (x * x)
    series = 1 / 6 - square * (1 / 30 - square * (1 / 42 - square * (1 / 30 - square * 5 / 66)))
    return found + 1 / x + square / 2 + square / x * series


def check_prior(
    prior: Prior, strength: float | str, c: int, name: str = "prior", strength_name: str = "strength"
) -> None:
    """Raise for a prior, or a strength, that `em_transition_matrix` does not know."""
    if isinstance(prior, str) and prior != "symmetric":
        raise ValueError(f'{name}={prior!r}; give "symmetric", superclasses of shape ({c},), a matrix, or None.')
    if prior is not None and not isinstance(prior, str):
        given = as_array(prior, name)
        if given.ndim == 2:
            check_transition_matrix(given, c, name)
        elif given.shape != (c,):
            raise ValueError(f"{name} has shape {given.shape}; give ({c},), a superclass for each class.")
        elif not np.equal(given.astype(object), given.astype(object)).all():
            raise ValueError(f"{name} has a superclass that is NaN; give each class a superclass.")
    valid = strength == "auto" if isinstance(strength, str) else is_number(strength)
    if not valid or (not isinstance(strength, str) and not 0 <= strength < np.inf):
        raise ValueError(f'{strength_name}={strength!r}; give "auto" or a finite number of at least 0.')
