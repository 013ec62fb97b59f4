"""Facts of a report, as numbers and names that JSON supports."""

from __future__ import annotations
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..labels._draw import effective_size
from ..noise_model._samples import Judged
from ..noise_model._shares import Estimate, Interval
from ..noise_model._suggest import Plan
from ._samples import plain, short

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


class Draw(NamedTuple):
    """Weights with which samples represent all, and their groups if they are dependent."""

    weights: NDArray[np.float64]
    groups: NDArray[np.intp] | None = None

    def of(self, rows: NDArray[np.bool_]) -> Draw:
        """Only some of the samples."""
        return Draw(self.weights[rows], None if self.groups is None else self.groups[rows])


class Clean(NamedTuple):
    """Clean samples, if any: `proba` is None if the classifier may know them, `pvalue` (of one T) without noise."""

    proba: NDArray[np.float64] | None = None
    y: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
    y_noisy: NDArray[np.intp] | None = None
    pvalue: float | None = None
    draw: Draw = Draw(np.zeros(0))


class _Estimates(NamedTuple):
    """Estimates of a fitted model. Without error bars, `low` and `high` are T."""

    names: list
    T: NDArray[np.float64]
    counts: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def rate(self) -> float:
        """Share of wrong labels."""
        return float(self.counts / self.counts.sum() @ (1 - self.T.diagonal()))

    def bounds(self, *at: Any) -> dict[str, Any]:
        """Bounds of entries of T."""
        return {"low": self.low[at].tolist(), "high": self.high[at].tolist()}


def _estimates(model: Any, level: float) -> _Estimates:
    if others := model.labels_[len(model.classes_) :].tolist():
        raise ValueError(f"noise_report does not support labels that are no classes, such as {others}. Drop them.")
    T = model.transition_matrix_
    low, high = (T, T) if model.uncertainty_ is None else model.transition_interval(level)
    return _Estimates([plain(name) for name in model.classes_], T, model.noisy_class_counts_, low, high)


def make_facts(model: Any, judged: Judged, clean: Clean, shown: list[Facts], level: float, title: str) -> Facts:
    """Collect the facts of a report; see `NoiseReport`. `shown` has names and contents of the first label issues."""
    estimates = _estimates(model, level)
    bars = model.uncertainty_ is not None
    plan = model.plan_verification(width=_PLANNED_HALF_WIDTH, level=level)
    facts: Facts = {
        "title": short(title, 200),
        "created": datetime.now().astimezone().isoformat(timespec="seconds"),
        "data": {"n_rows": len(judged.noisy), "n_classes": len(estimates.T), "level": level, "error_bars": bars},
        "noise": _noise(estimates, clean, level),
        "transition": _transition(estimates),
        "flips": _flips(estimates, model._flips()[:_MOST_FLIPS]),
        "classes": _classes(estimates, judged, clean, plan),
        "calibration": None if clean.proba is None else _calibration(clean.proba, clean.y, clean.draw, level),
        "views": model.shares_of_views_,
        "label_issues": _label_issues(estimates, judged, shown),
        "one_transition_matrix": None if clean.pvalue is None else {"pvalue": clean.pvalue, "n_rows": len(clean.y)},
        "sources": None if model.sources_ is None else _sources(model.source_summary(level)),
        "diagnostics": dict(model.diagnostics_),
    }
    if not bars:
        for estimated in (facts["noise"], facts["transition"], *facts["flips"], *facts["classes"]["listed"]):
            estimated |= {"low": None, "high": None}
    return facts


def counted(right: NDArray[np.bool_], draw: Draw, level: float) -> Interval:
    """Share of correct ones."""
    share = np.average(right, weights=draw.weights)
    n = effective_size(draw.weights, draw.groups)
    return Estimate(np.array([share]), np.array([n])).one_interval(level)


# ---------------------------------------------------------------------------- noise and T
def _noise(estimates: _Estimates, clean: Clean, level: float) -> Facts:
    """Share of wrong labels. Errors of the rows of T are treated as independent."""
    weights = estimates.counts / estimates.counts.sum()
    right = estimates.T.diagonal()
    rate = estimates.rate
    low = rate - float(np.linalg.norm(weights * (estimates.high.diagonal() - right)))
    high = rate + float(np.linalg.norm(weights * (right - estimates.low.diagonal())))
    verified = None
    if clean.y_noisy is not None:
        share, lower, upper = counted(clean.y == clean.y_noisy, clean.draw, level)
        verified = {"n_rows": len(clean.y), "rate": 1 - share, "low": 1 - upper, "high": 1 - lower}
    return {"rate": rate, "low": max(low, 0.0), "high": min(high, 1.0), "verified": verified}


def _transition(estimates: _Estimates) -> Facts:
    """T of the classes with the most noise, and the sums of their other entries."""
    names, T, *_ = estimates
    shown = np.sort(np.argsort(T.diagonal(), kind="stable")[:_MOST_CLASSES])
    block = np.ix_(shown, shown)
    return {
        "classes": [names[k] for k in shown],
        "matrix": T[block].tolist(),
        **estimates.bounds(*block),
        "other_classes": np.maximum(1 - T[block].sum(axis=1), 0).tolist(),
        "n_left_out": len(names) - len(shown),
    }


def _flips(estimates: _Estimates, flips: list[tuple[int, int]]) -> list[Facts]:
    names, T, counts, *_ = estimates
    return [
        {
            "true": names[i],
            "noisy": names[j],
            "probability": float(T[i, j]),
            **estimates.bounds(i, j),
            "n_rows": float(counts[i] * T[i, j]),
        }
        for i, j in flips
    ]


# ---------------------------------------------------------------------------- classes
def _classes(estimates: _Estimates, judged: Judged, clean: Clean, plan: Plan) -> Facts:
    """Noise rate, number of samples and risks of each class; lists the classes with the most risks and noise."""
    names, T, counts, low, high = estimates
    c = len(names)
    n_given = np.bincount(judged.noisy[judged.noisy >= 0], minlength=c)
    n_clean = np.bincount(clean.y, minlength=c)
    classes = [
        {
            "class": name,
            "noise": 1 - float(T[i, i]),
            "low": 1 - float(high[i, i]),
            "high": 1 - float(low[i, i]),
            "n_rows": float(counts[i]),
            "n_given": int(n_given[i]),
            "n_clean": int(n_clean[i]) if len(clean.y) else None,
            "n_to_verify": int(plan.table.n_to_verify.iloc[i]),
            "risks": _risks(estimates, i),
        }
        for i, name in enumerate(names)
    ]
    classes.sort(key=lambda facts: (-len(facts["risks"]), -facts["noise"]))
    return {
        "listed": classes[:_MOST_CLASSES],
        "n_left_out": max(c - _MOST_CLASSES, 0),
        "n_at_risk": sum(bool(facts["risks"]) for facts in classes),
        "n_to_verify": plan.n_samples,
    }


def _risks(estimates: _Estimates, i: int) -> list[str]:
    """Reasons not to trust the labels of a class or its row of T."""
    names, T, counts, low, high = estimates
    risks = []
    noise = 1 - T[i, i]
    if noise >= _WRONG:
        risks.append("more labels are wrong than correct")
    elif noise >= max(_HIGH, _TIMES_MEAN * estimates.rate):
        risks.append("high noise")
    others = np.where(np.arange(len(T)) == i, -1.0, high[i])
    if others.max() >= low[i, i]:  # within the intervals, the other label may be the more frequent one
        risks.append(f"could swap with {names[int(others.argmax())]}")
    if counts[i] < _FEW_ROWS:
        risks.append("few samples")
    return risks


# ---------------------------------------------------------------------------- samples
def _calibration(proba: NDArray, y: NDArray[np.intp], draw: Draw, level: float) -> Facts:
    """Accuracy, and expected calibration error over bins of the confidence (Guo et al., ICML 2017)."""
    confidence = proba.max(axis=1)
    right = proba.argmax(axis=1) == y
    bin_of_sample = np.clip(np.ceil(confidence * _N_BINS).astype(int) - 1, 0, _N_BINS - 1)

    def accuracy(rows: NDArray[np.bool_]) -> Facts:
        of_rows = draw.of(rows)
        share, lower, upper = counted(right[rows], of_rows, level)
        mean = float(np.average(confidence[rows], weights=of_rows.weights))
        return {"n_rows": int(rows.sum()), "accuracy": share, "confidence": mean, "low": lower, "high": upper}

    bins = []
    error = 0.0
    for b in np.unique(bin_of_sample).tolist():
        rows = bin_of_sample == b
        facts = accuracy(rows)
        bins.append({"from": b / _N_BINS, "to": (b + 1) / _N_BINS, **facts})
        error += draw.weights[rows].sum() / draw.weights.sum() * abs(facts["accuracy"] - facts["confidence"])
    return {**accuracy(np.ones(len(y), dtype=bool)), "expected_calibration_error": float(error), "bins": bins}


def _label_issues(estimates: _Estimates, judged: Judged, shown: list[Facts]) -> Facts:
    names = estimates.names
    issues = judged.issues()
    is_unverified = ~judged.is_verified & (judged.noisy >= 0)
    return {
        "n_rows": int(is_unverified.sum()),
        "n_issues": len(issues),
        "n_expected": float((1 - judged.quality[is_unverified]).sum()),
        "agreement": judged.agreement,
        "right": 1 - estimates.rate,
        "memorised": judged.agreement > 1 - estimates.rate + _MEMORISED,
        "listed": [
            {
                **sample,
                "given": names[judged.noisy[n]],
                "suggested": names[judged.suggested[n]],
                "given_probability": float(judged.quality[n]),
                "suggested_probability": float(judged.certainty[n]),
            }
            for n, sample in zip(issues, shown, strict=False)
        ],
    }


def _sources(summary: Any) -> Facts:
    """Sources of labels, in ascending order of the share of correct labels."""
    rows = summary.sort_values("right", kind="stable").head(_MOST_CLASSES).reset_index(names="source")
    rows = rows.astype(object).where(rows.notna(), None)
    listed = [{name: plain(value) for name, value in row.items()} for row in rows.to_dict("records")]
    return {"listed": listed, "n_left_out": len(summary) - len(listed)}
