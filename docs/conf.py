"""Sphinx configuration."""

from runpy import run_path

from noisytransition import __version__

project = "noisytransition"
author = "the noisytransition developers"
copyright = f"2026, {author}"
version = release = __version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "numpydoc"]
autosummary_generate = True
numpydoc_show_class_members = False
default_role = "code"
exclude_patterns = ["_build"]
# the page that noise_report.rst shows
html_extra_path = [run_path("../examples/noise_report.py")["write"]("_build/extra")]
templates_path = ["_templates"]
html_theme = "furo"
autodoc_typehints = "none"  # the docstrings name the types
