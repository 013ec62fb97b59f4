"""The result of the test of class-conditional noise as text."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ._class_conditional import ClassConditionalTest

# groups whose noise rate is listed (a choice, not measured: two lines of text)
_MAX_GROUPS = 6
# names of what was tested, by the first part of the name of a statistic
_SOURCES = {"groups": "the group", "features": "the features", "posteriors": "the classifier's posteriors"}
# what a small p-value of each statistic means
_FINDINGS = {
    "groups: rate": "some groups have higher noise rates than others within the true classes",
    "groups: labels": "groups differ in the shares of their noisy labels",
    "features: rate": "the noise rate depends on the features",
    "features: labels": "the noisy label depends on the features",
    "posteriors: direction": "noisy labels agree with the classifier more often than one T allows",
    "posteriors: labels": "the noisy label depends on the classifier's posteriors",
}
_CONSEQUENCES = (
    "Consequences: T is a mean over rows. If the clean rows are a random sample, class shares and the overall noise "
    "rate are still correct; results for single rows (label posteriors, label issues) are biased {where}."
)
_ADVICE = {
    "groups": "Estimate T in each group that has enough clean rows (count_transition_matrix of its pairs), or fit each "
    "group separately.",
    "features": "If the features divide the rows into a few groups, test these with groups=, and estimate T in each.",
    "posteriors": "Use label posteriors to rank rows for review, not as probabilities.",
}
_SHARED_ERRORS = (
    "Noisy labels and the classifier make the same errors: a noisy label that agrees with the classifier is weaker "
    "evidence than its label posterior implies."
)


def in_words(found: "ClassConditionalTest", level: float) -> str:
    """Describe what was tested, the result, and its consequences."""
    sources = [_SOURCES[source] for source in _sources(found.pvalues)]
    tested = f"whether noisy labels, given the true label, depend on {_listed(sources)}"
    lines = [f"Tested on {found.n_rows} rows: {tested}."]
    return "\n".join(lines + (_rejected(found, level) if found.pvalue <= level else _not_rejected(found)))


def _rejected(found: "ClassConditionalTest", level: float) -> list[str]:
    small = [name for name, p in found.pvalues.items() if p <= level]
    findings = "; ".join(f"{_FINDINGS[name]} (p = {found.pvalues[name]:.3g})" for name in small)
    return [
        f"One T does not hold for all rows (p = {found.pvalue:.3g}): {findings}.",
        *_rates(found),
        _of_classes(found, level),
        _CONSEQUENCES.format(
            where="by about the differences above" if found.noise else "where the noise differs from its mean"
        ),
        *([_SHARED_ERRORS] if "posteriors: direction" in small else []),
        *(_ADVICE[source] for source in _sources(small)),
    ]


def _not_rejected(found: "ClassConditionalTest") -> list[str]:
    parts = "two halves of the rows"
    if "groups" in _sources(found.pvalues):
        parts = "the two largest groups"
    return [
        f"No evidence against one T (p = {found.pvalue:.3g}).",
        *_rates(found),
        f"This is no proof: with this number of rows, the test has a power below 0.8 if the noise rates of {parts} "
        f"differ by less than about {found.minimum_detectable_difference:.2f}.",
        "Consequences: use one T, and repeat the test when there are more clean rows.",
    ]


def _rates(found: "ClassConditionalTest") -> list[str]:
    """Noise rates of the subsets with the largest differences from the expected rate."""
    if not found.noise:
        return []
    ordered = sorted(found.noise, key=lambda name: -abs(found.noise[name].observed - found.noise[name].expected))
    shown = [
        f"{name}: {part.observed:.1%} of {part.n_rows} rows, {part.expected:.1%} expected with one T"
        for name, part in ((name, found.noise[name]) for name in ordered[:_MAX_GROUPS])
    ]
    return [f"Wrong labels: {'; '.join(shown)}."]


def _of_classes(found: "ClassConditionalTest", level: float) -> str:
    order = np.argsort(found.class_pvalues)  # NaN, of a class not tested, comes last and is never small
    named = [f"{found.classes[i]} (p = {found.class_pvalues[i]:.3g})" for i in order if found.class_pvalues[i] <= level]
    if not named:
        return "It is not significant in any single true class."
    return f"Significant in single true classes: {_listed(named)}."


def _sources(names: Iterable[str]) -> list[str]:
    """Sources of the statistics, without duplicates."""
    return list(dict.fromkeys(name.partition(":")[0] for name in names))


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
