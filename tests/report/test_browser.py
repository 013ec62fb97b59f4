"""The report in a real browser: sorting, filtering, no errors, width of the screen, dark mode."""

import numpy as np
import pytest
from browser import NEEDS_CHROMIUM, opened, overflow
from noise_reports import clean, make, some_model

pytestmark = NEEDS_CHROMIUM
NAMES = ["ant", 'bee, "the second"', "cat", "a class with a very long name that says all there is to say of it"]


@pytest.fixture(scope="module")
def report():
    clf = some_model(NAMES)
    texts = [f"row {i}, with a comma and a rather long text that goes on for a while" for i in range(200)]
    return make(clf, clean=clean(clf.transition_matrix_), samples=texts, index=[f"r{i}" for i in range(200)])


@pytest.fixture(scope="module")
def many(report):
    """Fifty of sixty classes, and pictures."""
    return make(some_model([f"class {k}" for k in range(60)]), samples=np.random.default_rng(0).random((200, 3, 9, 12)))


def address(report, tmp_path):
    report.save(tmp_path / "report.html")
    return (tmp_path / "report.html").as_uri()


def rows(page, column=None):
    """Values of the rows that are shown, or of one of their columns."""
    lines = page.eval_on_selector_all(
        "#rows tbody tr",
        "rows => rows.filter(r => !r.hidden).map(r => [...r.cells].map(c => c.dataset.v ?? c.textContent))",
    )
    return lines if column is None else [line[column] for line in lines]


@pytest.mark.parametrize(("which", "width"), [("report", 390), ("many", 1400)])
def test_nothing_is_wider_than_the_screen(which, width, request, tmp_path):
    with opened(address(request.getfixturevalue(which), tmp_path), width=width) as page:
        assert overflow(page) == 0
        beyond = page.eval_on_selector_all(
            "p, li, h2, .tile, .tools > *, figure, nav, details",
            "all => all.filter(e => e.getBoundingClientRect().right > innerWidth + 1).length",
        )
        assert beyond == 0
        pictures = page.eval_on_selector_all("img", "all => all.map(i => [i.complete, i.naturalWidth])")
        assert pictures == [[True, 12]] * len(pictures)


def test_rows_are_sorted_by_click_and_by_key_and_filtered(report, tmp_path):
    listed = report.facts["label_issues"]["listed"]
    with opened(address(report, tmp_path)) as page:
        assert rows(page, 1) == [row["row"] for row in listed]
        page.click("#rows th:nth-child(6) button")
        certainty = [float(value) for value in rows(page, 5)]
        assert certainty == sorted(row["suggested_probability"] for row in listed)
        page.click("#rows th:nth-child(6) button")
        assert [float(value) for value in rows(page, 5)] == sorted(certainty, reverse=True)
        assert page.get_attribute("#rows th:nth-child(6)", "aria-sort") == "descending"
        page.focus("#rows th:nth-child(2) button")
        page.keyboard.press("Enter")
        assert rows(page, 1) == sorted((row["row"] for row in listed), key=lambda name: int(name[1:]))
        assert page.get_attribute("#rows th:nth-child(6)", "aria-sort") is None
        page.click("#classes th:first-child button")
        first = page.eval_on_selector_all("#classes tbody tr", "all => all.map(r => r.cells[0].textContent)")
        assert first[1:] == ["ant", NAMES[1], "cat"]
        page.fill("#filter", "VERY R1")
        found = [row["row"] for row in listed if "r1" in row["row"] and NAMES[3] in (row["given"], row["suggested"])]
        assert 0 < len(found) < len(listed)
        assert sorted(rows(page, 1)) == sorted(found)
        assert page.inner_text("#told") == f"{len(found)} of {len(listed)} samples"


def test_cells_of_the_heat_map_are_read_by_pointer(report, many, tmp_path):
    for of, cell, told in (
        (report, "tr:nth-child(1) td:nth-of-type(3)", "ant → cat: 0."),
        (many, "tr:nth-child(2) td:last-child", "→ others: "),
    ):
        with opened(address(of, tmp_path)) as page:
            page.hover(f".heat tbody {cell}")
            assert told in page.inner_text("figcaption output")


@pytest.mark.parametrize(("scheme", "bright"), [("light", True), ("dark", False)])
def test_colours_follow_the_system(report, tmp_path, scheme, bright):
    def brightness(name):
        colour = page.evaluate(f"getComputedStyle(document.body).{name}")
        return np.mean([int(part) for part in colour[4:-1].split(",")])

    with opened(address(report, tmp_path), color_scheme=scheme) as page:
        assert (brightness("backgroundColor") > 200) == bright
        assert (brightness("color") < 100) == bright


def test_a_notebook_shows_it_in_a_frame_of_its_own(report, tmp_path):
    notebook = f"<style>td {{ font-size: 99px }}</style><h2>mine</h2>{report._repr_html_()}"
    (tmp_path / "notebook.html").write_text(notebook, encoding="utf-8")
    with opened((tmp_path / "notebook.html").as_uri()) as page:
        frame = page.frame_locator("iframe")
        assert frame.locator("h1").inner_text() == "Noise report"
        frame.locator("#rows th:nth-child(2) button").click()
        assert frame.locator("#rows th:nth-child(2)").get_attribute("aria-sort") == "ascending"
        assert frame.locator("#rows td").first.evaluate("cell => getComputedStyle(cell).fontSize") != "99px"
        assert page.evaluate("getComputedStyle(document.querySelector('h2')).fontSize") == "24px"
        assert overflow(page) == 0


def test_hostile_names_run_nothing(tmp_path):
    names = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "\"'><svg onload=alert(1)>"]
    report = make(some_model(names), samples=names[1:2] * 200, index=names[:1] * 200, title=names[2])
    with opened(address(report, tmp_path)) as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        page.hover(".heat tbody tr:nth-child(1) td:nth-of-type(2)")
        page.fill("#filter", names[0])
        assert rows(page, 1)
        assert page.inner_text("h1") == names[2]
