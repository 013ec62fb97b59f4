"""Stored values are unchanged; unsupported types are refused; a crafted file runs no code."""

import json
import os
from collections import Counter, OrderedDict
from typing import NamedTuple

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from skorch.history import History
from torch import nn

from noisytransition.persistence._storage import NAMED, is_plain, read, write

VALUES = [1, 2.5, "x", None, True, -0.0, 2**100, [1, (2, {3})], frozenset([4]), float("inf"), [float("nan")]]
VALUES += [{}, [], (), {1: 2, (1, "a"): [3], None: {True: 0.5}}, {"$": 1}, [{"$": ["x"]}]]
VALUES += [
    OrderedDict(a=torch.arange(2)),
    Counter({3: 2, 1: 1}),
    History([{"train_loss": 1 / 3, "batches": [{"n": 1}]}]),
]
VALUES += [np.zeros((0, 3)), np.array(["a", "bc"]), np.array(5), np.arange(6).reshape(2, 3)[:, ::2], np.array([True])]
VALUES += [np.array(["a", 1, None], dtype=object), np.float16([0.1]), np.float32(0.1), np.bool_(True), np.str_("q")]
VALUES += [torch.tensor(1.5), torch.arange(3).bfloat16(), torch.zeros(0, 2), torch.arange(6.0).reshape(2, 3).T]
VALUES += [torch.float16, torch.device("cuda:1")]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_the_same_after_a_file(value, tmp_path):
    write(tmp_path / "a", "fit", [value, {"a": value}])
    again = read(tmp_path / "a", "fit")
    assert type(again[0]) is type(value)
    assert repr(again) == repr([value, {"a": value}])
    if isinstance(value, np.ndarray | np.generic):
        assert again[0].dtype == value.dtype


class Point(NamedTuple):
    x: np.ndarray
    others: tuple = ()


def test_named_tuples_are_those_that_are_known(tmp_path, monkeypatch):
    value = Point(np.ones(2), (Point(np.zeros(1)),))
    assert not is_plain(value)
    monkeypatch.setitem(NAMED, "Point", Point)
    write(tmp_path / "a", "fit", value)
    assert repr(read(tmp_path / "a", "fit")) == repr(value)


def test_tensors_that_share_their_memory(tmp_path):
    weight = torch.rand(3, 2)
    write(tmp_path / "a", "fit", [weight, weight[1], nn.Parameter(weight)])
    for one, other in zip(read(tmp_path / "a", "fit"), (weight, weight[1], weight), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    "value", [object(), len, iter([1]), b"x", nn.ReLU(), np.zeros(2, "i4,f4"), np.datetime64(0, "s")]
)
def test_other_values_are_no_plain_data(value, tmp_path):
    assert not is_plain({"a": [value]})
    with pytest.raises(TypeError, match="plain data"):
        write(tmp_path / "a", "fit", {"a": [value]})
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_former_file(tmp_path, monkeypatch):
    write(tmp_path / "a", "fit", 1)
    monkeypatch.setattr(os, "fsync", lambda file: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write(tmp_path / "a", "fit", 2)
    assert read(tmp_path / "a", "fit") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


# ---------------------------------------------------------------------------- files of others
@pytest.mark.parametrize("content", [b"", b"12345678", b"\xff" * 100, b"\2" + 7 * b"\0" + b"[]", b"a,b\n1,2\n"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match="is not a saved fit"):
        read(tmp_path / "a", "fit")


def test_another_kind_another_version_and_a_part_of_a_file_are_refused(tmp_path):
    write(path := tmp_path / "a", "fit", torch.arange(1000))
    whole = path.read_bytes()
    with pytest.raises(ValueError, match="is not a saved classifier"):
        read(path, "classifier")
    path.write_bytes(whole[:-10])
    with pytest.raises(ValueError, match="damaged"):
        read(path, "fit")
    path.write_bytes(whole.replace(b'"version":"3"', b'"version":"4"', 1))
    with pytest.raises(ValueError, match="version 4"):
        read(path, "fit")


CRAFTED = [["values", [0], "f8", [10**12]], ["array", {"$": ["tensor", "7"]}], ["dtype", "load"], ["eval", "1"], [], 3]
CRAFTED += [["scalar", 0, "os.system"], ["__class__"], ["History", 1], ["tensor", ["0"]]]


@pytest.mark.parametrize("content", CRAFTED, ids=repr)
def test_a_crafted_file_is_refused(tmp_path, content):
    head = {"format": "noisytransition", "kind": "fit", "version": "3", "content": json.dumps({"$": content})}
    save_file({"0": torch.zeros(8)}, tmp_path / "a", head)
    with pytest.raises(ValueError, match="damaged"):
        read(tmp_path / "a", "fit")
