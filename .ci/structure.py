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
        classifier.fit(X[:50], y[:50], trusted=np.arange(50) < 20)
        sys.setprofile(calls)
        try:
            classifier.fit(X[50:], y[50:], meta=(X[:50], y[:50]))
        finally:
            sys.setprofile(None)
    files = {file for file, _ in calls.functions}
    changes = {(a, b) for a, b in calls.edges if package(a) != package(b)}
    return len(calls.functions), len(files), len(changes)


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
    untyped, total = arguments()
    print(f"arguments typed Any: {untyped} of {total}, {100 * untyped / total:.0f} %")


if __name__ == "__main__":
    main()
