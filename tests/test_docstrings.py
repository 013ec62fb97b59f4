"""The examples in the documentation of public names can be copied: they import what they show."""

import doctest
import inspect
from importlib import import_module

import pytest

import noisytransition

PACKAGES = ["", ".transition", ".datasets", ".losses", ".updates", ".selection", ".nets", ".meta_gradient", ".report"]


@pytest.mark.parametrize("package", PACKAGES)
def test_examples_import_what_they_show(package):
    module, missing = import_module(noisytransition.__name__ + package), []
    for name in module.__all__:
        shown = getattr(module, name)
        if not (inspect.isclass(shown) or inspect.isfunction(shown)):
            continue
        lines = [example.source for example in doctest.DocTestParser().get_examples(inspect.getdoc(shown) or "")]
        if lines and not any("import " in line and name in line for line in lines):
            missing.append(name)
    assert not missing
