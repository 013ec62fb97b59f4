"""What every method gave on three small problems, up to rounding; `record.py` compares all of it to the bit."""

import numpy as np
import pytest
from golden.record import METHODS, PROBLEMS, RECORD, recorded

GOLDEN = dict(np.load(RECORD))
# they take half of the time; the others have the same parts on this problem
LONG = {("digits", method) for method in ("em", "em_once", "meta_transition", "meta_transition_gold")}
CASES = [(problem, method) for problem in PROBLEMS for method in METHODS if (problem, method) not in LONG]


@pytest.mark.parametrize(("problem", "method"), CASES)
def test_results_are_those_of_the_record(problem, method):
    prefix = f"{problem}/{method}/"
    found, expected = recorded(method, problem), {k: v for k, v in GOLDEN.items() if k.startswith(prefix)}
    assert found.keys() == expected.keys()
    for key, value in found.items():
        np.testing.assert_allclose(value, expected[key], rtol=1e-3, atol=1e-4, err_msg=key)
