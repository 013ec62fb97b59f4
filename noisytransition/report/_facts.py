"""What a report says, as numbers and names that JSON takes."""

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..transition import ClassConditionalTest
from ._calibration import calibration_facts, share_interval
from ._classes import class_facts, riskiest
from ._limits import limit_facts
from ._text import plain, short

#: of the facts; a change of their meaning or a lost entry raises it
SCHEMA_VERSION = 1
# flips that are listed
_MOST_FLIPS = 10
# longest sentence of others; a choice, not measured
_LONGEST_SENTENCE = 2000
# by how much more often than T says the classifier agrees with the labels if it has memorised them; that of the user
# guide, a choice, not measured
_MEMORISED = 0.05

Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]


class Fitted(NamedTuple):
    """What a fitted classifier knows of the noise.

    Attributes
    ----------
    name : str
        Of the classifier's class.
    classes : list
        Names of the c classes.
    T : ndarray of shape (c, c)
        The transition matrix.
    counts : ndarray of shape (c,)
        Expected number of rows of each true class.
    bars : tuple of two ndarrays of shape (c, c), or str
        Lower and upper bounds of T; or a sentence that says why there are none.
    diagnostics : dict of str to str
        Reasons not to trust T.
    settings : dict of str to dict of str to str
        Parameters and versions.
    """

    name: str
    classes: list
    T: NDArray[np.float64]
    counts: NDArray[np.float64]
    bars: Bounds | str
    diagnostics: Mapping[str, str]
    settings: Mapping[str, Mapping[str, str]]


class Judged(NamedTuple):
    """What the classifier says of the rows.

    Attributes
    ----------
    given : ndarray of int, shape (n,)
        Noisy labels as indices of classes.
    quality : ndarray of shape (n,)
        Probability that each label is right.
    proposed : ndarray of int, shape (n,)
        The most probable true class, given row and label.
    certainty : ndarray of shape (n,)
        Its probability.
    agreement : float
        Share of rows whose label is the class that the classifier predicts without the label.
    """

    given: NDArray[np.intp]
    quality: NDArray[np.float64]
    proposed: NDArray[np.intp]
    certainty: NDArray[np.float64]
    agreement: float

    def issues(self, most: int) -> NDArray[np.intp]:
        """Rows whose label is more probably wrong than right, the most probably wrong first, `most` at most."""
        return np.argsort(self.quality, kind="stable")[: min(most, self.n_issues)]

    @property
    def n_issues(self) -> int:
        """Number of rows whose label is more probably wrong than right."""
        return int((self.quality < 0.5).sum())


class Clean(NamedTuple):
    """Rows whose true label is known.

    Attributes
    ----------
    proba : ndarray of shape (m, c)
        The classifier's probabilities.
    y : ndarray of int, shape (m,)
        True labels as indices of classes.
    y_noisy : ndarray of int, shape (m,), or None
        Noisy labels, where they are known.
    test : ClassConditionalTest, or str
        Whether one T is enough; or a sentence that says why it was not tested.
    n_judged : int
        How many of them are among the rows whose labels are judged.
    """

    proba: NDArray[np.float64]
    y: NDArray[np.intp]
    y_noisy: NDArray[np.intp] | None
    test: ClassConditionalTest | str
    n_judged: int = 0


def make_facts(
    fitted: Fitted,
    judged: Judged,
    clean: Clean | None,
    samples: Sequence[Mapping[str, str]],
    index: Sequence,
    *,
    level: float,
    precision: float,
    max_classes: int,
    title: str,
    created: str,
) -> dict[str, Any]:
    """Put together the facts of a report.

    Parameters
    ----------
    fitted : Fitted
        What the classifier says of T.
    judged : Judged
        The rows whose labels are judged.
    clean : Clean or None
        Clean rows, for the calibration and the test of one T.
    samples : sequence of dict
        The rows to list, in the order of ``judged.issues``, by `sample_facts`.
    index : sequence
        Their names.
    level : float
        Of all intervals.
    precision : float
        Half width of the interval of a noise rate for which clean rows are counted.
    max_classes : int
        Classes that are listed and drawn.
    title, created : str
        Heading of the page, and the time in ISO 8601.

    Returns
    -------
    dict
        See `NoiseReport`.
    """
    names = [plain(name) for name in fitted.classes]
    z = NormalDist().inv_cdf((1 + level) / 2)
    n_clean = None if clean is None else np.bincount(clean.y, minlength=len(names))
    n_given = np.bincount(judged.given, minlength=len(names))
    of_classes = class_facts(fitted.T, fitted.counts, fitted.bars, names, n_given, n_clean)
    shown = riskiest(of_classes, max_classes)
    noise = _noise(fitted)
    return {
        "schema": "noisytransition.NoiseReport",
        "schema_version": SCHEMA_VERSION,
        "title": short(title, 200),
        "created": created,
        "data": {"n_rows": len(judged.given), "n_classes": len(names), "classifier": fitted.name, "level": level},
        "noise": noise | {"verified": _verified(clean, level)},
        "transition": _transition(fitted, names, max_classes),
        "flips": _flips(fitted, names),
        "classes": {
            "listed": [of_classes[k] for k in shown],
            "n_left_out": len(names) - len(shown),
            "n_at_risk": sum(bool(of["risks"]) for of in of_classes),
        },
        "calibration": None
        if clean is None
        else calibration_facts(clean.proba, clean.y, level) | {"n_judged": clean.n_judged},
        "label_issues": _label_issues(judged, names, samples, index, 1 - noise["rate"]),
        "one_transition_matrix": _one_transition_matrix(clean),
        "limits": limit_facts(fitted.T, fitted.counts, fitted.bars, names, z, precision),
        "diagnostics": {name: short(text, _LONGEST_SENTENCE) for name, text in fitted.diagnostics.items()},
        "missing": _missing(fitted, clean),
        "settings": {group: dict(values) for group, values in fitted.settings.items()},
    }


def _noise(fitted: Fitted) -> dict[str, Any]:
    """Share of wrong labels; the errors of the rows of T are taken as independent."""
    weights, kept = fitted.counts / fitted.counts.sum(), fitted.T.diagonal()
    rate = float(weights @ (1 - kept))
    if isinstance(fitted.bars, str):
        return {"rate": rate, "low": None, "high": None}
    low, high = (bound.diagonal() for bound in fitted.bars)
    below, above = (float(np.linalg.norm(weights * distance)) for distance in (high - kept, kept - low))
    return {"rate": rate, "low": max(rate - below, 0.0), "high": min(rate + above, 1.0)}


def _verified(clean: Clean | None, level: float) -> dict[str, Any] | None:
    """Share of wrong labels, counted among the clean rows."""
    if clean is None or clean.y_noisy is None:
        return None
    n, wrong = len(clean.y), int((clean.y != clean.y_noisy).sum())
    low, high = share_interval(wrong, n, level)
    return {"n_rows": n, "n_wrong": wrong, "rate": wrong / n, "low": low, "high": high}


def _transition(fitted: Fitted, names: list, most: int) -> dict[str, Any]:
    """T of the classes with the most noise, in the order of the classes; and what their rows have beside."""
    shown = np.sort(np.argsort(fitted.T.diagonal(), kind="stable")[:most])
    block = np.ix_(shown, shown)
    low, high = (None, None) if isinstance(fitted.bars, str) else (bound[block].tolist() for bound in fitted.bars)
    return {
        "classes": [names[k] for k in shown],
        "matrix": fitted.T[block].tolist(),
        "low": low,
        "high": high,
        "other_classes": np.maximum(1 - fitted.T[block].sum(axis=1), 0).tolist(),
        "n_left_out": len(names) - len(shown),
    }


def _flips(fitted: Fitted, names: list) -> list[dict[str, Any]]:
    """The most probable flips."""
    off = np.where(np.eye(len(names), dtype=bool), -1.0, fitted.T)
    order = np.argsort(-off, axis=None, kind="stable")[: min(_MOST_FLIPS, len(names) * (len(names) - 1))]
    return [_flip(fitted, names, *divmod(int(at), len(names))) for at in order]


def _flip(fitted: Fitted, names: list, i: int, j: int) -> dict[str, Any]:
    bounds = [None, None] if isinstance(fitted.bars, str) else [float(bound[i, j]) for bound in fitted.bars]
    return {
        "true": names[i],
        "noisy": names[j],
        "probability": float(fitted.T[i, j]),
        "low": bounds[0],
        "high": bounds[1],
        "n_rows": float(fitted.counts[i] * fitted.T[i, j]),
    }


def _label_issues(
    judged: Judged, names: list, samples: Sequence[Mapping[str, str]], index: Sequence, right: float
) -> dict[str, Any]:
    rows = judged.issues(len(samples))
    listed = [
        {
            "row": plain(name),
            "given": names[judged.given[n]],
            "proposed": names[judged.proposed[n]],
            "given_probability": float(judged.quality[n]),
            "proposed_probability": float(judged.certainty[n]),
            "sample": dict(sample),
        }
        for n, name, sample in zip(rows, index, samples, strict=True)
    ]
    return {
        "n_issues": judged.n_issues,
        "n_expected": float((1 - judged.quality).sum()),
        "agreement": judged.agreement,
        "right": right,
        "memorised": judged.agreement > right + _MEMORISED,
        "listed": listed,
    }


def _one_transition_matrix(clean: Clean | None) -> dict[str, Any] | None:
    if clean is None or isinstance(clean.test, str):
        return None
    return {"pvalue": clean.test.pvalue, "pvalues": clean.test.pvalues, "n_rows": len(clean.y)}


def _missing(fitted: Fitted, clean: Clean | None) -> dict[str, str]:
    """Why sections are missing, by their name."""
    found = {"intervals": fitted.bars} if isinstance(fitted.bars, str) else {}
    if clean is None:
        found["calibration"] = "No clean rows were given: pass X_meta and y_meta, rows that fit has not seen."
        found["one_transition_matrix"] = (
            "Not tested: it needs clean rows with both labels; pass X_meta, y_meta and y_meta_noisy."
        )
    elif isinstance(clean.test, str):
        found["one_transition_matrix"] = clean.test
    return found
