"""The built pages in a real browser: links, widths, formulas, pictures and search."""

import inspect
import os
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from browser import NEEDS_CHROMIUM, opened, overflow

from noisytransition import EMTransitionClassifier
from noisytransition.methods import METHODS

BUILT = Path(os.environ.get("BUILT_PAGES", "no folder"))
pytestmark = [
    NEEDS_CHROMIUM,
    pytest.mark.skipif(
        not (BUILT / "index.html").is_file(),
        reason="no built pages: python -m sphinx docs docs/_build/html, then set BUILT_PAGES=docs/_build/html",
    ),
]
# what does not show all of itself, as one line of text each
FAULTS = """() => {
    const faults = [], say = (what, node) => faults.push(what + ": " + node.outerHTML.slice(0, 120));
    for (const image of document.images) {
        image.loading = "eager";
        if (!(image.complete && image.naturalWidth > 0)) say("not loaded", image);
    }
    for (const formula of document.querySelectorAll("math")) {
        const box = formula.getBoundingClientRect();
        if (!(box.width > 0 && box.height > 0)) say("not drawn", formula);
    }
    return faults;
}"""
CUT_CODE = """() => [...document.querySelectorAll("article pre")]
    .filter(pre => pre.scrollWidth > pre.clientWidth)
    .map(pre => pre.textContent.split("\\n").sort((a, b) => b.length - a.length)[0])"""


def pages():
    return sorted(path for path in BUILT.rglob("*.html") if "_static" not in path.parts)


@pytest.mark.parametrize("part", [0, 1])  # two processes share the pages
def test_pages_are_drawn_and_fit_the_screen(part):
    faults = {}
    with opened((BUILT / "index.html").absolute().as_uri()) as page:
        for path in pages()[part::2]:
            page.goto(path.absolute().as_uri())
            found = []
            for width in (390, 1400):
                page.set_viewport_size({"width": width, "height": 900})
                found += [f"on a screen of {width}: {fault}" for fault in page.evaluate(FAULTS)]
                if wider := overflow(page):
                    found.append(f"{wider} pixels wider than a screen of {width}")
                found += [f"on a screen of {width}, code is cut off: {line}" for line in page.evaluate(CUT_CODE)]
            if found:
                faults[path.name] = found
    assert not faults, "\n".join(f"{name}: {fault}" for name, found in faults.items() for fault in found)


def test_every_link_within_the_pages_leads_somewhere():
    texts = {path.resolve(): path.read_text() for path in pages()}
    names = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in texts.items()}
    dead = []
    for path, text in texts.items():
        for link in set(re.findall(r'href="(?![a-z]+:)([^"]+)"', text)):
            file, _, name = unquote(link).partition("#")
            target = (path.parent / file.partition("?")[0]).resolve() if file else path
            if not target.exists() or (name and name not in names.get(target, {name})):
                dead.append(f"{path.name}: {link}")
    assert not dead, "\n".join(dead)


def test_the_gallery_has_output_and_pictures():
    examples = sorted((BUILT / "gallery").rglob("plot_*.html"))
    assert len(examples) >= 10
    for path in examples:
        text = path.read_text()
        assert "sphx-glr-script-out" in text, path.name
        assert "sphx-glr-single-img" in text, path.name


def test_api_pages_have_at_most_two_screens():
    long = {}
    api = [path for path in pages() if path.parent.name in ("api", "generated") or path.stem == "api"]
    with opened((BUILT / "api.html").absolute().as_uri()) as page:
        for path in api:
            page.goto(path.absolute().as_uri())
            screens = page.evaluate("document.querySelector('article').getBoundingClientRect().bottom + scrollY") / 900
            if screens > 2.1:  # fonts differ between machines
                long[path.stem] = screens
    assert len(api) > 65
    assert not long


def test_a_link_to_a_method_opens_it():
    class_page = (BUILT / "generated" / "noisytransition.LabelNoiseModel.html").absolute().as_uri()
    with opened(f"{class_page}#noisytransition.LabelNoiseModel.relabel") as page:
        members, opened_ones = page.locator("details.member"), page.locator("details.member[open]")
        assert members.count() > 15
        assert opened_ones.locator("> summary > code").all_text_contents() == ["relabel()"]
        page.locator(".toc-tree a:has-text('calibrate')").click()
        page.wait_for_function("document.querySelectorAll('details.member[open]').length === 2")
        assert page.locator("details.member[open] dt.sig:visible").count() == 2
        page.locator("details.member > summary > code", has_text="plan_verification()").click()
        page.wait_for_selector("details.member[open] dt.sig:has-text('width')")


@pytest.mark.parametrize("cls", METHODS.values(), ids=lambda cls: cls.__name__)
def test_a_class_page_has_all_parameters_in_order_and_all_methods(cls):
    name = f"noisytransition.{cls.__name__}"
    with opened((BUILT / "generated" / f"{name}.html").absolute().as_uri()) as page:
        described = page.locator("dl.class > dd > dl.field-list > dd").first
        parameters = described.locator("dt > strong").all_text_contents()
        methods = page.locator("dl.class > dd details.member > summary > code").all_text_contents()
    assert parameters == [*inspect.signature(cls).parameters, "**net_params"]
    assert {"fit()", "predict_proba()", "score()", "save()"} <= set(methods)
    assert ("find_label_issues()" in methods) == hasattr(cls, "find_label_issues")


def test_search_finds_attributes_and_methods():
    address = (BUILT / "search.html").absolute().as_uri()
    methods = [name for name in dir(EMTransitionClassifier) if name[0] != "_" and "request" not in name]
    not_found = []
    with opened(address) as page:
        for name in ["transition_matrix_", "oof_proba_", *methods]:
            page.goto(f"{address}?q={name}")
            page.wait_for_selector("#search-results p.search-summary:text-matches('finished|not match')")  # all hits
            hits = page.locator("#search-results li a").all_text_contents()
            shown = ("EMTransitionClassifier", f"Classifier.{name}", f"NoiseModelMixin.{name}", "NoisyLabelClassifier")
            if not any(part in hit for hit in hits for part in shown):
                not_found.append(name)
    # for methods of one's own, and scikit-learn's
    of_bases = {"validation_fraction", "get_metadata_routing"}
    assert set(not_found) <= of_bases, not_found


def test_search_shows_the_first_sentence_of_a_page():
    with opened((BUILT / "search.html").absolute().as_uri() + "?q=resume") as page:
        # the pages are read one after the other
        page.wait_for_selector("#search-results li p:has-text('resumed after an interruption')")
