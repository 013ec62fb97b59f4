"""A real browser for pages: Chromium, where it is installed."""

import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
# no network, no sandbox (as root there is none)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]


@contextmanager
def opened(url, width=1400, height=900, **context):
    """Open a page without a network; raise for errors on its console and in its scripts, and for missing files."""
    from playwright.sync_api import sync_playwright

    errors = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": width, "height": height}, offline=True, **context)
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("requestfailed", lambda request: errors.append(f"not loaded: {request.url}"))
        page.goto(url)
        yield page
        browser.close()
    assert not errors, errors


def overflow(page):
    """By how many pixels a page is wider than the screen; on a phone the docs' theme lets the whole text scroll."""
    return page.evaluate(
        "Math.max(...[document.documentElement, ...document.querySelectorAll('.content')]"
        ".map(node => node.scrollWidth - node.clientWidth))"
    )
