"""Every bad input raises an error that names the fault, before any training.

`python tests/attacks/run.py` tries each with all classes; here each is tried with one.
"""

from collections import Counter

import pytest
from attacks.attempt import METHODS, OF_CLASSIFIERS, OF_FUNCTIONS, classes_of, fitted, outcome


def _cases():
    """Each case, and one of its classes: another for the next case."""
    for i, case in enumerate(OF_CLASSIFIERS):
        classes = classes_of(case)
        yield pytest.param(case, classes[i % len(classes)], id=case.name)
    yield from (pytest.param(case, None, id=case.name) for case in OF_FUNCTIONS)


@pytest.mark.parametrize(("case", "cls"), [*_cases()])
def test_a_bad_input_gets_a_clear_error(case, cls):
    if case.target in METHODS:
        fitted(cls)
    assert outcome(case, cls) == "clear"


def test_no_case_is_listed_twice():
    names = Counter(case.name for case in [*OF_CLASSIFIERS, *OF_FUNCTIONS])
    assert [name for name, n in names.items() if n > 1] == []
    assert len(names) >= 300
