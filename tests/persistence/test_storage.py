"""Stored values are unchanged; unsupported types are refused; a crafted file runs no code."""

import json
from collections import Counter, OrderedDict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from skorch.history import History
from torch import nn

from noisytransition.persistence import KINDS, is_plain, read, write


class Point(NamedTuple):
    x: object
    others: tuple = ()


VALUES = [1, 2.5, "x", None, True, -0.0, 2**100, [1, (2, {3})], frozenset([4]), float("inf"), [float("nan")]]
VALUES += [{}, [], (), {1: 2, (1, "a"): [3], None: {True: 0.5}}, ["tuple", "x"], OrderedDict(a=torch.arange(2))]
VALUES += [
    Counter({3: 2, 1: 1}),
    History([{"train_loss": 1 / 3, "batches": []}]),
    Point(np.ones(2), (Point(np.ones(1)),)),
]
VALUES += [np.zeros((0, 3)), np.array(["a", "bc"]), np.array(5), np.arange(6).reshape(2, 3)[:, ::2], np.array([True])]
VALUES += [np.array(["a", 1, None], dtype=object), np.float16([0.1]), np.float32(0.1), np.bool_(True), np.str_("q")]
VALUES += [torch.tensor(1.5), torch.arange(3).bfloat16(), torch.zeros(0, 2), torch.arange(6.0).reshape(2, 3).T]
VALUES += [torch.float16, torch.device("cuda:1"), (shared := torch.arange(6.0)), shared[1:], shared.double()]


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setitem(KINDS, Point, (list, Point._make))
    return tmp_path / "a"


def test_values_are_the_same_after_a_file(path):
    write(path, "fit", VALUES)
    again = read(path, "fit")
    assert repr(again) == repr(VALUES)
    for one, other in zip(again, VALUES, strict=True):
        assert type(one) is type(other)
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None)


def test_a_history_is_of_epochs_and_without_what_cannot_be_written(path):
    write(path, "fit", History([{"epoch": 1, "thing": object(), "loss": nn.Parameter(torch.ones(())), "batches": [1]}]))
    assert read(path, "fit") == History([{"epoch": 1, "loss": 1, "batches": []}])


class Numbers(list):
    """A type that is not known."""


OTHERS = [object(), len, iter([1]), b"x", 1j, nn.ReLU(), Numbers(), np.zeros(2, "i4,f4"), np.datetime64(0, "s")]
OTHERS += [np.zeros(2, ">f8" if np.little_endian else "<f8"), np.longdouble(1)]


def test_other_values_are_no_plain_data():
    assert not any(is_plain({"a": [value]}) for value in OTHERS)


def test_a_write_that_fails_leaves_the_former_file(path, monkeypatch):
    write(path, "fit", 1)
    with pytest.raises(TypeError, match="plain data"):
        write(path, "fit", object())
    monkeypatch.setattr(Path, "replace", lambda *paths: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write(path, "fit", 2)
    assert read(path, "fit") == 1


# ---------------------------------------------------------------------------- files of others
def test_other_files_are_refused(path):
    write(path, "fit", torch.arange(1000))
    whole = path.read_bytes()
    others = [b"", b"12345678", b"\xff" * 100, b"\2" + 7 * b"\0" + b"[]", b"a,b\n1,2\n", whole[:-10]]
    for content in [*others, whole.replace(b"version 5", b"version 4")]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not a saved fit"):
            read(path, "fit")
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="is not a saved classifier"):
        read(path, "classifier")


CRAFTED = [["ndarray", ["list", 0], "f8", ["tuple", 10**12]], ["ndarray", ["Tensor", "7"]], ["dtype", "load"]]
CRAFTED += [["eval", "1"], [], ["generic", 0, "os.system"], ["__class__"], ["Counter", 1], ["Tensor", ["0"]]]


def test_crafted_files_are_refused(path):
    for content in CRAFTED:
        text = json.dumps(["noisytransition fit, version 5", content]).encode()
        save_file({"0": torch.zeros(8), "json": torch.frombuffer(bytearray(text), dtype=torch.uint8)}, path)
        with pytest.raises(ValueError, match="damaged"):
            read(path, "fit")
