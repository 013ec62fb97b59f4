"""Facts of a report, as numbers and names that JSON supports."""

from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..noise_model._samples import Judged
from ._text import plain, short

# Maximum number of listed classes and flips
_MOST_CLASSES, _MOST_FLIPS = 50, 10
# Half width of the interval of a noise rate, for the number of samples to verify
_PLANNED_HALF_WIDTH = 0.05
# Excess of the agreement with the labels over T that indicates memorised labels
_MEMORISED = 0.05
# Risks of classes: a high noise rate is above _WRONG, or above _HIGH and a multiple of the mean
_WRONG, _HIGH, _TIMES_MEAN = 0.5, 0.3, 1.5
# Number of expected samples below which a class has few
_FEW_ROWS = 30
# Number of bins of the calibration, as in Guo et al.
_N_BINS = 10

Facts = dict[str, Any]


class Clean(NamedTuple):
    """Clean samples: `proba` is None if the classifier may know them, `pvalue` (of one T) without noise."""

    proba: NDArray[np.float64] | None
    y: NDArray[np.intp]
    y_noisy: NDArray[np.intp] | None = None
    pvalue: float | None = None


class _Known(NamedTuple):
    """Estimates of a fitted model. Without error bars, `low` and `high` are T."""

    names: list
    T: NDArray[np.float64]
    counts: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    bars: bool

    @property
    def rate(self) -> float:
        """Share of wrong labels."""
        return float(self.counts / self.counts.sum() @ (1 - self.T.diagonal()))

    def bounds(self, *at: Any) -> dict[str, Any]:
        """Bounds of entries of T."""
        return {"low": self.low[at].tolist(), "high": self.high[at].tolist()}


def _known(model: Any, level: float) -> _Known:
    if len(model.labels_) > len(model.classes_):
        others = model.labels_[len(model.classes_) :].tolist()
        raise ValueError(f"noise_report does not support labels that are no classes, such as {others}. Drop them.")
    T = model.transition_matrix_
    bars = hasattr(model, "transition_std_")
    low, high = model.transition_interval(level) if bars else (T, T)
    return _Known([plain(name) for name in model.classes_], T, model.noisy_class_counts_, low, high, bars)


def make_facts(model: Any, judged: Judged, clean: Clean | None, shown: list[Facts], level: float, title: str) -> Facts:
    """Collect the facts of a report; see `NoiseReport`. `shown` has names and contents of the first label issues."""
    known = _known(model, level)
    n_to_verify = model.plan_verification(width=_PLANNED_HALF_WIDTH, level=level).table.n_to_verify.to_numpy()
    facts: Facts = {
        "title": short(title, 200),
        "created": datetime.now().astimezone().isoformat(timespec="seconds"),
        "data": {"n_rows": len(judged.noisy), "n_classes": len(known.T), "level": level, "error_bars": known.bars},
        "noise": _noise(known, clean, level),
        "transition": _transition(known),
        "flips": _flips(known),
        "classes": _classes(known, judged, clean, n_to_verify),
        "calibration": None if clean is None or clean.proba is None else _calibration(clean.proba, clean.y, level),
        "views": model.shares_of_views_,
        "label_issues": _label_issues(known, judged, shown),
        "one_transition_matrix": _test_of_one_T(clean),
        "sources": None if model.sources_ is None else _sources(model.source_summary(level)),
        "diagnostics": dict(model.diagnostics_),
    }
    if not known.bars:
        for estimated in (facts["noise"], facts["transition"], *facts["flips"], *facts["classes"]["listed"]):
            estimated |= {"low": None, "high": None}
    return facts


def _share(k: int, n: int, level: float) -> dict[str, float]:
    """Confidence bounds of a share of k of n samples (Clopper and Pearson, 1934)."""
    from scipy.stats import binomtest  # slow to import

    found = binomtest(k, n).proportion_ci(level, "exact")
    return {"low": float(found.low), "high": float(found.high)}


# ---------------------------------------------------------------------------- noise and T
def _noise(known: _Known, clean: Clean | None, level: float) -> Facts:
    """Share of wrong labels. Errors of the rows of T are treated as independent."""
    weights = known.counts / known.counts.sum()
    kept = known.T.diagonal()
    low = known.rate - float(np.linalg.norm(weights * (known.high.diagonal() - kept)))
    high = known.rate + float(np.linalg.norm(weights * (kept - known.low.diagonal())))
    verified = None
    if clean is not None and clean.y_noisy is not None:
        n = len(clean.y)
        wrong = int((clean.y != clean.y_noisy).sum())
        verified = {"n_rows": n, "n_wrong": wrong, "rate": wrong / n, **_share(wrong, n, level)}
    return {"rate": known.rate, "low": max(low, 0.0), "high": min(high, 1.0), "verified": verified}


def _transition(known: _Known) -> Facts:
    """T of the classes with the most noise, and the sums of their other entries."""
    shown = np.sort(np.argsort(known.T.diagonal(), kind="stable")[:_MOST_CLASSES])
    block = np.ix_(shown, shown)
    return {
        "classes": [known.names[k] for k in shown],
        "matrix": known.T[block].tolist(),
        **known.bounds(*block),
        "other_classes": np.maximum(1 - known.T[block].sum(axis=1), 0).tolist(),
        "n_left_out": len(known.names) - len(shown),
    }


def _flips(known: _Known) -> list[Facts]:
    """The most probable flips."""
    c = len(known.T)
    off = np.where(np.eye(c, dtype=bool), 1.0, -known.T)
    order = np.argsort(off, axis=None, kind="stable")[: min(_MOST_FLIPS, c * (c - 1))]
    return [
        {
            "true": known.names[i],
            "noisy": known.names[j],
            "probability": float(known.T[i, j]),
            **known.bounds(i, j),
            "n_rows": float(known.counts[i] * known.T[i, j]),
        }
        for i, j in (divmod(int(at), c) for at in order)
    ]


# ---------------------------------------------------------------------------- classes
def _classes(known: _Known, judged: Judged, clean: Clean | None, n_to_verify: NDArray[np.intp]) -> Facts:
    """Noise rate, number of samples and risks of each class; lists the classes with the most risks and noise."""
    c = len(known.T)
    n_given = np.bincount(judged.noisy[judged.noisy >= 0], minlength=c)
    n_clean = None if clean is None else np.bincount(clean.y, minlength=c)
    found = [
        {
            "class": name,
            "noise": 1 - float(known.T[i, i]),
            "low": 1 - float(known.high[i, i]),
            "high": 1 - float(known.low[i, i]),
            "n_rows": float(known.counts[i]),
            "n_given": int(n_given[i]),
            "n_clean": None if n_clean is None else int(n_clean[i]),
            "n_to_verify": int(n_to_verify[i]),
            "risks": _risks(known, i),
        }
        for i, name in enumerate(known.names)
    ]
    found.sort(key=lambda of: (-len(of["risks"]), -of["noise"]))
    return {
        "listed": found[:_MOST_CLASSES],
        "n_left_out": max(c - _MOST_CLASSES, 0),
        "n_at_risk": sum(bool(of["risks"]) for of in found),
        "n_to_verify": int(n_to_verify.sum()),
    }


def _risks(known: _Known, i: int) -> list[str]:
    """Reasons not to trust the labels of a class or its row of T."""
    found = []
    noise = 1 - known.T[i, i]
    if noise >= _WRONG:
        found.append("more labels are wrong than correct")
    elif noise >= max(_HIGH, _TIMES_MEAN * known.rate):
        found.append("high noise")
    others = np.where(np.arange(len(known.T)) == i, -1.0, known.high[i])
    if others.max() >= known.low[i, i]:  # within the intervals, the other label may be the more frequent one
        found.append(f"could swap with {known.names[int(others.argmax())]}")
    return [*found, "few samples"] if known.counts[i] < _FEW_ROWS else found


# ---------------------------------------------------------------------------- samples
def _calibration(proba: NDArray, y: NDArray[np.intp], level: float) -> Facts:
    """Accuracy, and expected calibration error over bins of the confidence (Guo et al., ICML 2017)."""
    confidence = proba.max(axis=1)
    right = proba.argmax(axis=1) == y
    of_row = np.clip(np.ceil(confidence * _N_BINS).astype(int) - 1, 0, _N_BINS - 1)

    def accuracy(rows: NDArray[np.bool_]) -> Facts:
        n = int(rows.sum())
        n_right = int(right[rows].sum())
        of = {"n_rows": n, "accuracy": n_right / n, "confidence": float(confidence[rows].mean())}
        return of | _share(n_right, n, level)

    bins = [{"from": b / _N_BINS, "to": (b + 1) / _N_BINS, **accuracy(of_row == b)} for b in np.unique(of_row).tolist()]
    error = sum(b["n_rows"] * abs(b["accuracy"] - b["confidence"]) for b in bins) / len(y)
    return {**accuracy(of_row >= 0), "expected_calibration_error": error, "bins": bins}


def _label_issues(known: _Known, judged: Judged, shown: list[Facts]) -> Facts:
    issues = judged.issues()
    is_unverified = ~judged.is_verified & (judged.noisy >= 0)
    return {
        "n_rows": int(is_unverified.sum()),
        "n_issues": len(issues),
        "n_expected": float((1 - judged.quality[is_unverified]).sum()),
        "agreement": judged.agreement,
        "right": 1 - known.rate,
        "memorised": judged.agreement > 1 - known.rate + _MEMORISED,
        "listed": [
            {
                **sample,
                "given": known.names[judged.noisy[n]],
                "suggested": known.names[judged.suggested[n]],
                "given_probability": float(judged.quality[n]),
                "suggested_probability": float(judged.certainty[n]),
            }
            for n, sample in zip(issues, shown, strict=False)
        ],
    }


def _sources(summary: Any) -> Facts:
    """Sources of labels, in ascending order of the share of correct labels."""
    rows = summary.sort_values("right", kind="stable").head(_MOST_CLASSES).reset_index(names="source")
    listed = [{name: plain(value) for name, value in row.items()} for row in rows.to_dict("records")]
    return {"listed": listed, "n_left_out": len(summary) - len(listed)}


def _test_of_one_T(clean: Clean | None) -> Facts | None:
    return None if clean is None or clean.pvalue is None else {"pvalue": clean.pvalue, "n_rows": len(clean.y)}
