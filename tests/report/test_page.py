"""The page, the Markdown and the JSON: the same numbers, no markup from names, small also for many classes."""

import html
import json
import re

import numpy as np
import pytest
from noise_reports import NO_BARS, Page, clean, fitted, judged, make

NAMES = ["ant", "bee", "cat", "dog"]
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"quoted\" and 'quoted'",
    "a|b`c`*d*_e_[f](g)#h\\",
    "name\nwith\tlines\u202e",
    "{{ 7 * 7 }}{% raw %}",
    "日本語 é ñ",
    "long " * 10_000,
    "&lt;b&gt; &amp;",
    "-->",
]


@pytest.fixture(scope="module")
def report():
    of = fitted(NAMES, diagnostics={"missing_class": "no clean row of class dog"})
    return make(fitted=of, clean=clean(of.T), samples=[np.eye(4)] * 200)


def numbers(text):
    return re.findall(r"\d+\.\d+", text)


# ---------------------------------------------------------------------------- twins
def test_all_numbers_of_tables_are_those_of_the_facts(report):
    """Each table of the page, and that of the Markdown, in the order of the facts."""
    facts, page = report.facts, Page(report.to_html())
    heat, flips, classes, bins, rows, limits, settings = page.tables
    T = np.array(facts["transition"]["matrix"])
    shown = [[float(cell or 0) for cell in line[1:]] for line in heat[1:]]
    np.testing.assert_allclose(shown, T, atol=0.0051)
    assert [line[0] for line in heat[1:]] == NAMES
    assert [(line[0], line[1], line[2], line[4]) for line in flips[1:]] == [
        (f["true"], f["noisy"], f"{f['probability']:.2f}", f"[{f['low']:.2f}, {f['high']:.2f}]") for f in facts["flips"]
    ]
    assert [line[0] for line in classes[1:]] == [k["class"] for k in facts["classes"]["listed"]]
    assert [line[1:4] for line in bins[1:]] == [
        [str(b["n_rows"]), f"{b['confidence']:.2f}", f"{b['accuracy']:.2f}"] for b in facts["calibration"]["bins"]
    ]
    assert [line[1:] for line in rows[1:]] == [
        [str(r["row"]), r["given"], r["proposed"], f"{r['given_probability']:.3f}", f"{r['proposed_probability']:.3f}"]
        for r in facts["label_issues"]["listed"]
    ]
    assert [line[0] for line in limits[1:]] == [k["class"] for k in facts["limits"]["listed"]]
    assert settings == [["lr", "0.1"], ["version of Python", "3"]]


def test_the_markdown_has_the_tables_of_the_page(report):
    page = Page(report.to_html())
    lines = [line for line in report.to_markdown().splitlines() if line.startswith("|") and "---" not in line]
    cells = [[cell.strip().replace("\\", "") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    flips, classes, bins, rows, limits = page.tables[1:6]
    found = [numbers(" ".join(line)) for line in cells]
    for table in (flips, bins, limits):
        for line in table[1:]:
            assert numbers(" ".join(line)) in found
    for line in rows[1:]:
        assert [*line[1:], "(picture)"] in cells
    for line in classes[1:]:
        assert [*line[:2], line[3], *line[4:]] in cells


def test_sentences_are_in_all_three(report):
    page, markdown = Page(report.to_html()), report.to_markdown().replace("\\", "")
    text = "".join(page.texts).replace("\N{NO-BREAK SPACE}", " ")
    words = json.loads(report.to_json())["words"]
    for section, sentences in words.items():
        for sentence in sentences:
            assert sentence in markdown, section
            assert sentence in text, section
    assert "A reason not to trust T: no clean row of class dog." in words["summary"]


def test_every_cell_of_the_heat_map_says_its_interval(report):
    T = report.facts["transition"]
    titles = [attrs["title"] for attrs in Page(report.to_html()).of("td") if "--a" in attrs.get("style", "")]
    assert titles == [
        f"{a} → {b}: {T['matrix'][i][j]:.3f} [{T['low'][i][j]:.2f}, {T['high'][i][j]:.2f}]"
        for i, a in enumerate(NAMES)
        for j, b in enumerate(NAMES)
    ]


# ---------------------------------------------------------------------------- what is missing
def test_what_is_missing_is_said_in_a_sentence():
    report = make(fitted=fitted(NAMES, bars=NO_BARS))
    text = "".join(Page(report.to_html()).texts)
    for reason in (NO_BARS, "No clean rows were given", "Not tested: it needs clean rows with both labels"):
        assert reason in text
        assert reason in report.to_markdown()
    assert report.facts["calibration"] is None
    assert report.facts["noise"]["low"] is None
    assert "no interval" in text
    unpaired = make(fitted=fitted(NAMES), clean=clean(fitted(NAMES).T, paired=False))
    assert "Not tested." in "".join(Page(unpaired.to_html()).texts)
    assert unpaired.facts["noise"]["verified"] is None


def test_a_report_without_noise_and_without_wrong_labels():
    of = fitted(NAMES, T=np.eye(4), bars=(np.eye(4), np.eye(4)))
    rows = judged(of.T)
    rows = rows._replace(quality=np.ones(200))
    report = make(fitted=of, judged=rows)
    assert report.facts["label_issues"]["listed"] == []
    assert report.words["summary"][:2] == [
        "About 0 % of the labels are wrong (90 % interval: 0 % to 0 %).",
        "No flip has a probability of 0.5 % or more.",
    ]
    assert "No class is at risk" in str(report)
    assert Page(report.to_html()).open == []


def test_disagreement_with_verified_rows_is_said():
    of = fitted(NAMES)
    rows = clean(of.T)
    agreeing = make(fitted=of, clean=rows).words["noise"][1]
    assert agreeing.endswith("The two agree.")
    wrong = make(fitted=of, clean=rows._replace(y_noisy=(rows.y + 1) % 4)).words["noise"][1]
    assert "80 verified rows, 80 have a wrong label: 100 %" in wrong
    assert "do not agree" in wrong


# ---------------------------------------------------------------------------- text of others
def test_nothing_that_a_user_names_is_markup():
    of = fitted(
        HOSTILE, diagnostics={"x": HOSTILE[0]}, settings={"parameters": {HOSTILE[1]: HOSTILE[0]}, "versions": {}}
    )
    rows = judged(of.T)
    texts = [HOSTILE[i % len(HOSTILE)] for i in range(200)]
    report = make(fitted=of, judged=rows, clean=clean(of.T), samples=texts, index=texts, title=HOSTILE[0])
    harmless = make([f"class {k}" for k in range(len(HOSTILE))], clean=clean(of.T))
    page = Page(report.to_html())
    kinds = [{tag for tag, _ in Page(each.to_html()).elements} for each in (report, harmless)]
    assert kinds[0] == kinds[1]
    assert len(page.of("script")) == 1
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert page.open == []
    assert "49" not in page.texts
    assert "日本語 é ñ" in page.texts
    assert len(report.to_html()) < 2**20
    json.loads(report.to_json())
    markdown = report.to_markdown()
    assert "<script" not in markdown
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in markdown.splitlines() if line.startswith("| ")]
    assert set(widths) == {12, 6, 8, 7, 4, 3}  # columns of the tables, and one


def test_the_frame_of_a_notebook_holds_the_page(report):
    frame = Page(report._repr_html_())
    ((tag, attrs),) = frame.elements
    assert tag == "iframe"
    assert attrs["srcdoc"] == report.to_html()
    assert attrs["sandbox"] == "allow-scripts"
    assert html.escape("<") in report._repr_html_()


# ---------------------------------------------------------------------------- one file, and not a large one
def test_the_page_loads_nothing(report):
    page = Page(report.to_html())
    for _, attrs in page.elements:
        for name in ("src", "href", "action", "srcset"):
            assert attrs.get(name, "data:").startswith(("data:", "#"))
    assert not re.search(r"url\(|@import|https?://", report.to_html())
    policy = next(attrs["content"] for attrs in page.of("meta") if "http-equiv" in attrs)
    assert policy.startswith("default-src 'none'")
    targets = {attrs["href"][1:] for attrs in page.of("a")}
    assert targets == {attrs["id"] for attrs in page.of("section")}


def test_a_thousand_classes_and_a_million_rows_are_below_a_megabyte():
    """With 200 pictures of 32 x 32 pixels of chance, which cannot be compressed."""
    names = [f"a class with the number {k}" for k in range(1000)]
    of = fitted(names)
    rng = np.random.default_rng(0)
    given, quality = rng.integers(1000, size=10**6), rng.random(10**6)
    rows = judged(of.T)._replace(given=given, quality=quality, proposed=given[::-1], certainty=quality)
    noise = rng.integers(256, size=(1, 32, 32, 3)).astype(np.uint8)
    report = make(fitted=of, judged=rows, samples=np.broadcast_to(noise, (10**6, 32, 32, 3)))
    sizes = {kind: len(text.encode()) for kind, text in (("html", report.to_html()), ("json", report.to_json()))}
    assert sizes["html"] < 1.6e6  # of which 0.83 MB are the pictures
    assert sizes["json"] < 1.3e6
    without = make(fitted=of, judged=rows, samples=np.zeros((10**6, 1)))
    assert len(without.to_html().encode()) < 0.75e6
    assert len(without.to_markdown().encode()) < 0.2e6
    text = "".join(Page(report.to_html()).texts)
    assert "950 classes left out" in text
    assert "left out; raise max_rows" in text


# ---------------------------------------------------------------------------- files
def test_the_suffix_says_how_it_is_saved(report, tmp_path):
    for suffix, text in (".html", report.to_html()), (".md", report.to_markdown()), (".json", report.to_json()):
        report.save(tmp_path / f"report{suffix}")
        assert (tmp_path / f"report{suffix}").read_text(encoding="utf-8") == text
    report.save(str(tmp_path / "REPORT.HTML"))
    with pytest.raises(ValueError, match=r"'report.pdf' ends in '.pdf'; give one that ends in .html, .md, .json"):
        report.save("report.pdf")


def test_what_is_printed(report):
    assert str(report).splitlines() == report.words["summary"]
    assert repr(report).startswith("<NoiseReport: 200 rows, 4 classes. About ")
