"""Facts of a report, against loops."""

import json
import math
from statistics import NormalDist

import numpy as np
import pytest
from noise_reports import NO_BARS, clean, fitted, judged, make
from posteriors import simulated

from noisytransition.report import NoiseReport
from noisytransition.report._calibration import calibration_facts, share_interval
from noisytransition.report._limits import rows_needed
from noisytransition.transition import em_transition_matrix, find_label_issues, transition_uncertainty

Z = NormalDist().inv_cdf(0.95)
NAMES = [f"class {k}" for k in range(7)]


# ---------------------------------------------------------------------------- share of wrong labels
def test_share_of_wrong_labels_is_the_sum_over_classes():
    of = fitted(NAMES)
    low, high = of.bars
    rate = below = above = 0.0
    for i in range(7):
        weight = of.counts[i] / sum(of.counts)
        rate += weight * (1 - of.T[i, i])
        below += (weight * (high[i, i] - of.T[i, i])) ** 2
        above += (weight * (of.T[i, i] - low[i, i])) ** 2
    noise = make(fitted=of).facts["noise"]
    assert noise["rate"] == pytest.approx(rate)
    assert noise["low"] == pytest.approx(rate - math.sqrt(below))
    assert noise["high"] == pytest.approx(rate + math.sqrt(above))


@pytest.mark.parametrize(("c", "spread"), [(3, 2.0), (5, 3.0)])
def test_its_interval_covers_the_share_of_wrong_labels(c, spread):
    """At a level of 0.9, with the exact posteriors of another classifier in the place of the true ones."""
    T, covered, n_fits = 0.6 * np.eye(c) + 0.4 / c, 0, 20
    for seed in range(n_fits):
        proba, y, noisy = simulated(seed, T, n=660, spread=spread)
        flat = proba**0.7 / (proba**0.7).sum(axis=1, keepdims=True)
        found = em_transition_matrix(flat[60:], noisy[60:], proba_meta=flat[:60], y_meta=y[:60], full_output=True)
        own, meta = found.calibration(flat[60:]), found.calibration(flat[:60])
        bars = transition_uncertainty(own, noisy[60:], found.transition_matrix, proba_meta=meta).interval(0.9)
        of = fitted(NAMES[:c], T=found.transition_matrix, counts=found.counts.sum(axis=1), bars=bars)
        noise = make(fitted=of).facts["noise"]
        covered += noise["low"] <= (y != noisy)[60:].mean() <= noise["high"]
    assert covered >= 0.8 * n_fits


def test_verified_rows_are_counted():
    of = fitted(NAMES)
    rows = clean(of.T)
    found = make(fitted=of, clean=rows).facts["noise"]["verified"]
    wrong = sum(t != s for t, s in zip(rows.y.tolist(), rows.y_noisy.tolist(), strict=True))
    assert (found["n_rows"], found["n_wrong"], found["rate"]) == (80, wrong, wrong / 80)
    assert found["low"] < found["rate"] < found["high"]


def test_the_interval_of_a_share_is_that_of_clopper_and_pearson():
    """At its ends, what was seen or more extreme has a probability of 5 %."""
    low, high = share_interval(3, 20, 0.9)

    def at_most(k, p):
        return sum(math.comb(20, i) * p**i * (1 - p) ** (20 - i) for i in range(k + 1))

    assert at_most(3, high) == pytest.approx(0.05)
    assert 1 - at_most(2, low) == pytest.approx(0.05)
    assert share_interval(0, 20, 0.9)[0] == 0


# ---------------------------------------------------------------------------- T, flips, classes
def test_flips_are_the_ten_largest_entries_off_the_diagonal():
    of = fitted(NAMES)
    every = sorted(((of.T[i, j], NAMES[i], NAMES[j]) for i in range(7) for j in range(7) if i != j), reverse=True)
    facts = make(fitted=of).facts
    assert [(f["probability"], f["true"], f["noisy"]) for f in facts["flips"]] == every[:10]
    for flip in facts["flips"]:
        i, j = NAMES.index(flip["true"]), NAMES.index(flip["noisy"])
        assert flip["n_rows"] == of.counts[i] * of.T[i, j]
        assert [flip["low"], flip["high"]] == [of.bars[0][i, j], of.bars[1][i, j]]
    assert len(make(["no", "yes"]).facts["flips"]) == 2


def test_the_heat_map_has_the_classes_with_the_most_noise_and_sums_of_the_others():
    of = fitted(NAMES)
    T = make(fitted=of, max_classes=3).facts["transition"]
    noisiest = sorted(range(7), key=lambda k: of.T[k, k])[:3]
    assert T["classes"] == [NAMES[k] for k in sorted(noisiest)]
    assert T["n_left_out"] == 4
    for row, others, i in zip(T["matrix"], T["other_classes"], sorted(noisiest), strict=True):
        assert row == [of.T[i, j] for j in sorted(noisiest)]
        assert others == pytest.approx(sum(of.T[i, j] for j in range(7) if j not in noisiest))


def risks(T, counts=(100, 100, 100), bars=NO_BARS, rows=None):
    of = fitted("abc", T=np.array(T, dtype=float), counts=np.array(counts, dtype=float), bars=bars)
    return {of_class["class"]: of_class["risks"] for of_class in make(fitted=of, clean=rows).facts["classes"]["listed"]}


def test_risks_of_classes():
    quiet = [[0.9, 0.1, 0], [0, 0.95, 0.05], [0.05, 0, 0.95]]
    assert risks(quiet) == {"a": [], "b": [], "c": []}
    assert risks([[0.4, 0.35, 0.25], *quiet[1:]])["a"] == ["more labels are wrong than right"]
    assert risks([[0.65, 0.35, 0], *quiet[1:]])["a"] == ["high noise"]
    assert risks([[0.45, 0.55, 0], *quiet[1:]])["a"][1] == "could swap with b"
    assert risks(quiet, counts=(100, 29, 100))["b"] == ["few rows"]
    T = np.array([[0.6, 0.4, 0], *quiet[1:]])
    assert risks(T, bars=(T, T))["a"] == ["high noise"]
    assert risks(T, bars=(np.maximum(T - 0.1, 0), T + 0.1))["a"] == ["high noise", "could swap with b"]
    few = clean(np.array(quiet), paired=False)
    few = few._replace(y=few.y.clip(max=1))
    assert risks(quiet, rows=few) == {"a": [], "b": [], "c": ["few clean rows"]}


def test_classes_at_risk_come_first_and_are_all_counted():
    of = fitted(NAMES, counts=np.array([100, 10, 100, 10, 100, 100, 10.0]))
    facts = make(fitted=of, max_classes=2).facts["classes"]
    every = make(fitted=of).facts["classes"]
    assert facts["listed"] == every["listed"][:2]
    assert (facts["n_left_out"], facts["n_at_risk"]) == (5, sum(bool(k["risks"]) for k in every["listed"]))
    ranks = [(-len(k["risks"]), -k["noise"]) for k in every["listed"]]
    assert ranks == sorted(ranks)


# ---------------------------------------------------------------------------- calibration
def test_calibration_by_a_loop_over_bins():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.4] * 4, size=300)
    y = np.where(rng.random(300) < 0.7, proba.argmax(axis=1), rng.integers(4, size=300))
    found = calibration_facts(proba, y, 0.9)
    error, bins = 0.0, []
    for b in range(10):
        members = [n for n in range(300) if b / 10 < max(proba[n]) <= (b + 1) / 10]
        if members:
            right = np.mean([proba[n].argmax() == y[n] for n in members])
            sure = np.mean([max(proba[n]) for n in members])
            error += len(members) / 300 * abs(right - sure)
            bins.append((len(members), pytest.approx(sure), pytest.approx(right)))
    assert found["expected_calibration_error"] == pytest.approx(error)
    assert [(b["n_rows"], b["confidence"], b["accuracy"]) for b in found["bins"]] == bins
    assert found["accuracy"] == np.mean(proba.argmax(axis=1) == y)


def test_a_certain_and_right_classifier_is_calibrated():
    found = calibration_facts(np.eye(3), np.arange(3), 0.9)
    assert found["expected_calibration_error"] == 0
    assert [(b["from"], b["to"], b["n_rows"]) for b in found["bins"]] == [(0.9, 1.0, 3)]


# ---------------------------------------------------------------------------- rows
def test_listed_rows_are_the_label_issues():
    of = fitted(NAMES)
    rng = np.random.default_rng(3)
    proba, given = rng.dirichlet(np.full(7, 0.1), size=200), rng.integers(7, size=200)
    joint = [[proba[n, i] * of.T[i, given[n]] for i in range(7)] for n in range(200)]
    quality = np.array([row[j] / sum(row) for row, j in zip(joint, given, strict=True)])
    certainty = np.array([max(row) / sum(row) for row in joint])
    rows = judged(of.T)._replace(given=given, quality=quality, proposed=np.argmax(joint, axis=1), certainty=certainty)
    facts = make(fitted=of, judged=rows).facts["label_issues"]
    every = find_label_issues(proba, given, of.T)
    assert [row["row"] for row in facts["listed"]] == every.tolist()
    assert facts["n_issues"] == len(every)
    assert facts["n_expected"] == pytest.approx(sum(1 - q for q in quality))
    for row in facts["listed"]:
        n = row["row"]
        assert (row["given"], row["proposed"]) == (NAMES[given[n]], NAMES[int(np.argmax(joint[n]))])
        assert (row["given_probability"], row["proposed_probability"]) == (quality[n], certainty[n])
        assert row["sample"] == {"text": f"text of row {n}"}
    few = make(fitted=of, judged=rows, max_rows=5).facts["label_issues"]
    assert few["listed"] == facts["listed"][:5]
    assert few["n_issues"] == facts["n_issues"]


def test_a_classifier_that_agrees_with_more_labels_than_are_right_has_memorised():
    of = fitted(NAMES)
    right = 1 - make(fitted=of).facts["noise"]["rate"]
    for agreement, memorised in (right + 0.01, False), (right + 0.1, True):
        report = make(fitted=of, judged=judged(of.T)._replace(agreement=agreement))
        assert report.facts["label_issues"]["memorised"] == memorised
        assert any("memorised" in sentence for sentence in report.words["label_issues"]) == memorised


# ---------------------------------------------------------------------------- rows to verify
def test_with_so_many_rows_the_interval_is_as_wide_as_was_asked_for():
    kept = np.array([0.7, 0.5, 0.9])
    m = rows_needed(kept, None, Z, 0.05)
    rate = 1 - kept
    assert (Z * np.sqrt(rate * (1 - rate) / m) <= 0.05).all()
    assert (Z * np.sqrt(rate * (1 - rate) / (m - 1)) > 0.05).all()


def test_what_is_known_is_subtracted():
    """100 rows that were counted already are 100 rows less."""
    kept = np.array([0.7, 0.6])
    half = Z * np.sqrt(kept * (1 - kept) / 100)
    np.testing.assert_array_equal(rows_needed(kept, half, Z, 0.05), rows_needed(kept, None, Z, 0.05) - 100)
    assert (rows_needed(kept, np.array([0.05, 0.01]), Z, 0.05) == 0).all()


def test_a_rate_of_zero_needs_rows_too():
    assert rows_needed(np.array([1.0, 0.0]), None, Z, 0.05).tolist() == [math.ceil(Z**2 * 0.05 * 0.95 / 0.05**2)] * 2


def test_rows_at_random_reach_every_class():
    of = fitted(NAMES)
    limits = make(fitted=of).facts["limits"]
    half = [(of.bars[1][k, k] - of.bars[0][k, k]) / 2 for k in range(7)]
    m = rows_needed(of.T.diagonal(), np.array(half), Z, 0.05)
    shares = of.counts / of.counts.sum()
    assert limits["n_of_classes"] == m.sum()
    assert limits["n_at_random"] == max(math.ceil(k / share) for k, share in zip(m, shares, strict=True))
    assert {k["class"]: k["n_more"] for k in limits["listed"]} == {NAMES[k]: m[k] for k in range(7) if m[k]}


# ---------------------------------------------------------------------------- JSON
def test_facts_are_json_and_make_the_same_report_again():
    of = fitted(NAMES)
    report = make(fitted=of, clean=clean(of.T))
    read = json.loads(report.to_json())
    assert {name: value for name, value in read.items() if name != "words"} == report.facts
    assert read["words"] == report.words
    again = NoiseReport(read)
    assert again.to_html() == report.to_html()
    assert again.to_markdown() == report.to_markdown()


def test_facts_of_another_kind_are_refused():
    facts = make().facts
    for wrong in ({}, facts | {"schema_version": 2}, facts | {"schema": "other"}):
        with pytest.raises(ValueError, match=r"facts have schema.*reads 'noisytransition.NoiseReport', version 1"):
            NoiseReport(wrong)
