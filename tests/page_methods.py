"""Classes of docs/adding_a_method.rst, executed from the page, so that tests and page agree."""

import ast
import doctest
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "adding_a_method.rst"


def definitions():
    """Source of the page's imports and classes, without the examples."""
    for example in doctest.DocTestParser().get_examples(PAGE.read_text()):
        if all(isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef) for node in ast.parse(example.source).body):
            yield example.source


for source in definitions():
    exec(source, globals())  # pickle finds the classes in this module
