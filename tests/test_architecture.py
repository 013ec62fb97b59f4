"""Limits of the design: direction of imports, light imports, and sizes."""

import ast
import functools
import graphlib
import inspect
import itertools
import re
import runpy
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import noisytransition
from noisytransition import methods

ROOT = Path(noisytransition.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
STRUCTURE = ROOT.parent / ".ci" / "structure.py"

TORCH, FRAMES = {"torch", "skorch"}, {"scipy", "pandas"}
ARRAYS = {"labels", "transition", "likelihood", "noise_model"}
# room -> what it may import besides the standard library and numpy; rooms below stand above
ALLOWED = {
    "labels": {"scipy", "sklearn"},
    "transition": {"scipy", "labels"},
    "likelihood": {"scipy", "labels", "transition"},
    "noise_model": FRAMES | {"labels", "transition", "likelihood"},
    "report": {"scipy", "jinja2", "PIL", "labels", "transition", "noise_model"},
    "losses": {"torch"},
    "meta_gradient": {"torch"},
    "nets": TORCH | {"scipy", "meta_gradient"},
    "persistence": TORCH | {"safetensors", "nets"},
    "updates": TORCH | {"losses", "meta_gradient", "nets"},
    "selection": TORCH | {"scipy", "nets"},
    "data": TORCH | {"sklearn", "scipy", "meta_gradient", "nets", "labels"},
    "fitting": TORCH
    | ARRAYS
    | {"sklearn", "scipy", "joblib", "tqdm"}
    | {"losses", "meta_gradient", "nets", "persistence", "updates", "selection"},
    "base": TORCH | FRAMES | ARRAYS | {"sklearn", "nets", "persistence", "report", "data", "fitting"},
    "methods": TORCH
    | FRAMES
    | ARRAYS
    | {"sklearn", "losses", "nets", "persistence", "updates"}
    | {"selection", "data", "fitting", "base"},
    "model_selection": {"sklearn", "data", "labels", "transition"},
    "comparison": FRAMES | {"sklearn", "joblib", "methods", "datasets", "transition", "labels"},
    "datasets": {"torch", "transition", "labels"},
    "__main__": {"sklearn", "pandas", "skrub", "methods"},
    "__init__": {"methods", "comparison", "datasets", "nets", "model_selection", "transition"}
    | {"likelihood", "noise_model"},
}


@functools.cache
def tree(path):
    return ast.parse(path.read_text())


def layer(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def running(path):
    """Nodes of a file, without imports for type checkers."""
    for_types = {
        id(node)
        for block in ast.walk(tree(path))
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    return [node for node in ast.walk(tree(path)) if id(node) not in for_types]


def imported(path):
    """Top-level packages, and layers of the library, that a file imports anywhere."""
    depth = len(path.relative_to(ROOT).parts)
    for node in running(path):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level in (0, depth):
            yield node.module.split(".")[0]


def test_imports_go_one_way():
    assert {layer(path) for path in FILES} == set(ALLOWED)
    for path in FILES:
        free = sys.stdlib_module_names | {"numpy", layer(path)}
        assert set(imported(path)) - free <= ALLOWED[layer(path)], path


def imported_files(path):
    """Files of the library that a file imports when it runs."""
    package = path.relative_to(ROOT).parent.parts
    for node in running(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            at = ROOT.joinpath(*package[: len(package) - node.level + 1], *(node.module or "").split("."))
            for place in (at, *(at / alias.name for alias in node.names)):
                yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.exists())


def test_there_are_no_circles():
    """No import cycles between files; between packages, `arrows` would not end."""
    files = {path: set(imported_files(path)) - {path} for path in FILES if path.name != "__init__.py"}
    graphlib.TopologicalSorter(files).prepare()  # raises for a circle


def arrows():
    """Imports between packages, without indirect ones."""
    packages = set(ALLOWED) - {"__init__", "__main__"}
    imports = {(layer(path), name) for path in FILES for name in imported(path)}
    of = {a: {b for c, b in imports if c == a and b in packages - {a}} for a in sorted(packages)}

    def below(a):
        return of[a].union(*map(below, of[a]))

    return {f"{a} --> {b}" for a in of for b in of[a] if not any(b in below(other) for other in of[a] - {b})}


def test_the_picture_of_the_packages_is_that_of_the_imports():
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    assert set(re.findall(r"\w+ --> \w+", text)) == arrows()


def test_heavy_packages_are_imported_on_use_alone():
    code = """
import sys
for name in ("torch", "skorch", "sklearn", "matplotlib", "pandas", "torchvision", "jinja2", "joblib"):
    sys.modules[name] = None
import numpy as np
import noisytransition, noisytransition.transition
assert noisytransition.transition_error([[1, 0], [0, 1]], [[1, 0], [0, 1]]) == 0
assert noisytransition.flip_labels([0, 1], [[0, 1], [1, 0]]).tolist() == [1, 0]
rng = np.random.default_rng(0)
proba, y = rng.dirichlet(np.ones(3), size=60), rng.integers(3, size=60)
model = noisytransition.LabelNoiseModel(proba_of="true").fit(proba, y)
model.find_label_issues(proba, y, as_frame=False), model.transition_summary()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_no_message_steers():
    """No condition, and no value, comes from a key of `diagnostics_`."""
    for node in itertools.chain.from_iterable(ast.walk(tree(path)) for path in FILES):
        parts = []
        if isinstance(node, ast.Compare):
            parts = node.comparators
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            parts = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            parts = [node.func.value]
        assert not any(isinstance(part, ast.Attribute) and part.attr == "diagnostics_" for part in parts)


def test_all_public_names_are_there():
    assert all(hasattr(noisytransition, name) for name in noisytransition.__all__)
    assert set(noisytransition.__all__) <= set(dir(noisytransition))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        noisytransition.Nothing  # noqa: B018


def test_a_method_has_its_places():
    """Places that docs/adding_a_method.rst names: METHODS, public names, table of methods; of these follows the API."""
    bases = {methods.NoisyLabelClassifier, methods.NoiseModelMixin, methods.TransitionClassifierCV}
    imported_here = {value for value in vars(methods).values() if isinstance(value, type)}
    assert set(methods.METHODS.values()) == imported_here - bases
    names = {cls.__name__ for cls in methods.METHODS.values()}
    assert names <= set(noisytransition.__all__)
    table = (Path(__file__).parents[1] / "docs" / "methods" / "index.rst").read_text()
    assert names <= set(re.findall(r"^ *`?(\w+)", table, re.MULTILINE))


def test_a_classifier_is_composed_of_few_classes_and_has_few_parameters():
    for cls in [*methods.METHODS.values(), methods.TransitionClassifierCV]:
        assert sum(base.__module__.startswith("noisytransition.") for base in cls.__mro__) <= 3
        parameters = inspect.signature(cls).parameters.values()
        assert len([p for p in parameters if p.kind is not p.VAR_KEYWORD]) <= 20


# ---------------------------------------------------------------------------- budgets: what a reader must know
def without_docstrings(path):
    """Lines that docstrings take."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [n for n in ast.walk(tree(path)) if isinstance(n, documented) and ast.get_docstring(n) is not None]
    return {line for n in nodes for line in range(n.body[0].lineno, n.body[0].end_lineno + 1)}


def lines_of_code(path):
    """Lines without docstrings, comments and blank lines."""
    text, left_out = path.read_text(), without_docstrings(path)
    lines = (line.strip() for i, line in enumerate(text.splitlines(), 1) if i not in left_out)
    return sum(bool(line) and not line.startswith("#") for line in lines)


def lengths_of_functions():
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
                yield f"{path.relative_to(ROOT)}:{node.name}", node.end_lineno - body[0].lineno + 1


def test_the_package_is_small():
    assert sum(len(path.read_text().splitlines()) for path in FILES) <= 14_160
    assert sum(map(lines_of_code, FILES)) <= 8_115
    assert len(FILES) <= 79


def test_functions_are_small():
    lengths = dict(lengths_of_functions())
    assert statistics.median(lengths.values()) <= 8
    assert {name: n for name, n in lengths.items() if n > 50} == {}


def test_a_line_has_one_thought():
    """Few assignments of a tuple to a tuple, and few names in one function."""
    tuples, names = 0, {}
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
                tuples += isinstance(node.value, ast.Tuple | ast.GeneratorExp)
            elif isinstance(node, ast.FunctionDef):
                used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                names[f"{path.relative_to(ROOT)}:{node.name}"] = len(
                    used | {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
                )
    assert tuples <= 0.012 * sum(map(lines_of_code, FILES))
    assert {name: n for name, n in names.items() if n > 35} == {}


def test_public_names_are_few():
    public = set()
    for path in FILES:
        for node in tree(path).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                public |= {n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)}
    assert len(public) <= 80


@pytest.mark.skipif(not STRUCTURE.exists(), reason="needs .ci/structure.py, which a source archive does not have")
@pytest.mark.parametrize("name", ["meta-transition", pytest.param("EM", marks=pytest.mark.slow)])
def test_a_fit_is_a_short_walk(name):
    fit = runpy.run_path(str(STRUCTURE))["fit"]
    functions, files, calls = fit(methods.METHODS[name](max_epochs=3, random_state=0))
    assert functions <= 299
    assert files <= 32
    assert calls <= 151  # from one package of the library into another; T in a fit passes five of them
