"""Sentences of a report, by section."""

from ._facts import Facts

# Maximum number of classes at risk named in the summary
_MOST_NAMED = 3
# Level of the test of one T (conventional)
_LEVEL = 0.05
# Smallest probability of a flip that is reported
_NO_FLIP = 0.005
# Diagnostics reported in the section on sources
_OF_SOURCES = ("sources_differ", "dependent_sources", "sources_not_verified")


def in_words(facts: Facts) -> dict[str, list[str]]:
    """Sentences of each section, the summary first."""
    sections = {
        "noise": _noise(facts),
        "transition": _transition(facts),
        "classes": _classes(facts),
        "calibration": _calibration(facts),
        "label_issues": _label_issues(facts),
        "one_transition_matrix": _one_transition_matrix(facts),
        "sources": _sources(facts),
    }
    named = ["transition", "label_issues", "classes"]
    named += [name for name in ("calibration", "one_transition_matrix", "sources") if facts[name]]
    summary = [*sections["noise"], *(sections[name][0] for name in named)]
    diagnostics = facts["diagnostics"].items()
    reasons = [f"A reason not to trust T: {text}." for name, text in diagnostics if name not in _OF_SOURCES]
    return {"summary": summary + reasons} | sections


def _noise(facts: Facts) -> list[str]:
    noise = facts["noise"]
    counted = noise["verified"]
    bars = percents(noise["low"], noise["high"])
    level = f" ({facts['data']['level'] * 100:.4g} % interval: {bars})" if bars else ""
    share = f"About {percent(noise['rate'])} of the labels are wrong{level}."
    if not counted:
        return [share]
    low, high = (noise["low"], noise["high"]) if bars else (noise["rate"], noise["rate"])
    verdict = "Both estimates agree."
    if low > counted["high"] or counted["low"] > high:
        verdict = "The estimates disagree: verified samples are not a random sample, or one T is not enough."
    wrong = estimate(counted["rate"], counted["low"], counted["high"])
    return [share, f"From {count(counted['n_rows'], 'verified sample')}: {wrong} of the labels are wrong. {verdict}"]


def _transition(facts: Facts) -> list[str]:
    flip = facts["flips"][0]
    share = estimate(flip["probability"], flip["low"], flip["high"])
    most = f"The most probable flip: {share} of the samples of class {flip['true']} are labelled {flip['noisy']}."
    if flip["probability"] < _NO_FLIP:
        most = f"No flip has a probability of {percent(_NO_FLIP)} or more."
    intervals = "There are no intervals: they require EM or a LabelNoiseModel, and at most 50 classes."
    if facts["data"]["error_bars"]:
        intervals = "The intervals assume one T for all samples and verified samples drawn at random."
    left_out = facts["transition"]["n_left_out"]
    return [most, intervals] + [f'{count(left_out, "class")} with less noise are summed as "others".'] * bool(left_out)


def _classes(facts: Facts) -> list[str]:
    classes = facts["classes"]
    sentences = ["No class has a high estimated noise rate or few samples. Without intervals, T may be wrong."]
    if n := classes["n_at_risk"]:
        names = [str(listed["class"]) for listed in classes["listed"][:_MOST_NAMED] if listed["risks"]]
        more = f" and {n - len(names):,} more" if n > len(names) else ""
        sentences = [f"Classes at risk: {', '.join(names)}{more}."]
    elif facts["data"]["error_bars"]:
        sentences = ["No class is at risk: none has a high noise rate, few samples, or a label that could swap."]
    if n_rows := classes["n_to_verify"]:
        advice = f"verify about {n_rows:,} more random samples with a noisy label"
        sentences.append(f'To know every noise rate within ± 0.05, {advice}; "to verify" has those of each class.')
    return sentences


def _views(facts: Facts) -> list[str]:
    """What the classifier learned from."""
    if not facts["views"] or not any(facts["views"].values()):
        return []
    names = {"features": "the features", "label": "the given labels", "clean": "the verified samples alone"}
    ordered = sorted(facts["views"].items(), key=lambda view: -view[1])
    *first, last = (f"{names[view]} ({percent(share)})" for view, share in ordered)
    advice = "A part counts less if it is wrong about held-out verified samples, or repeats another part"
    return [f"The classifier learned from {', '.join(first)} and {last}. {advice}."]


def _calibration(facts: Facts) -> list[str]:
    calibration = facts["calibration"]
    if calibration is None:
        advice = "accuracy_interval and cross-validation by VerifiedKFold estimate the accuracy from verified samples"
        reason = "the calibration requires clean samples that the classifier has not seen"
        return [f"Not measured: {reason}. {advice}.", *_views(facts)]
    accuracy = estimate(calibration["accuracy"], calibration["low"], calibration["high"])
    fact = f"From {count(calibration['n_rows'], 'clean sample')}: the accuracy is {accuracy}"
    confidence = f"the mean confidence {percent(calibration['confidence'])}"
    error = f"{calibration['expected_calibration_error']:.3f}, over bins of the probability of the predicted class"
    advice = "If the classifier was trained on these samples, it is too low and the accuracy too high"
    return [f"{fact} and {confidence}.", f"Expected calibration error: {error}. {advice}.", *_views(facts)]


def _label_issues(facts: Facts) -> list[str]:
    issues = facts["label_issues"]
    rows = count(issues["n_rows"], "sample" if issues["n_rows"] == facts["data"]["n_rows"] else "unverified sample")
    fact = f"Labels that are more probably wrong than correct: {issues['n_issues']:,} of {rows}"
    sentences = [f"{fact}; {issues['n_expected']:,.0f} wrong labels are expected."]
    if left_out := issues["n_issues"] - len(issues["listed"]):
        sentences.append(f"{left_out:,} are not listed: increase max_samples, or call find_label_issues.")
    if issues["memorised"]:
        fact = f"The classifier agrees with {percent(issues['agreement'])} of the labels"
        by_T = f"by T only {percent(issues['right'])} are correct"
        sentences.append(f"{fact}, but {by_T}: it memorised wrong labels. Pass out-of-fold probabilities as proba=.")
    advice = "Suggestions depend on this classifier and this T. Inspect a sample before you change its label."
    return [*sentences, advice]


def _one_transition_matrix(facts: Facts) -> list[str]:
    test = facts["one_transition_matrix"]
    if test is None:
        return ["Not tested: the test requires clean samples with noisy labels that the classifier has not seen."]
    verdict = "No evidence against one T" if test["pvalue"] > _LEVEL else "One T is not enough"
    tested = f"p = {test['pvalue']:.3g}, {count(test['n_rows'], 'sample')} with both labels"
    limits = "Few samples detect only large effects. If one T is not enough, T is a mean over samples."
    return [f"{verdict} for all samples ({tested}).", limits]


def _sources(facts: Facts) -> list[str]:
    sources = facts["sources"]
    if sources is None:
        return []
    n = len(sources["listed"]) + sources["n_left_out"]
    worst, best = (
        f"{estimate(source['right'], source['lower'], source['upper'])} of the labels of {source['source']} are correct"
        for source in (sources["listed"][0], sources["listed"][-1])
    )
    reasons = [facts["diagnostics"][name] for name in _OF_SOURCES if name in facts["diagnostics"]]
    return [f"{count(n, 'source')} of labels: {worst}; {best}.", *(f"{text[0].upper()}{text[1:]}." for text in reasons)]


# ---------------------------------------------------------------------------- numbers as text
def percent(share: float) -> str:
    """Format a share, such as "38 %", with one decimal near 0 and 1, such as "3.8 %"."""
    decimals = int(0.0005 <= min(share, 1 - share) < 0.0995)
    return f"{100 * share:.{decimals}f} %"


def percents(low: float | None, high: float | None) -> str:
    """Format an interval, such as "35 % to 42 %"; "" if unknown."""
    return "" if low is None or high is None else f"{percent(low)} to {percent(high)}"


def estimate(share: float, low: float | None, high: float | None) -> str:
    """Format a share with its interval if known, such as "38 % (35 % to 42 %)"."""
    return percent(share) if low is None else f"{percent(share)} ({percents(low, high)})"


def count(n: int, noun: str) -> str:
    """Format a count with its noun, such as "1 sample", "2 samples" or "2 classes"."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{n:,} {noun if n == 1 else plural}"
