"""What every method gave on three small problems, up to rounding; `record.py` compares to the bit."""

import numpy as np
import pytest
from golden.record import METHODS, PROBLEMS, RECORD, recorded

GOLDEN = dict(np.load(RECORD))


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("method", METHODS)
def test_results_are_those_of_the_record(method, problem):
    prefix = f"{problem}/{method}/"
    found, expected = recorded(method, problem), {k: v for k, v in GOLDEN.items() if k.startswith(prefix)}
    assert found.keys() == expected.keys()
    for key, value in found.items():
        np.testing.assert_allclose(value, expected[key], rtol=1e-3, atol=1e-4, err_msg=key)
