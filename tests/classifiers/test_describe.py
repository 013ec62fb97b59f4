"""Parameters as text: equal in every process, different where values differ."""

import importlib
import sys
from functools import partial

import numpy as np
import pytest
import torch
from skorch.dataset import ValidSplit
from torch import nn

from noisytransition.classifiers._describe import describe


def shifted(x, by=1):
    return x + by


def doubled(x):
    return 2 * x


def named(text):
    """A function inside a function, with a name of its own."""

    def inner(x):
        return x

    inner.fit_name = text
    return inner


class Crop:
    def __init__(self, margin):
        self.margin = margin

    def __call__(self, x):
        return x[self.margin :]

    def twice(self, x):
        return self(self(x))


class Ring:
    """An object that holds itself."""

    def __init__(self, size):
        self.size, self.me = size, self


class Locked:
    def __init__(self):
        self.states = iter([1])
        self.lock = open(__file__)  # noqa: SIM115

    def __del__(self):
        self.lock.close()


PAIRS = {
    "numbers": (1, 1.5),
    "numbers and text": (1, "1"),
    "arrays": (np.zeros(3), np.ones(3)),
    "tensors": (torch.zeros(3), torch.ones(3)),
    "weights": (nn.Linear(2, 1), nn.Linear(2, 1)),
    "functions": (shifted, doubled),
    "partials": (partial(shifted, by=2), partial(shifted, by=3)),
    "partials of other functions": (partial(shifted, 2), partial(doubled, 2)),
    "objects": (Crop(1), Crop(2)),
    "methods": (Crop(1).twice, Crop(2).twice),
    "splits": (ValidSplit(2), ValidSplit(3)),
    "generators": (np.random.RandomState(0), np.random.RandomState(1)),
    "inside lists": ([(shifted, 1)], [(doubled, 1)]),
    "inside dicts": ({"a": Crop(1)}, {"a": Crop(2)}),
    "classes": (nn.ReLU, nn.Tanh),
    "names of their own": (named("flip, 1"), named("flip, 2")),
    "objects in a circle": (Ring(1), Ring(2)),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_what_differs_reads_differently_and_no_address_is_in_it(kind):
    first, second = map(describe, PAIRS[kind])
    assert first != second
    assert "0x" not in first + second


def test_equal_things_read_alike():
    for make in (lambda: Crop(1), lambda: partial(shifted, by=2), lambda: named("flip"), lambda: Ring(3)):
        assert describe(make()) == describe(make())
    assert describe(named("flip")) == describe(named("flip"))
    assert describe([np.int64(2), np.float32(0.5), np.bool_(True)]) == describe([2, 0.5, True])
    torch.manual_seed(0)
    first = nn.Linear(2, 1)
    torch.manual_seed(0)
    assert describe(first) == describe(nn.Linear(2, 1))


@pytest.mark.parametrize(
    "value",
    [lambda x: x, partial(lambda x: x, 1), [lambda x: x], type("Local", (), {}), type("Local", (), {})()],
    ids=["lambda", "partial", "list", "class", "object"],
)
def test_what_no_name_leads_to_is_refused_with_the_remedy(value):
    with pytest.raises(ValueError, match=r"^batch_transform is or has .*f\.fit_name = "):
        describe(value, "batch_transform")


def test_what_cannot_be_read_is_refused():
    with pytest.raises(ValueError, match=r"module is or has .*cannot be described"):
        describe(Locked(), "module")


def test_another_source_reads_differently(tmp_path, monkeypatch):
    """A function that was edited is another one."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    texts = []
    for body in ("return x", "return 2 * x"):
        (tmp_path / "augment.py").write_text(f"def flip(x):\n    {body}\n")
        monkeypatch.delitem(sys.modules, "augment", raising=False)
        texts.append(describe(importlib.import_module("augment").flip))
    monkeypatch.delitem(sys.modules, "augment")
    assert texts[0] != texts[1]
    assert texts[0].startswith("augment.flip ")
