"""Pictures are closed after each test."""

import pytest


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pytest.importorskip("matplotlib.pyplot").close("all")
