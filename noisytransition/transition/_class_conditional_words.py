"""The result of the test of one T in words."""

from typing import Any

import numpy as np

# what a statistic with a small p-value says
_FINDINGS = {
    "groups: rate": "some groups have more wrong labels than others of the same true classes",
    "groups: labels": "the groups differ in which wrong labels they give, or how often",
    "features: rate": "the noise rate goes with the features",
    "features: labels": "the noisy label goes with the features",
    "posteriors: direction": "the noisy labels lie nearer to the classifier's opinion than one T says, so the mistakes "
    "of both are related",
    "posteriors: labels": "the noisy label goes with the classifier's posteriors",
}
_ALWAYS = "T is then a mean over rows: shares of classes and the overall noise rate stand, corrections of single rows "
_FOLLOWS = {
    "groups": _ALWAYS + "are off. Estimate T in each group that has enough clean rows "
    "(count_transition_matrix of its pairs), or fit each group by itself.",
    "features": _ALWAYS + "are off where the noise is far from its mean. If the features split the rows into a few "
    "parts, test these as groups and estimate T in each; else take posteriors of single labels for a ranking.",
    "posteriors": _ALWAYS + "are off. On hard rows a noisy label is trusted too much, on easy ones too little, and "
    "one that agrees with the classifier is weaker evidence than its label posterior says. Take label posteriors for "
    "a ranking of rows to look at, not as probabilities; do not relabel hard rows unseen.",
}
_HALVES = ("easier half", "harder half")


def in_words(found: Any, level: float) -> str:
    """Say what was tested, what was found, and what follows."""
    sources = list(dict.fromkeys(name.partition(":")[0] for name in found.pvalues))
    tested = "whether, given the true label, noisy labels go with " + _listed(_the(sources))
    parts = [f"Tested on {found.n_rows} rows: {tested}."]
    parts += _rejected(found, level) if found.pvalue <= level else _kept(found)
    return "\n".join(parts)


def _rejected(found: Any, level: float) -> list[str]:
    small = [name for name, p in found.pvalues.items() if p <= level]
    findings = "; ".join(f"{_FINDINGS[name]} (p = {found.pvalues[name]:.3g})" for name in small)
    lines = [f"One T does not hold for all rows (p = {found.pvalue:.3g}): {findings}."]
    lines += _rates(found)
    classes = [i for i in np.argsort(found.class_pvalues) if found.class_pvalues[i] <= level]
    if classes:
        named = (f"{found.classes[i]} (p = {found.class_pvalues[i]:.3g})" for i in classes)
        lines.append(f"Seen in single true classes: {_listed(list(named))}.")
    else:
        lines.append("In no single true class are there enough rows to see it.")
    return lines + [_FOLLOWS[source] for source in dict.fromkeys(name.partition(":")[0] for name in small)]


def _kept(found: Any) -> list[str]:
    return [
        f"No evidence against one T (p = {found.pvalue:.3g}).",
        *_rates(found),
        f"That is no proof: with so many rows, noise rates of {_parts(found)} that differ by less than about "
        f"{found.detectable:.2f} are likely to be missed.",
        "One T may be used; test again when there are more clean rows.",
    ]


def _rates(found: Any) -> list[str]:
    shown = [
        f"{name} {part.observed:.1%} (one T expects {part.expected:.1%}, {part.n_rows} rows)"
        for name, part in found.noise.items()
    ]
    return [f"Wrong labels: {', '.join(shown)}."] if shown else []


def _parts(found: Any) -> str:
    if found.noise and not set(found.noise) <= set(_HALVES):
        return "the two largest groups"
    return "two halves of the rows"


def _the(sources: list[str]) -> list[str]:
    full = {"groups": "the group", "features": "the features", "posteriors": "the classifier's posteriors"}
    return [full[source] for source in sources]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
