"""The page and the JSON: the same numbers, no markup from names, small also for many classes."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from noise_reports import Page, clean, judged, make, some_model

from noisytransition import LabelNoiseModel
from noisytransition.report import NoiseReport, noise_report

NAMES = ["ant", "bee", "cat", "dog"]
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"quoted\" and 'quoted'",
    "name\nwith\tlines\u202e",
    "{{ 7 * 7 }}{% raw %}",
    "日本語 é ñ",
    "long " * 10_000,
    "&lt;b&gt; &amp;",
    "-->",
]


@pytest.fixture(scope="module")
def report():
    clf = some_model(NAMES, diagnostics={"missing_class": "no clean row of class dog"})
    return make(clf, clean=clean(clf.transition_matrix_), samples=[np.eye(4)] * 200)


def texts(report):
    return "".join(Page(report.to_html()).texts).replace("\N{NO-BREAK SPACE}", " ")


def test_all_numbers_of_tables_are_those_of_the_facts(report):
    facts, page = report.facts, Page(report.to_html())
    heat, flips, classes, bins, rows = page.tables
    T = np.array(facts["transition"]["matrix"])
    shown = [[float(cell or 0) for cell in line[1:]] for line in heat[1:]]
    np.testing.assert_allclose(shown, T, atol=0.0051)
    assert [line[0] for line in heat[1:]] == NAMES
    assert [(line[0], line[1], line[2], line[4]) for line in flips[1:]] == [
        (f["true"], f["noisy"], f"{f['probability']:.2f}", f"[{f['low']:.2f}, {f['high']:.2f}]") for f in facts["flips"]
    ]
    assert [(line[0], line[7]) for line in classes[1:]] == [
        (k["class"], f"{k['n_to_verify']:,}") for k in facts["classes"]["listed"]
    ]
    assert [line[1:4] for line in bins[1:]] == [
        [str(b["n_rows"]), f"{b['confidence']:.2f}", f"{b['accuracy']:.2f}"] for b in facts["calibration"]["bins"]
    ]
    assert [line[1:] for line in rows[1:]] == [
        [str(r["row"]), r["given"], r["suggested"]]
        + [f"{r[kind]:.3f}" for kind in ("given_probability", "suggested_probability")]
        for r in facts["label_issues"]["listed"]
    ]
    titles = [attrs["title"] for attrs in page.of("td") if "--a" in attrs.get("style", "")]
    low, high = facts["transition"]["low"], facts["transition"]["high"]
    assert titles == [
        f"{a} → {b}: {T[i][j]:.3f} [{low[i][j]:.2f}, {high[i][j]:.2f}]"
        for i, a in enumerate(NAMES)
        for j, b in enumerate(NAMES)
    ]


def test_sentences_are_on_the_page_which_loads_nothing(report):
    page = Page(report.to_html())
    for _, attrs in page.elements:
        for name in ("src", "href", "action", "srcset"):
            assert attrs.get(name, "data:").startswith(("data:", "#"))
    assert not re.search(r"url\(|@import|https?://", report.to_html())
    assert {attrs["href"][1:] for attrs in page.of("a")} == {attrs["id"] for attrs in page.of("section")}
    text = texts(report)
    for sentences in report.words.values():
        for sentence in sentences:
            assert sentence in text
    assert "A reason not to trust T: no clean row of class dog." in report.words["summary"]
    assert str(report).splitlines() == report.words["summary"]


def test_what_is_missing_is_said_in_a_sentence():
    report = make(some_model(NAMES, bars=None))
    for reason in ("There are no intervals", "Not measured", "Not tested", "no interval"):
        assert reason in texts(report)
    assert report.facts["calibration"] is report.facts["noise"]["low"] is None


def test_a_report_without_noise_and_without_wrong_labels():
    clf = some_model(NAMES, T=np.eye(4), counts=np.full(4, 50.0), bars=(np.eye(4), np.eye(4)))
    report = make(clf, rows=judged(np.eye(4))._replace(quality=np.ones(200)))
    assert report.facts["label_issues"]["listed"] == []
    assert "90 % interval: 0 % to 0 %" in str(report)
    assert "No class is at risk" in str(report)
    assert Page(report.to_html()).open == []


# ---------------------------------------------------------------------------- text of others
def test_nothing_that_a_user_names_is_markup():
    clf = some_model(HOSTILE, diagnostics={"x": HOSTILE[0]})
    named = [HOSTILE[i % len(HOSTILE)] for i in range(200)]
    rows = clean(clf.transition_matrix_)
    report = make(clf, clean=rows, samples=named, index=named, title=HOSTILE[0])
    harmless = make(some_model([f"class {k}" for k in range(len(HOSTILE))]), clean=rows)
    page = Page(report.to_html())
    kinds = [{tag for tag, _ in Page(each.to_html()).elements} for each in (report, harmless)]
    assert kinds[0] == kinds[1]
    assert len(page.of("script")) == 1
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert page.open == []
    assert "{{ 7 * 7 }}{% raw %}" in page.texts
    assert "日本語 é ñ" in page.texts
    assert len(report.to_html()) < 2**20


# ---------------------------------------------------------------------------- one file, and not a large one
def test_the_page_does_not_grow_with_the_data():
    """A page with 200 random images of 32 x 32 pixels, which cannot be compressed."""
    clf = some_model([f"a class with the number {k}" for k in range(300)])
    rng = np.random.default_rng(0)
    given, quality = rng.integers(300, size=10**5), rng.random(10**5)
    rows = judged(clf.transition_matrix_)._replace(
        noisy=given, is_verified=np.zeros(10**5, dtype=bool), quality=quality, suggested=given, certainty=quality
    )
    noise = rng.integers(256, size=(1, 32, 32, 3)).astype(np.uint8)
    report = make(clf, rows=rows, samples=np.broadcast_to(noise, (10**5, 32, 32, 3)))
    assert len(report.to_html().encode()) < 1.6e6  # of which 0.83 MB are the pictures
    assert "250 classes with less noise" in texts(report)


def test_the_suffix_says_how_it_is_saved_and_a_notebook_has_a_frame(report, tmp_path):
    ((tag, attrs),) = Page(report._repr_html_()).elements
    assert (tag, attrs["sandbox"]) == ("iframe", "allow-scripts")
    assert attrs["srcdoc"] == report.to_html()
    report.save(tmp_path / "report.HTML")
    assert (tmp_path / "report.HTML").read_text(encoding="utf-8") == report.to_html()
    report.save(str(tmp_path / "report.json"))
    again = NoiseReport(json.loads((tmp_path / "report.json").read_text(encoding="utf-8")))
    assert again.to_html() == report.to_html()
    with pytest.raises(ValueError, match="html"):
        report.save("report.pdf")


def test_sources_of_labels_have_a_section():
    rng, y = np.random.default_rng(0), np.arange(300) % 3
    right = {HOSTILE[0]: 0.9, "Ben": 0.6, "Eve": 0.4}
    labels = pd.DataFrame({who: np.where(rng.random(300) < p, y, (y + 1) % 3) for who, p in right.items()})
    labels["verified"] = np.where(np.arange(300) < 90, y, -1)
    proba = 0.7 * np.eye(3)[y] + 0.1
    report = noise_report(LabelNoiseModel().fit(proba, labels), proba, labels)
    listed = report.facts["sources"]["listed"]
    assert [source["source"] for source in listed] == ["Eve", "Ben", HOSTILE[0]]  # from the worst to the best
    for source in listed:
        assert source["lower"] < np.mean(labels[source["source"]] == y) < source["upper"]
    page = Page(report.to_html())
    assert [line[:3] for line in page.tables[-1][1:]] == [[s["source"], "300", "90"] for s in listed]
    assert report.words["sources"][0] in str(report)
    assert "T differs between sources" in texts(report)
    assert "A reason not to trust T: T differs" not in str(report)
