"""Facts of a report, against loops."""

import math

import numpy as np
import pytest
from noise_reports import clean, judged, make, some_model
from scipy.stats import beta

from noisytransition.report import _facts as module
from noisytransition.report._facts import Draw, _calibration

NAMES = [f"class {k}" for k in range(7)]


# ---------------------------------------------------------------------------- share of wrong labels
def test_share_of_wrong_labels_is_the_sum_over_classes_and_verified_samples_are_counted():
    clf = some_model(NAMES)
    T, (low, high) = clf.transition_matrix_, clf.transition_interval(0.9)
    rate = below = above = 0.0
    for i in range(7):
        weight = clf.noisy_class_counts_[i] / sum(clf.noisy_class_counts_)
        rate += weight * (1 - T[i, i])
        below += (weight * (high[i, i] - T[i, i])) ** 2
        above += (weight * (T[i, i] - low[i, i])) ** 2
    noise = make(clf).facts["noise"]
    assert noise["rate"] == pytest.approx(rate)
    assert noise["low"] == pytest.approx(rate - math.sqrt(below))
    assert noise["high"] == pytest.approx(rate + math.sqrt(above))
    rows = clean(T)
    report = make(clf, clean=rows)
    verified, wrong = report.facts["noise"]["verified"], int((rows.y != rows.y_noisy).sum())
    assert (verified["n_rows"], verified["rate"]) == (80, pytest.approx(wrong / 80))
    bounds = beta(wrong + 0.5, 80.5 - wrong).ppf([0.05, 0.95])  # Jeffreys' prior
    np.testing.assert_allclose([verified["low"], verified["high"]], bounds)
    assert report.words["noise"][1].endswith("Both estimates agree.")
    sentence = make(clf, clean=rows._replace(y_noisy=(rows.y + 1) % 7)).words["noise"][1]
    assert "80 verified samples: 100 %" in sentence
    assert "estimates disagree" in sentence


# ---------------------------------------------------------------------------- T, flips, classes
def test_flips_are_the_ten_largest_entries_off_the_diagonal():
    clf = some_model(NAMES)
    T = clf.transition_matrix_
    every = sorted(((T[i, j], NAMES[i], NAMES[j]) for i in range(7) for j in range(7) if i != j), reverse=True)
    facts = make(clf).facts
    assert [(f["probability"], f["true"], f["noisy"]) for f in facts["flips"]] == every[:10]
    for flip in facts["flips"]:
        i, j = NAMES.index(flip["true"]), NAMES.index(flip["noisy"])
        assert flip["n_rows"] == clf.noisy_class_counts_[i] * T[i, j]
        assert [flip["low"], flip["high"]] == [
            clf.transition_interval(0.9)[0][i, j],
            clf.transition_interval(0.9)[1][i, j],
        ]


def test_the_heat_map_has_the_classes_with_the_most_noise_and_sums_of_the_others(monkeypatch):
    clf = some_model(NAMES)
    every = make(clf).facts["classes"]
    monkeypatch.setattr(module, "_MOST_CLASSES", 3)
    facts = make(clf).facts
    T, found = clf.transition_matrix_, facts["transition"]
    noisiest = sorted(range(7), key=lambda k: T[k, k])[:3]
    assert found["classes"] == [NAMES[k] for k in sorted(noisiest)]
    assert found["n_left_out"] == facts["classes"]["n_left_out"] == 4
    for row, others, i in zip(found["matrix"], found["other_classes"], sorted(noisiest), strict=True):
        assert row == [T[i, j] for j in sorted(noisiest)]
        assert others == pytest.approx(sum(T[i, j] for j in range(7) if j not in noisiest))
    assert facts["classes"]["listed"] == every["listed"][:3]
    assert facts["classes"]["n_at_risk"] == sum(bool(k["risks"]) for k in every["listed"])
    ranks = [(-len(k["risks"]), -k["noise"]) for k in every["listed"]]
    assert ranks == sorted(ranks)


def risks(T, counts=(100, 100, 100), bars=None):
    clf = some_model("abc", T=np.array(T, dtype=float), counts=np.array(counts, dtype=float), bars=bars)
    return {of_class["class"]: of_class["risks"] for of_class in make(clf).facts["classes"]["listed"]}


def test_risks_of_classes():
    quiet = [[0.9, 0.1, 0], [0, 0.95, 0.05], [0.05, 0, 0.95]]
    assert risks(quiet) == {"a": [], "b": [], "c": []}
    assert risks([[0.4, 0.35, 0.25], *quiet[1:]])["a"] == ["more labels are wrong than correct"]
    assert risks([[0.65, 0.35, 0], *quiet[1:]])["a"] == ["high noise"]
    assert risks([[0.45, 0.55, 0], *quiet[1:]])["a"][1] == "could swap with b"
    assert risks(quiet, counts=(100, 29, 100))["b"] == ["few samples"]
    T = np.array([[0.6, 0.4, 0], *quiet[1:]])
    assert risks(T, bars=(T, T))["a"] == ["high noise"]
    assert risks(T, bars=(np.maximum(T - 0.1, 0), T + 0.1))["a"] == ["high noise", "could swap with b"]


def test_samples_to_verify_are_those_of_a_plan():
    model = some_model(NAMES)
    planned = model.plan_verification(width=0.05).table.n_to_verify
    assert {of["class"]: of["n_to_verify"] for of in make(model).facts["classes"]["listed"]} == planned.to_dict()


# ---------------------------------------------------------------------------- calibration and rows
def test_calibration_by_a_loop_over_bins():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.4] * 4, size=300)
    y = np.where(rng.random(300) < 0.7, proba.argmax(axis=1), rng.integers(4, size=300))
    found = _calibration(proba, y, Draw(np.ones(300)), 0.9)
    error, bins = 0.0, []
    for b in range(10):
        members = [n for n in range(300) if b / 10 < max(proba[n]) <= (b + 1) / 10]
        if members:
            right = np.mean([proba[n].argmax() == y[n] for n in members])
            sure = np.mean([max(proba[n]) for n in members])
            error += len(members) / 300 * abs(right - sure)
            bins.append((b / 10, len(members), pytest.approx(sure), pytest.approx(right)))
    assert found["expected_calibration_error"] == pytest.approx(error)
    assert [(b["from"], b["n_rows"], b["confidence"], b["accuracy"]) for b in found["bins"]] == bins
    assert found["accuracy"] == np.mean(proba.argmax(axis=1) == y)
    times = rng.integers(1, 4, size=300)
    weighted = _calibration(proba, y, Draw(times.astype(float)), 0.9)
    repeated = _calibration(proba.repeat(times, axis=0), y.repeat(times), Draw(np.ones(times.sum())), 0.9)
    for name in ("accuracy", "confidence", "expected_calibration_error"):
        assert weighted[name] == pytest.approx(repeated[name])
    assert weighted["high"] - weighted["low"] > found["high"] - found["low"]  # weights add no samples
    copies = Draw(np.ones(900), np.arange(300).repeat(3))
    grouped = _calibration(proba.repeat(3, axis=0), y.repeat(3), copies, 0.9)
    assert (grouped["low"], grouped["high"]) == (pytest.approx(found["low"]), pytest.approx(found["high"]))


def test_a_classifier_that_agrees_with_more_labels_than_are_right_has_memorised():
    clf = some_model(NAMES)
    right = 1 - make(clf).facts["noise"]["rate"]
    for agreement, memorised in (right + 0.01, False), (right + 0.1, True):
        report = make(clf, rows=judged(clf.transition_matrix_)._replace(agreement=agreement))
        assert any("memorised" in sentence for sentence in report.words["label_issues"]) == memorised
