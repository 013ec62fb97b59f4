"""Sphinx configuration."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the networks of the gallery are small: threads only wait for each other

import warnings
from runpy import run_path

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

from noisytransition import __version__

project = "noisytransition"
author = "the noisytransition developers"
copyright = f"2026, {author}"
version = release = __version__
extensions = [
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
autosummary_generate = True
numpydoc_show_class_members = False
default_role = "code"
exclude_patterns = ["_build"]
# the examples show `diagnostics_`; the variable is for the processes that they start
warnings.filterwarnings("ignore", message="T may be wrong")
os.environ["PYTHONWARNINGS"] = "ignore"
# the page that noise_report.rst shows
html_extra_path = [run_path("../examples/noise_report.py")["write"]("_build/extra")]
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"{project} {version}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_copy_source = False
html_show_search_summary = False  # summaries are fetched, which browsers refuse for files on a disk
autodoc_typehints = "none"  # the docstrings name the types

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("noisytransition",),
    "parallel": 2,
    "reference_url": {"noisytransition": None},  # names in the code are links
    "backreferences_dir": "generated/backreferences",
    "capture_repr": ("_repr_html_",),
    "write_computation_times": False,
    "min_reported_time": 1e9,  # a page says nothing of the machine that built it
}


def write_mathml(translator, node):
    """Write a formula as MathML: browsers draw it without a script and without a network."""
    block = node.tagname == "math_block"
    try:
        formula = tex2mathml(node.astext(), as_block=block)
    except MathError as error:
        logging.getLogger(__name__).warning("formula %r: %s", node.astext(), error, location=node)
        raise SkipNode from error
    translator.body.append(f'<div class="math">{formula}</div>' if block else formula)
    raise SkipNode


def setup(app):
    """Register the renderer of formulas."""
    visitors = (write_mathml, None)
    app.add_html_math_renderer("mathml", inline_renderers=visitors, block_renderers=visitors)


html_math_renderer = "mathml"
