"""Sphinx configuration."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the networks of the gallery are small: threads only wait for each other

import csv
import inspect
import json
import re
import tomllib
import warnings
from pathlib import Path
from runpy import run_path

from docutils import nodes
from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from numpydoc.docscrape import NumpyDocString
from sphinx.addnodes import desc, desc_content, desc_name, download_reference, pending_xref
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

from noisytransition import __version__
from noisytransition.methods import NoiseModelMixin, NoisyLabelClassifier

project = "noisytransition"
author = "the noisytransition developers"
copyright = f"2026, {author}"
version = release = __version__
extensions = [
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
autosummary_generate = True
numpydoc_show_class_members = False
default_role = "name"  # code; a link where it is the name of something documented
highlight_language = "text"  # blocks after "::" are algorithms and formulas
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
html_js_files = ["open_linked.js"]
html_copy_source = False
# a button copies code without prompts and results
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_selector = "article :is(.highlight-default, .highlight-python, .highlight-Python, .highlight-bash) pre"
urls = tomllib.loads(Path("../pyproject.toml").read_text())["project"]["urls"]
rst_epilog = ".. |links| replace:: " + " · ".join(f"`{name} <{url}>`__" for name, url in urls.items())
html_show_search_summary = False  # fetched, which browsers refuse for files on a disk; search_summaries.js has others
toc_object_entries_show_parents = "hide"  # "On this page" is narrow
autodoc_typehints = "none"  # the docstrings name the types

GALLERY = Path("../examples/gallery")
# class pages show examples, if there are any
autosummary_context = {"gallery": "".join(path.read_text() for path in GALLERY.rglob("plot_*.py"))}
sphinx_gallery_conf = {
    "examples_dirs": str(GALLERY),
    "gallery_dirs": "gallery",
    "subsection_order": [f"../examples/gallery/{name}" for name in ("first_steps", "data", "trust", "ongoing")],
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
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


class Name(SphinxRole):
    """Code, which becomes a link if it is the name of a class, function, method or page (``docs/....rst``)."""

    def run(self):
        """Make the node."""
        code = nodes.literal(self.rawtext, self.text)
        if not re.fullmatch(r"[A-Za-z_][\w.]*|docs/\w+\.rst", self.text):
            return [code], []
        context = {name: self.env.ref_context.get(name) for name in ("py:module", "py:class")}
        target = {"refdomain": "py", "reftype": "obj", "reftarget": self.text, "refdoc": self.env.docname}
        return [pending_xref(self.rawtext, code, **target, **context)], []


class Figure(SphinxRole):
    """A cell of a table: ``file of the repository | first cell of the line | heading of the column``."""

    def run(self):
        """Make the node; a cell that does not exist ends the build."""
        path, line, column = (part.strip() for part in self.text.split("|"))
        file = Path(self.env.srcdir).parent / path
        self.env.note_dependency(str(file))
        with file.open() as table:
            cells = {next(iter(row.values())): row for row in csv.DictReader(table)}
        return [nodes.inline(self.rawtext, cells[line][column])], []


class RepositoryFiles(SphinxTransform):
    """Make the path of a script or of its results, ``examples/...``, a link to a copy of that file."""

    default_priority = 500

    def apply(self):
        """Wrap each such path."""
        for code in list(self.document.findall(nodes.literal)):
            path = code.astext()
            named = re.fullmatch(r"(examples|tests)/[\w/]+\.(py|md)", path)
            if named and (Path(self.app.srcdir).parent / path).is_file():
                link = download_reference("", reftarget=f"/../{path}", refdoc=self.env.docname)
                code.replace_self(link)
                link += code


# a name that several classes have means the method of these
BASES = ("noisytransition.methods.NoiseModelMixin.", "noisytransition.methods.NoisyLabelClassifier.")


def find_name(app, env, node, content):
    """Find a name without its module: a method of the base classes, else the one class or function."""
    target, objects = node["reftarget"], env.domains["py"].objects
    if node.get("reftype") != "obj":
        return None
    if target.startswith("docs/"):
        page = target.removeprefix("docs/").removesuffix(".rst")
        title = nodes.inline("", env.titles[page].astext())
        return make_refnode(app.builder, node["refdoc"], page, "", title)
    kinds = {name: entry.objtype for name, entry in objects.items() if name.endswith("." + target)}
    found = [base + target for base in BASES if base + target in objects]
    found += [name for name, kind in kinds.items() if "." in target or kind in ("class", "function")]
    if not found:
        return None
    entry = objects[found[0]]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, found[0])


def add_inherited_parameters(app, what, name, obj, options, lines):
    """Describe all parameters of a classifier, in the order of its signature."""
    if what != "class" or not issubclass(obj, NoisyLabelClassifier):
        return
    page = NumpyDocString("\n".join(lines))
    of_base = NumpyDocString(inspect.getdoc(NoisyLabelClassifier))["Parameters"]
    described = {one.name: one for one in [*of_base, *page["Parameters"]]}
    page["Parameters"] = [described[one] for one in [*inspect.signature(obj).parameters, "**net_params"]]
    lines[:] = str(page).split("\n")


def name_default(app, what, name, obj, options, signature, returns):
    """Write the default optimizer as users do."""
    return signature and signature.replace("<class 'torch.optim.adam.Adam'>", "torch.optim.Adam"), returns


def fold_class(app, doctree, docname):
    """Fold the steps of a class, all but the first attributes, and parameters and methods that many classes have."""
    classes = [node for node in doctree.findall(desc) if node["objtype"] == "class"]
    for node in classes if app.builder.format == "html" else []:
        content = next(child for child in node if isinstance(child, desc_content))
        fields = [child for child in content if isinstance(child, nodes.field_list)]
        steps = [content.index(child) for child in content if isinstance(child, nodes.literal_block)]
        if steps and fields:
            fold(content, steps[0], content.index(fields[0]), "The steps")
        for entries in [one for field in fields for one in field.findall(nodes.definition_list)]:
            names = [entry[0].astext() for entry in entries]
            if "lr" in names:
                fold_entries(entries, names.index("lr"), "Training of the network: ")
            elif names[0].endswith("_") and len(names) > N_ATTRIBUTES:
                fold_entries(entries, N_ATTRIBUTES, "More attributes: ")


N_ATTRIBUTES = 6  # that are not folded


def fold_entries(entries, start, text):
    """Fold the entries of a list from a position on."""
    rest = nodes.definition_list("", *entries[start:])
    del entries[start:]
    entries.parent.append(rest)
    place = entries.parent.index(rest)
    fold(entries.parent, place, place + 1, text + ", ".join(entry[0].astext() for entry in rest))


def fold(parent, start, stop, *summary):
    """Fold nodes under a summary: a text or nodes."""
    shown = [nodes.inline("", one) if isinstance(one, str) else one for one in summary]
    closed = '<details class="fold"><summary>'
    parent[start:stop] = [raw(closed), *shown, raw("</summary>"), *parent[start:stop], raw("</details>")]


def fold_methods(app, doctree, docname):
    """Show the methods of a class as a table of names and first sentences; the rest opens on a click or by a link."""
    classes = [node for node in doctree.findall(desc) if node["objtype"] == "class"]
    for node in classes if app.builder.format == "html" else []:
        content = next(child for child in node if isinstance(child, desc_content))
        methods = [child for child in content if isinstance(child, desc)]
        shared = [one for one in methods if is_shared(node, one)]
        entries = [fold_method(one) for one in methods if one not in shared]
        of_T = nodes.container("", *(one for method in shared for one in fold_method(method)))
        content[:] = [child for child in content if not isinstance(child, desc)]
        content += [nodes.rubric("", "Methods")] * bool(methods) + [one for entry in entries for one in entry]
        if shared:
            content.append(of_T)
            names = ", ".join(name_of(one) for one in shared)
            fold(content, len(content) - 1, len(content), f"Noise and wrong labels: {names}")


def is_shared(of_class, method):
    """Tell whether a classifier has a method or attribute from `NoiseModelMixin`."""
    return name_of(of_class) not in ("NoiseModelMixin", "LabelNoiseModel") and name_of(method) in vars(NoiseModelMixin)


def name_of(node):
    """Return the name of a documented object."""
    return next(node.findall(desc_name)).astext()


def fold_method(node):
    """Fold a method under its name and first sentence."""
    content = next(child for child in node if isinstance(child, desc_content))
    first = content.pop(0).children if content and isinstance(content[0], nodes.paragraph) else []
    name = name_of(node) + "()" * (node["objtype"] == "method")
    summary = [raw('<details class="member"><summary>'), nodes.literal("", name), nodes.inline("", "", *first)]
    return [*summary, raw("</summary>"), node, raw("</details>")]


def raw(text):
    """Return a node of HTML."""
    return nodes.raw("", text, format="html")


def skip_fields(app, what, name, obj, skip, options):
    """Skip the fields of named tuples: the docstring of the class has them."""
    return True if type(obj).__name__ == "_tuplegetter" else None


def add_search_scripts(app, pagename, templatename, context, doctree):
    """Show a line for each page that the search finds."""
    if pagename == "search":
        app.add_js_file("summaries.js")
        app.add_js_file("search_summaries.js")


def write_summaries(app, error):
    """Write these lines: the first paragraph of each page."""
    if error is None and app.builder.name == "html":
        pages = {name: app.env.get_doctree(name).findall(nodes.paragraph) for name in app.env.found_docs}
        first = {name: next((p for p in texts if isinstance(p.parent, SHOWN)), None) for name, texts in pages.items()}
        lines = {name: " ".join(text.astext().split()) for name, text in first.items() if text is not None}
        (Path(app.outdir) / "_static" / "summaries.js").write_text(f"const SUMMARIES = {json.dumps(lines)};\n")


# parents of paragraphs that say what a page has, unlike notes
SHOWN = (nodes.section, desc_content)


def setup(app):
    """Register the renderer of formulas, the default role and what it links to, and the lines of the search."""
    app.add_role("name", Name())
    app.add_role("figure", Figure())
    app.add_transform(RepositoryFiles)
    app.connect("missing-reference", find_name)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("autodoc-process-docstring", add_inherited_parameters, priority=400)  # before numpydoc
    app.connect("autodoc-process-signature", name_default)
    app.connect("doctree-resolved", fold_class)
    app.connect("doctree-resolved", fold_methods)
    app.connect("html-page-context", add_search_scripts)
    app.connect("build-finished", write_summaries)
    visitors = (write_mathml, None)
    app.add_html_math_renderer("mathml", inline_renderers=visitors, block_renderers=visitors)


html_math_renderer = "mathml"
