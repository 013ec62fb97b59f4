"""The documentation of public names: examples that can be copied and show results, parameters that are described."""

import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

from numpydoc.docscrape import NumpyDocString

import noisytransition
from noisytransition import methods

ROOT = Path(noisytransition.__file__).parents[1]
PACKAGES = ["", ".transition", ".datasets", ".losses", ".updates", ".selection", ".nets", ".meta_gradient", ".report"]
PACKAGES += [".comparison"]

# methods that torch and skorch call, and the fit: one line says when and with what
CALLED_BY_OTHERS = ("losses", "updates", "selection", "nets")


def public():
    """Public classes and functions by their full names."""
    for package in PACKAGES:
        module = import_module(noisytransition.__name__ + package)
        for name in sorted(module.__all__):
            shown = getattr(module, name)
            if inspect.isclass(shown) or inspect.isfunction(shown):
                yield f"{module.__name__}.{name}", shown


PUBLIC = dict(public())
# their example is docs/all_classifiers.rst
BASES = {cls.__name__: cls for cls in (methods.NoisyLabelClassifier, methods.NoiseModelMixin)}

# parts of methods, whose examples stand together, under their names
PARTS, PAGE = tuple(f"noisytransition.{part}." for part in ("losses", "nets", "selection", "updates")), "docs/parts.rst"

# an option of pytest's: numbers are compared as far as they are shown
doctest.register_optionflag("NUMBER")


SECTIONS = re.split(r"^`(\w+)`:\n", (ROOT / PAGE).read_text(), flags=re.MULTILINE)
ON_PAGE = dict(zip(SECTIONS[1::2], SECTIONS[2::2], strict=True))


def examples(name, shown):
    """Examples of a public name: in its docstring, of parts of methods below their name on the page."""
    text = ON_PAGE.get(name.rpartition(".")[2], "") if name.startswith(PARTS) else inspect.getdoc(shown) or ""
    return doctest.DocTestParser().get_examples(text)


def test_public_names_have_examples_that_run_and_import_what_they_show():
    """They import the name itself, or for a result the function that returns it."""
    missing = []
    for name, shown in PUBLIC.items():
        found, last = examples(name, shown), name.rpartition(".")[2]
        imports = {one.source for one in found if "import " in one.source}
        if all(one.options.get(doctest.SKIP) or one.source in imports for one in found):
            missing.append(f"{name}: no example")
        named = any(re.search(rf"\b{last}\b", one.source) for one in found if one.source not in imports)
        if not any("noisytransition" in line and (last in line or not named) for line in imports):
            missing.append(f"{name}: no import")
    assert not missing


def test_examples_show_more_than_truth_values_and_shapes():
    texts = {name: inspect.getdoc(shown) or "" for name, shown in PUBLIC.items()}
    texts |= {str(path): path.read_text() for path in (ROOT / "docs").rglob("*.rst") if "_build" not in path.parts}
    vague = re.compile(r"(True|False|\((\d+, ?)*\d*\))\n")
    found = [
        f"{name}: {one.source}"
        for name, text in texts.items()
        for one in doctest.DocTestParser().get_examples(text)
        if vague.fullmatch(one.want) and not one.options.get(doctest.SKIP)
    ]
    assert not found


def test_the_api_pages_have_all_public_names_once():
    pages = "".join((ROOT / "docs" / name).read_text() for name in ("api.rst", "parts.rst"))
    rows = re.findall(r"^   (?:\w+\.)?(\w+)$", pages, re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert {name.rpartition(".")[2] for name in PUBLIC} <= set(rows)


def described():
    """Public classes, functions and methods by name."""
    for name, shown in (PUBLIC | BASES).items():
        yield name, shown
        for method in dir(shown) if inspect.isclass(shown) else ():
            value = inspect.getattr_static(shown, method)
            if inspect.isfunction(value) and value.__module__.startswith("noisytransition") and method[0] != "_":
                yield f"{name}.{method}", value


def test_parameters_are_described():
    faults = []
    for name, shown in described():
        page = NumpyDocString(inspect.getdoc(shown) or "")
        entries = {
            one.strip().lstrip("*"): " ".join(entry.desc)
            for section in ("Parameters", "Attributes")
            for entry in page[section]
            for one in entry.name.split(",")
        }
        for one, text in entries.items():
            words, own = (set(re.findall(r"[a-z]+", of.lower())) for of in (text, one))
            if words <= own | {"the", "a", "of"}:
                faults.append(f"{name}: {one} has no description")
        is_method = inspect.isfunction(shown) and shown.__qualname__ != shown.__name__
        if not (is_method and shown.__module__.split(".")[1] in CALLED_BY_OTHERS):
            bases = [base for base in BASES.values() if inspect.isclass(shown) and issubclass(shown, base)]
            described_there = set().union(*(arguments(base) for base in bases if base is not shown))
            faults += [f"{name}: {one} is missing" for one in arguments(shown) - set(entries) - described_there]
    assert not faults, "\n".join(faults)


def test_parameters_of_classes_are_described_in_the_order_of_the_signature():
    for name, shown in (PUBLIC | BASES).items():
        if not inspect.isclass(shown):
            continue
        entries = NumpyDocString(inspect.getdoc(shown) or "")["Parameters"]
        order = [one for entry in entries for one in entry.name.split(", ")]
        given = [one for one in inspect.signature(shown).parameters if one in order]
        assert [one for one in order if one in given] == given, name


def arguments(shown):
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    given = inspect.signature(shown).parameters.values()
    return {one.name for one in given if one.kind not in kinds and one.name != "self" and one.name[0] != "_"}
