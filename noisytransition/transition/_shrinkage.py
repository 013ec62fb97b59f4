"""What T is shrunk towards, and how much: empirical Bayes."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, polygamma

from ._checks import as_array, check_transition_matrix, is_number
from ._estimation import TINY, normalise_rows

# pseudo-counts per class among which the evidence chooses, a tenth of a decade apart: its maximum is flat
_STRENGTHS = np.geomspace(0.1, 1e6, 71)
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
    strengths = _STRENGTHS if isinstance(strength, str) else [max(float(strength), TINY)]
    evidence, best = _highest_evidence(counts, M, strengths, groups)
    wrong = M * ~np.eye(len(M), dtype=bool)
    if isinstance(strength, str) and wrong[best * M < 1].sum() > wrong.sum() / 2:
        best = 0.0
    return M, float(best) if best > TINY else 0.0, evidence


def _highest_evidence(
    counts: NDArray, M: NDArray, strengths: Iterable[float], groups: list[NDArray]
) -> tuple[float, float]:
    """Highest log-evidence, and its strength."""
    return max((log_evidence(counts, M, a, groups), float(a)) for a in strengths)


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
    of_entry = prior**2 * (polygamma(1, prior) - polygamma(1, prior + counts))
    of_log_rate = np.array([max(of_entry[group].sum(), 1.0) for group in groups])  # at least that of one row
    rates = np.array([M[group].sum() for group in groups])
    return float(np.log(of_log_rate).sum() + np.log((rates**2 / of_log_rate).sum()))


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
