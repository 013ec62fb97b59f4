"""Parameters as text: equal in every process, different where values differ."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from noisytransition.classifiers._describe import describe


def scaled(by):
    """A function that differs from its siblings by what it closes over."""
    return lambda x: x * by


def shifted(x, by=1):
    return [v + by for v in (w for w in x)]


class Crop:
    def __init__(self, margin):
        self.margin = margin

    def __call__(self, x):
        return x[self.margin :]

    def twice(self, x):
        return self(self(x))


def countdown():
    def down(n):
        return n and down(n - 1)

    return down


PAIRS = {
    "arrays": (np.zeros(3), np.ones(3)),
    "tensors": (torch.zeros(3), torch.ones(3)),
    "weights": (nn.Linear(2, 1), nn.Linear(2, 1)),
    "functions": (scaled(2), scaled(3)),
    "defaults": (lambda x, by=1: x + by, lambda x, by=2: x + by),
    "nested functions": (lambda x: [v + 1 for v in (w for w in x)], lambda x: [v + 1 for v in (2 * w for w in x)]),
    "partials": (partial(shifted, by=2), partial(shifted, by=3)),
    "partials of other functions": (partial(shifted, 2), partial(scaled, 2)),
    "objects": (Crop(1), Crop(2)),
    "methods": (Crop(1).twice, Crop(2).twice),
    "inside lists": ([(scaled(2), 1)], [(scaled(3), 1)]),
    "inside dicts": ({"a": Crop(1)}, {"a": Crop(2)}),
    "classes": (nn.ReLU, nn.Tanh),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_what_differs_reads_differently_and_no_address_is_in_it(kind):
    first, second = map(describe, PAIRS[kind])
    assert first != second
    assert "0x" not in first


def test_equal_things_read_alike():
    assert describe(scaled(2)) == describe(scaled(2))
    assert describe(Crop(1)) == describe(Crop(1))
    assert describe(partial(shifted, by=2)) == describe(partial(shifted, by=2))


def test_a_function_that_calls_itself_ends():
    assert describe(countdown()) == describe(countdown())


def test_what_is_not_there_yet_is_left_out():
    def early(x):
        return later + x

    assert "early" in describe(early)
    later = 1
    assert early(1) == 1 + later


def test_another_process_reads_the_same():
    """A comprehension is a code object of its own, and its text holds an address."""
    code = "def f(x):\n    return [v + 1 for v in (w for w in x)]\n"
    code += "from noisytransition.classifiers._describe import describe\nprint(describe(f))"
    first, second = (
        subprocess.run([sys.executable, "-c", padding + code], capture_output=True, text=True, check=True).stdout
        for padding in ("", "keep = [object() for _ in range(10_000)]\n")
    )
    assert first == second
