"""What T is shrunk towards, and how much: empirical Bayes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, polygamma

from ._checks import check_transition_matrix
from ._estimation import normalise_rows

# keeps logarithms finite; far below what any data could tell from 0
_TINY = 1e-12
# pseudo-rows per class among which the evidence chooses
_STRENGTHS = np.geomspace(0.1, 1e6, 71)


def fitting_prior(prior: Any, strength: Any, counts: NDArray) -> tuple[NDArray, float]:
    """Matrix to shrink towards, and by how many pseudo-rows per class."""
    groups = [] if np.ndim(prior) == 2 else _groups(prior, counts)
    M = _prior_matrix(groups, counts) if groups else np.asarray(prior, dtype=np.float64)
    return M, _evidence_strength(counts, M, groups) if strength == "auto" else float(strength)


def _groups(prior: Any, counts: NDArray) -> list[NDArray[np.bool_]]:
    """Entries that have one rate together: right labels; wrong ones within the superclass; and outside of it."""
    own = np.eye(len(counts), dtype=bool)
    given = np.zeros(len(counts)) if isinstance(prior, str) else np.asarray(prior)
    alike = given[:, None] == given
    return [group for group in (own, alike & ~own, ~alike) if counts[group].sum() > 0]


def _prior_matrix(groups: list[NDArray[np.bool_]], counts: NDArray) -> NDArray[np.float64]:
    """Matrix to shrink towards, with the rates of the counts."""
    M = sum(g * counts[g].sum() / np.maximum(g.sum(axis=1, keepdims=True), 1) for g in groups)
    return normalise_rows(M, np.eye(len(counts)))


def _evidence_strength(counts: NDArray, M: NDArray, groups: list[NDArray[np.bool_]]) -> float:
    """Pseudo-rows per class at which the counts are most likely, T and its groups' rates integrated out."""
    return float(max(_STRENGTHS, key=lambda a: evidence(counts, M, a) - _log_information(counts, M, a, groups) / 2))


def _log_information(counts: NDArray, M: NDArray, a: float, groups: list[NDArray[np.bool_]]) -> float:
    """Log-determinant of the information in counts about the rates of the groups, which sum to 1."""
    if not groups:
        return 0.0
    prior = a * np.maximum(M, _TINY)
    of_entry = prior**2 * (polygamma(1, prior) - polygamma(1, prior + counts))
    of_log_rate = np.array([max(of_entry[group].sum(), _TINY) for group in groups])
    rates = np.array([M[group].sum() for group in groups])
    return float(np.log(of_log_rate).sum() + np.log((rates**2 / of_log_rate).sum()))


def evidence(counts: NDArray, M: NDArray, a: float) -> float:
    """Log-likelihood of counts with T integrated out row by row, less that at the T which fits them best."""
    n, seen = counts.sum(axis=1), (M > 0) & (counts > 0)
    M, best, counts = M[seen], normalise_rows(counts, M)[seen], counts[seen]
    of_rows = gammaln(a) - gammaln(a + n)
    return float(of_rows.sum() + (gammaln(a * M + counts) - gammaln(a * M) - counts * np.log(best)).sum())


def check_prior(prior: Any, strength: Any, c: int, name: str = "prior", strength_name: str = "strength") -> None:
    """Raise for a prior, or a strength, that `em_transition_matrix` does not know."""
    if isinstance(prior, str) and prior != "symmetric":
        raise ValueError(f'{name}={prior!r}; give "symmetric", superclasses of shape ({c},), a matrix, or None.')
    if prior is not None and not isinstance(prior, str):
        if np.ndim(prior) == 2:
            check_transition_matrix(prior, c, name)
        elif np.shape(prior) != (c,):
            raise ValueError(f"{name} has shape {np.shape(prior)}; give ({c},), a superclass for each class.")
        elif not np.equal(np.asarray(prior, dtype=object), np.asarray(prior, dtype=object)).all():
            raise ValueError(f"{name} has a superclass that is NaN; give each class a superclass.")
    valid = strength == "auto" if isinstance(strength, str) else isinstance(strength, int | float | np.number)
    if not valid or (not isinstance(strength, str) and not 0 <= strength < np.inf):
        raise ValueError(f'{strength_name}={strength!r}; give "auto" or a finite number of at least 0.')
