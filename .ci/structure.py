"""Count functions, files and changes of package in a fit, circles of imports, and arguments typed `Any`.

python .ci/structure.py
"""

import ast
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import noisytransition
from noisytransition import EMTransitionClassifier, GLCClassifier, MetaTransitionClassifier

ROOT = Path(noisytransition.__file__).parent


class Calls:
    """Record the functions of the library that run, and which function calls which."""

    def __init__(self):
        self.functions, self.edges = set(), set()

    def __call__(self, frame, event, arg):
        """Record a call; passed to `sys.setprofile`."""
        if event != "call" or not (callee := self.place(frame)):
            return
        self.functions.add(callee)
        caller = frame.f_back
        while caller is not None and not self.place(caller):
            caller = caller.f_back
        if caller is not None:
            self.edges.add((self.place(caller), callee))

    @staticmethod
    def place(frame):
        """File and name of a function of the library."""
        path = Path(frame.f_code.co_filename)
        if ROOT not in path.parents or frame.f_code.co_name.startswith("<"):
            return None
        return str(path.relative_to(ROOT)), frame.f_code.co_qualname


def package(place):
    """First folder of a file."""
    return place[0].split("/")[0]


def fit(classifier):
    """Count functions, files, and calls into another package of the library."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=200)
    X = rng.normal(size=(200, 4)) + 3 * np.eye(4)[y]
    calls = Calls()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.fit(X[:50], y[:50], y_verified=np.where(np.arange(50) < 20, y[:50], -1))
        sys.setprofile(calls)
        try:
            classifier.fit(X[50:], y[50:], meta=(X[:50], y[:50]))
        finally:
            sys.setprofile(None)
    files = {file for file, _ in calls.functions}
    changes = {(a, b) for a, b in calls.edges if package(a) != package(b)}
    return len(calls.functions), len(files), len(changes)


def imports():
    """Which files of the library import which when they run: an edge for each."""
    for path in ROOT.rglob("*.py"):
        tree = ast.parse(path.read_text())
        blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
        for_types = {node for block in blocks for node in ast.walk(block)}
        for node in ast.walk(tree):
            if path.name != "__init__.py" and isinstance(node, ast.ImportFrom) and node.level and node not in for_types:
                at = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
                places = at.with_suffix(".py"), at / "__init__.py", *(at / f"{alias.name}.py" for alias in node.names)
                yield from ((path, place) for place in places if place.exists())


def circles(edges):
    """Count the sets of two or more from each of which one comes to all others."""
    reached = {a: {b for c, b in edges if c == a} for a, _ in edges}
    for by in reached:
        for others in reached.values():
            others |= reached[by] if by in others else set()
    return len({frozenset(b for b in reached[a] if a in reached.get(b, ())) for a in reached if a in reached[a]})


def arguments():
    """Count the annotated arguments, and those typed `Any`."""
    found = Counter()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                spec = node.args
                for arg in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]:
                    if arg is not None and arg.annotation is not None:
                        found["any" if ast.unparse(arg.annotation) == "Any" else "typed"] += 1
    return found["any"], sum(found.values())


def main():
    """Print the figures."""
    for cls in (GLCClassifier, MetaTransitionClassifier, EMTransitionClassifier):
        functions, files, changes = fit(cls(max_epochs=3, random_state=0))
        print(f"{cls.__name__}.fit: {functions} functions in {files} files, {changes} calls into another package")
    files = set(imports())
    packages = {tuple(path.relative_to(ROOT).parts[0] for path in edge) for edge in files}
    print(
        f"circles of imports: {circles(files)} of files, {circles({(a, b) for a, b in packages if a != b})} of packages"
    )
    untyped, total = arguments()
    print(f"arguments typed Any: {untyped} of {total}, {100 * untyped / total:.0f} %")


if __name__ == "__main__":
    main()
