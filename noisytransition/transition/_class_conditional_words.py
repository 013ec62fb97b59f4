"""The result of the test of one T in words."""

from collections.abc import Iterable
from typing import Any

import numpy as np

# groups whose noise is named, those that are furthest from what one T expects
_MOST_GROUPS = 6
_SOURCES = {"groups": "the group", "features": "the features", "posteriors": "the classifier's posteriors"}
# what a statistic with a small p-value says
_FINDINGS = {
    "groups: rate": "some groups have more wrong labels than others, true classes being equal",
    "groups: labels": "groups differ in how often they give which label",
    "features: rate": "the noise rate goes with the features",
    "features: labels": "the noisy label goes with the features",
    "posteriors: direction": "noisy labels lie nearer to the classifier's opinion than one T says",
    "posteriors: labels": "the noisy label goes with the classifier's posteriors",
}
_ALWAYS = (
    "What follows: T is a mean over rows. If the clean rows are a random sample, shares of classes and the overall "
    "noise rate stand; what is said of single rows (label posteriors, label issues) is off {where}."
)
_ADVICE = {
    "groups": "Estimate T in each group that has enough clean rows (count_transition_matrix of its pairs), or fit each "
    "group by itself.",
    "features": "If the features split the rows into a few parts, test these as groups, and estimate T in each.",
    "posteriors": "Use label posteriors to rank rows for a second look, not as probabilities.",
}
_RELATED = (
    "Labels and classifier share mistakes: a noisy label that agrees with the classifier is weaker evidence than its "
    "label posterior says."
)


def in_words(found: Any, level: float) -> str:
    """Say what was tested, what was found, and what follows."""
    sources = [_SOURCES[source] for source in _sources(found.pvalues)]
    tested = f"whether noisy labels, given the true label, go with {_listed(sources)}"
    lines = [f"Tested on {found.n_rows} rows: {tested}."]
    return "\n".join(lines + (_rejected(found, level) if found.pvalue <= level else _kept(found)))


def _rejected(found: Any, level: float) -> list[str]:
    small = [name for name, p in found.pvalues.items() if p <= level]
    findings = "; ".join(f"{_FINDINGS[name]} (p = {found.pvalues[name]:.3g})" for name in small)
    return [
        f"One T does not hold for all rows (p = {found.pvalue:.3g}): {findings}.",
        *_rates(found),
        _of_classes(found, level),
        _ALWAYS.format(where="by about the differences above" if found.noise else "where the noise is unlike its mean"),
        *([_RELATED] if "posteriors: direction" in small else []),
        *(_ADVICE[source] for source in _sources(small)),
    ]


def _kept(found: Any) -> list[str]:
    parts = "two halves of the rows"
    if "groups" in _sources(found.pvalues):
        parts = "the two largest groups"
    return [
        f"No evidence against one T (p = {found.pvalue:.3g}).",
        *_rates(found),
        f"That is no proof: at this number of rows, noise rates of {parts} that differ by less than about "
        f"{found.detectable:.2f} are easily missed.",
        "What follows: use one T, and test again when there are more clean rows.",
    ]


def _rates(found: Any) -> list[str]:
    """Noise of the parts of the rows that are furthest from what is expected."""
    if not found.noise:
        return []
    far = sorted(found.noise, key=lambda name: -abs(found.noise[name].observed - found.noise[name].expected))
    shown = [
        f"{name}: {part.observed:.1%} of {part.n_rows} rows, where one T expects {part.expected:.1%}"
        for name, part in ((name, found.noise[name]) for name in far[:_MOST_GROUPS])
    ]
    return [f"Wrong labels: {'; '.join(shown)}."]


def _of_classes(found: Any, level: float) -> str:
    order = np.argsort(found.class_pvalues)  # NaN, of a class not tested, comes last and is never small
    named = [f"{found.classes[i]} (p = {found.class_pvalues[i]:.3g})" for i in order if found.class_pvalues[i] <= level]
    if not named:
        return "No single true class has enough rows to show it."
    return f"Single true classes that show it: {_listed(named)}."


def _sources(names: Iterable[str]) -> list[str]:
    """Where statistics come from, each once."""
    return list(dict.fromkeys(name.partition(":")[0] for name in names))


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
