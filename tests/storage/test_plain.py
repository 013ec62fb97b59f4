"""Values in a file: they are the same after it; what else there is cannot be written; a crafted file runs no code."""

import json
import math
from collections import Counter, OrderedDict, deque, namedtuple
from typing import NamedTuple

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from skorch.history import History
from torch import nn

from noisytransition.storage import _format, _plain, check, is_plain, read, safe_attributes, write

Point = namedtuple("Point", "x y")


@pytest.fixture
def after_a_file(tmp_path):
    def after_a_file(value, named=()):
        write(tmp_path / "a", "stage", value, named)
        return read(tmp_path / "a", "stage", named)

    return after_a_file


def rows(n, **more):
    return [{"train_loss": i / 3, "size": 32, "best": i == 0, **more} for i in range(n)]


VALUES = [1, 2.5, "x", None, True, -0.0, 1j, 2**100, "\ud800", [1, (2, {3})], frozenset([4]), Point(1, (2.0,))]
VALUES += [float("inf"), float("-inf"), [float("nan")] * 30, [0.1, float("inf"), -0.0] * 20, [1.0] * 20 + [1]]
VALUES += [{}, [], (), [{}], [{}, {}], {1: 2, (1, "a"): [3], None: {True: 0.5}}, {"$": 1}, [{"$": 1}], {"$": ["x"]}]
VALUES += [rows(2), rows(40), rows(3, batches=rows(50)), [{1: 2}, {1: 3}], [{"a": 1}, {"b": 2}], [{"a": 1, "b": 2}] * 2]
VALUES += [OrderedDict(a=torch.arange(2)), deque([1, (2,)], 5), deque(), History(rows(3, batches=rows(20))), History()]
VALUES += [Counter({3: 2, 1: 1}), Counter()]
VALUES += [np.zeros((0, 3)), np.array(["a", "bc"]), np.array(5), np.arange(6).reshape(2, 3)[:, ::2], np.array([True])]
VALUES += [
    np.array(["a", 1, None, [2]], dtype=object),
    np.array([[1j]]),
    np.arange(3, dtype=">i4"),
    np.arange(3, dtype="u2"),
]
VALUES += [
    np.float32(0.1),
    np.bool_(True),
    np.str_(""),
    np.str_("q"),
    np.datetime64("2020-01-01"),
    np.longdouble(1) / 3,
]
VALUES += [np.array([np.nan, np.inf]), np.float16([0.1, 2]), np.array(b"ab")]
VALUES += [torch.float16, torch.complex64, torch.device("cpu"), torch.device("cuda:1"), torch.Size([2, 3])]
VALUES += [torch.tensor(1.5), torch.arange(3).bfloat16(), torch.zeros(0, 2), torch.tensor([1 + 2j]), torch.tensor(True)]
VALUES += [torch.arange(6.0).reshape(2, 3).T, torch.ones(1).expand(3, 2), torch.tensor([1 + 2j]).conj()]
VALUES += [torch.tensor([1 + 2j]).conj().imag, torch.tensor([0.5], dtype=torch.float8_e4m3fn)]
VALUES += [
    torch.ones(2, requires_grad=True),
    nn.Parameter(torch.ones(2), requires_grad=False),
    nn.Parameter(torch.ones(1)),
    torch.eye(2).to_sparse(),
    torch.sparse_coo_tensor([[1, 1]], [1.0, 2.0], [3], check_invariants=True),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_the_same_after_a_file(value, after_a_file):
    again = after_a_file([value, {"a": value}], named=[Point])
    assert type(again[0]) is type(value)
    assert repr(again) == repr([value, {"a": value}])
    if isinstance(value, np.ndarray | np.generic):
        assert again[0].dtype == value.dtype


def test_the_layout_in_memory_and_shared_memory_survive(after_a_file):
    image = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    weight = torch.rand(1000)
    again, (first, second) = after_a_file([image, (weight, weight.detach())])
    assert again.stride() == image.stride()
    assert first.data_ptr() == second.data_ptr()


def test_tied_weights_are_stored_once(tmp_path):
    write(tmp_path / "a", "stage", [torch.rand(1000), torch.rand(1000)])
    weight = torch.rand(1000)
    write(tmp_path / "b", "stage", [weight, weight[:]])
    assert (tmp_path / "b").stat().st_size < 0.6 * (tmp_path / "a").stat().st_size


def test_generators_go_on(after_a_file):
    for make in (np.random.default_rng, np.random.RandomState, lambda s: np.random.Generator(np.random.MT19937(s))):
        generator = make(3)
        generator.normal()
        again = after_a_file(generator)
        assert type(again) is type(generator)
        assert again.normal() == generator.normal()


def test_a_state_dict_has_the_versions_of_its_modules(after_a_file):
    state = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2)).state_dict()
    again = after_a_file(state)
    assert type(again) is OrderedDict
    assert again._metadata == state._metadata
    assert not hasattr(after_a_file(OrderedDict(a=1)), "_metadata")


class Subclass(list):
    pass


class Number(float):
    pass


class Other(NamedTuple):
    x: int


cycle: list = []
cycle.append(cycle)

NOT_PLAIN = [object(), len, int, iter([1]), Subclass(), Number(1), Other(1), nn.ReLU(), slice(1), b"x", cycle]
NOT_PLAIN += [np.array([object()]), np.zeros(2, "i4,f4"), np.ma.array([1])]
NOT_PLAIN += [torch.zeros(2, device="meta"), torch.eye(2).to_mkldnn(), torch.nn.UninitializedParameter()]


@pytest.mark.parametrize("value", NOT_PLAIN, ids=lambda value: type(value).__name__)
def test_other_values_are_no_plain_data(value, tmp_path):
    assert not is_plain([value])
    assert not is_plain({"a": {"b": value}})
    with pytest.raises((TypeError, RecursionError), match=r"plain data|recursion"):
        write(tmp_path / "a", "stage", [value])
    assert not (tmp_path / "a").exists()


def test_tensors_can_be_refused():
    assert is_plain({"a": (torch.ones(1),)})
    assert not is_plain({"a": (torch.ones(1),)}, tensors=False)
    assert is_plain({"a": (np.ones(1), [0.5] * 30)}, tensors=False)


# ---------------------------------------------------------------------------- the file
def test_the_file_is_safetensors_whose_tensors_can_be_read_by_others(tmp_path):
    weights = {"a": torch.rand(3, 2), "b": torch.rand(4).bfloat16(), "c": torch.tensor([True]), "T": np.eye(2)}
    write(tmp_path / "a", "stage", weights)
    with safe_open(tmp_path / "a", "pt") as file:
        metadata = file.metadata()
    assert {k: metadata[k] for k in ("format", "kind", "version")} == {
        "format": "noisytransition",
        "kind": "stage",
        "version": "2",
    }
    found = load_file(tmp_path / "a")
    content = json.loads(bytes(found["content"].numpy()))
    for name, weight in weights.items():
        (tag, index, *_), *_ = content[name].values()
        assert torch.equal(found[str(index)], torch.as_tensor(weight)), tag


def test_the_same_value_gives_the_same_file(tmp_path):
    for name in "ab":
        write(tmp_path / name, "fit", {"x": torch.arange(3), "rows": rows(30)})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    "content", [b"", b"12345678", b"\xff" * 100, b"\2" + 7 * b"\0" + b"[]", b"\2" + 7 * b"\0" + b"{}"]
)
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    for kind, words in (("fit", "a file of a saved fit"), ("classifier", "a saved classifier")):
        with pytest.raises(ValueError, match=f"is not {words}, or is damaged"):
            read(tmp_path / "a", kind)


def test_a_file_of_another_kind_is_refused(tmp_path):
    write(tmp_path / "a", "fit", 1)
    with pytest.raises(ValueError, match="is not a saved classifier"):
        read(tmp_path / "a", "classifier")


def test_every_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "a"
    write(path, "fit", [torch.arange(3), "text"])
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"damaged|version"):
            check(path, "fit")


CRAFTED = [{"$": ["array", 0, "O", [1]]}, {"$": ["array", 0, "i4,O", [1]]}, {"$": ["array", 0, "f8", [10**12]]}]
CRAFTED += [
    {"$": ["scalar", 0, "O", []]},
    {"$": ["array", 7, "f8", [1]]},
    {"$": ["dtype", "load"]},
    {"$": ["eval", "1"]},
]
CRAFTED += [{"$": ["Generator", {"bit_generator": "seed"}]}, {"$": ["RandomState", {"bit_generator": "default_rng"}]}]
CRAFTED += [{"$": ["Tensor", 0, "int64", [10**12], None, False]}, {"$": ["Tensor", 0, "load", [1], None, False]}]
CRAFTED += [{"$": []}, {"$": 3}, {"$": ["named", "Path", ["x"]]}, {"$": [["set"], []]}, {"$": ["__class__"]}]
CRAFTED += [{"$": ["Tensor", 0, "uint8", [8], [10**9], False]}]


@pytest.mark.parametrize("content", CRAFTED, ids=repr)
def test_a_crafted_file_is_refused(tmp_path, monkeypatch, content):
    class Crafts(_plain.Encoder):
        def encode(self, value):
            self.stored.append(torch.zeros(8, dtype=torch.uint8))
            return content

    monkeypatch.setattr(_format, "Encoder", Crafts)
    write(tmp_path / "a", "stage", 0)
    with pytest.raises(ValueError, match="holds more than tensors and plain data"):
        read(tmp_path / "a", "stage")


def test_no_attribute_of_python_s_own():
    assert safe_attributes({"__dict__": {}, "__class__": 1, "a": 2, "_b": 3}) == {"a": 2, "_b": 3}


def test_a_long_history_is_small(tmp_path):
    """Numbers are stored as numbers: 8 bytes for each loss."""
    write(tmp_path / "a", "stage", History(rows(50, batches=rows(100))))
    assert (tmp_path / "a").stat().st_size < 50 * 100 * 24
    assert math.isclose(read(tmp_path / "a", "stage")[-1]["batches"][-1]["train_loss"], 33)
