"""The facts of a report as sentences, by section."""

from typing import Any

from ._text import number, of, percent, percents, probability, short

Facts = dict[str, Any]

# longest name of a class in a sentence
_NAME = 40
# classes at risk that the summary names
_MOST_NAMED = 3
# p-value at which one T is rejected: the conventional level
_LEVEL = 0.05
# gap between confidence and accuracy that is worth a word; a choice, not measured
_GAP = 0.02
# probability below which a flip is not worth a sentence; a choice, not measured
_NO_FLIP = 0.005
# rows below which the calibration error is mostly chance; a choice, not measured
_FEW = 200


def in_words(facts: Facts) -> dict[str, list[str]]:
    """Sentences of each section, the summary first."""
    sections = {
        "noise": _noise(facts),
        "transition": _transition(facts),
        "classes": _classes(facts),
        "calibration": _calibration(facts),
        "label_issues": _label_issues(facts),
        "one_transition_matrix": _one_transition_matrix(facts),
        "limits": _limits(facts),
    }
    return {"summary": _summary(facts, sections)} | sections


def _level(facts: Facts) -> str:
    return f"{facts['data']['level'] * 100:.4g} % interval"


def _summary(facts: Facts, sections: dict[str, list[str]]) -> list[str]:
    found = [*sections["noise"], sections["transition"][0], sections["label_issues"][0], sections["classes"][0]]
    if facts["calibration"]:
        found.append(sections["calibration"][0])
    if test := facts["one_transition_matrix"]:
        found.append(_verdict(test))
    return found + [f"A reason not to trust T: {text}." for text in facts["diagnostics"].values()]


# ---------------------------------------------------------------------------- noise and T
def _noise(facts: Facts) -> list[str]:
    noise = facts["noise"]
    text = f"About {percent(noise['rate'])} of the labels are wrong"
    if noise["low"] is not None:
        text += f" ({_level(facts)}: {percents(noise['low'], noise['high'])})"
    return [f"{text}.", *([_of_pairs(facts)] if noise["verified"] else [])]


def _of_pairs(facts: Facts) -> str:
    noise, counted = facts["noise"], facts["noise"]["verified"]
    low, high = (noise["low"], noise["high"]) if noise["low"] is not None else (noise["rate"], noise["rate"])
    agree = low <= counted["high"] and counted["low"] <= high
    verdict = (
        "The two agree."
        if agree
        else "The two do not agree: the verified rows may not be a random sample, or one T may not be enough."
    )
    return (
        f"Of {of(counted['n_rows'], 'verified row')}, {number(counted['n_wrong'])} have a wrong label: "
        f"{percent(counted['rate'])} ({percents(counted['low'], counted['high'])}). {verdict}"
    )


def _transition(facts: Facts) -> list[str]:
    found = [_most_probable_flip(facts)]
    if "intervals" in facts["missing"]:
        found.append(facts["missing"]["intervals"])
    if left_out := facts["transition"]["n_left_out"]:
        shown = len(facts["transition"]["classes"])
        found.append(
            f"The {shown} classes with the highest noise rates are drawn; {of(left_out, 'class')} left out are added "
            'up as "others". transition_matrix_ has all.'
        )
    return found


def _most_probable_flip(facts: Facts) -> str:
    flip = facts["flips"][0]
    if flip["probability"] < _NO_FLIP:
        return f"No flip has a probability of {percent(_NO_FLIP)} or more."
    bars = "" if flip["low"] is None else f" ({percents(flip['low'], flip['high'])})"
    return (
        f"The most probable flip: {_name(flip['true'])} is labelled {_name(flip['noisy'])} in "
        f"{percent(flip['probability'])} of its rows{bars}."
    )


def _name(name: object) -> str:
    return short(name, _NAME)


# ---------------------------------------------------------------------------- classes
def _classes(facts: Facts) -> list[str]:
    at_risk, listed = facts["classes"]["n_at_risk"], facts["classes"]["listed"]
    if not at_risk:
        found = ["No class is at risk: none has a high noise rate, few rows, or a label that could swap with another."]
    else:
        named = [_name(of_class["class"]) for of_class in listed[:_MOST_NAMED] if of_class["risks"]]
        rest = at_risk - len(named)
        more = f" and {number(rest)} more" if rest > 0 else ""
        verb = "is" if at_risk == 1 else "are"
        found = [f"{of(at_risk, 'class')} {verb} at risk: {', '.join(named)}{more}."]
    if left_out := facts["classes"]["n_left_out"]:
        found.append(
            f"{of(len(listed), 'class')} with the most risks and noise are listed, {number(left_out)} are not."
        )
    return found


# ---------------------------------------------------------------------------- calibration
def _calibration(facts: Facts) -> list[str]:
    found = facts["calibration"]
    if found is None:
        return [facts["missing"]["calibration"]]
    gap = found["confidence"] - found["accuracy"]
    sure = "too certain" if gap > 0 else "not certain enough"
    calibrated = (
        f"it is {sure} by {100 * abs(gap):.1f} points" if abs(gap) >= _GAP else "it is well calibrated on average"
    )
    among = found.get("n_judged", 0)
    which = "is a row" if among == 1 else "are rows"
    seen = f"; {number(among)} of them {which} of X: if fit was given these, this is too good" if among else ""
    sentences = [
        f"The classifier is right on {percent(found['accuracy'])} of {of(found['n_rows'], 'clean row')} "
        f"({percents(found['low'], found['high'])}) and expects {percent(found['confidence'])}: {calibrated}{seen}.",
        f"Expected calibration error: {found['expected_calibration_error']:.3f}, over bins of the probability of the "
        "predicted class.",
        "This holds only if fit has not seen these rows. On rows that fit was given, it is too good.",
    ]
    if found["n_rows"] < _FEW:
        sentences.append(f"With {of(found['n_rows'], 'row')} the calibration error is partly chance.")
    return sentences


# ---------------------------------------------------------------------------- label issues
def _label_issues(facts: Facts) -> list[str]:
    found, n = facts["label_issues"], facts["data"]["n_rows"]
    verb = "has a label that is" if found["n_issues"] == 1 else "have labels that are"
    sentences = [
        f"{number(found['n_issues'])} of {of(n, 'row')} {verb} more probably wrong than right; "
        f"{number(found['n_expected'])} wrong labels are expected.",
    ]
    if (listed := len(found["listed"])) < found["n_issues"]:
        left_out = number(found["n_issues"] - listed)
        sentences.append(
            f"The {number(listed)} most probably wrong are listed and {left_out} left out; raise max_rows, or call "
            "find_label_issues for all."
        )
    if found["memorised"]:
        sentences.append(
            f"The classifier agrees with {percent(found['agreement'])} of the labels, of which T says that "
            f"{percent(found['right'])} are right: it has memorised wrong labels, and finds too few. Pass proba=, "
            "probabilities of rows that the classifier was not trained on (EMTransitionClassifier: oof_proba_)."
        )
    sentences.append(
        "A proposal is an opinion of this classifier and this T. Look at a row before you change its label."
    )
    return sentences


# ---------------------------------------------------------------------------- one T, limits
def _verdict(test: Facts) -> str:
    p = f"p = {test['pvalue']:.3g}, {of(test['n_rows'], 'row')} with both labels"
    if test["pvalue"] <= _LEVEL:
        return f"One T is not enough for all rows ({p})."
    return f"No evidence against one T for all rows ({p})."


def _one_transition_matrix(facts: Facts) -> list[str]:
    test = facts["one_transition_matrix"]
    if test is None:
        return [facts["missing"]["one_transition_matrix"]]
    if test["pvalue"] > _LEVEL:
        return [_verdict(test), "This is no proof: few rows show large differences only."]
    return [
        _verdict(test),
        "T is a mean over rows, then. The share of wrong labels stays correct; probabilities of single labels do not: "
        "use them to rank rows for review.",
    ]


def _limits(facts: Facts) -> list[str]:
    return [
        _rows_to_verify(facts),
        "The intervals hold if one T is true for all rows and the clean rows are a random sample. They do not contain "
        "noise that is higher for hard rows: noisy labels alone cannot tell it from a less certain classifier.",
        f"Were the true label of every row known, counting would give T with an expected error of "
        f"{facts['limits']['sampling_limit']:.3f} (sum of absolute errors, relative to the sum of T). This is no lower "
        "bound: an estimate that is shrunk towards a pattern can be nearer.",
    ]


def _rows_to_verify(facts: Facts) -> str:
    limits = facts["limits"]
    goal = f"within ± {probability(limits['precision'])} ({_level(facts)})"
    if not limits["n_classes"]:
        return f"The noise rate of every class is known {goal}."
    beside = "by counting alone" if "intervals" in facts["missing"] else "beside what is known now"
    return (
        f"To know the noise rate of every class {goal}, verify {of(limits['n_of_classes'], 'more row')} of "
        f"{of(limits['n_classes'], 'class')}, {beside}: each row needs both labels. If rows are drawn at "
        f"random, that takes about {number(limits['n_at_random'])}, until {_name(limits['widest'])} has enough."
    )
