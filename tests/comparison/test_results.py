"""The file of results: what is refused and left as it is, what is fitted again."""

import importlib
import json
import os
import sys

import numpy as np
import pytest
from torch.utils.data import Dataset
from training import no_training, refused

from noisytransition import ComparisonData, CrossEntropyClassifier, compare
from noisytransition.comparison import _results

FAST = {"max_epochs": 2, "batch_size": 64, "verbose": 0}


@pytest.fixture
def data(blobs):
    return ComparisonData(*blobs)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.jsonl"


@pytest.fixture
def rows(data, path):
    """Compare, and return the rows."""
    return lambda given=data, **params: (
        compare(given, [CrossEntropyClassifier()], seeds=[0], path=path, **FAST | params).rows
    )


@pytest.mark.parametrize(
    "content", [b"a,b\n1,2\n", b'{"method": "GLC", "seed": 0, "fingerprint": "1"}\n', b"[1]\n", b"\x00\xff", b"\n"]
)
def test_a_file_of_the_user_s_is_refused_and_left_as_it_is(rows, path, content):
    path.write_bytes(content)
    with refused("is not a file of results of compare"):
        rows()
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


def test_another_version_and_a_folder_without_permission_are_refused(rows, path, monkeypatch):
    path.write_text('{"format": "noisytransition results", "version": 3}\n')
    with refused("has version 3 of the format"):
        rows()
    path.unlink()

    def denied(*args):
        raise PermissionError("denied")

    monkeypatch.setattr(_results, "locked", denied)
    with refused("cannot be written to: denied"):
        rows()


def test_a_damaged_row_is_an_error_that_names_the_line(rows, path):
    rows()
    whole = path.read_bytes()
    second = whole.index(b"\n") + 1
    for place in range(second, whole.index(b"\n", second) - 2, 7):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        with refused("line (2|3|4) of .* is damaged"):
            rows()
        assert path.read_bytes() == changed
    path.write_bytes(b"".join(line for i, line in enumerate(whole.splitlines(keepends=True)) if i != 1))
    rows()  # without the line, its fit is run again
    assert len(path.read_bytes().splitlines()) == len(whole.splitlines())


def test_a_line_that_was_cut_off_is_overwritten(rows, path):
    rows()
    whole = path.read_text()
    parts = whole.splitlines(keepends=True)
    for cut in (len(parts[0]) // 2, len(parts[0]), len(whole) - 20, len(whole) - 1):
        path.write_text(whole[:cut])
        rows()
        found = [json.loads(line) for line in path.read_text().splitlines()]
        assert [row.get("method") for row in found] == [json.loads(part).get("method") for part in parts]
        with no_training():
            rows()


def test_a_full_disk_leaves_whole_lines(rows, path, monkeypatch):
    rows()
    whole = path.read_bytes()

    def full(file):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            rows(lr=0.2)
    assert path.read_bytes() == whole
    rows(lr=0.2)
    assert path.read_bytes().startswith(whole)


def test_two_processes_on_one_file_are_refused(rows, data, path):
    store = _results.ResultStore(path)
    with store, refused("in use by another fit", RuntimeError):
        rows()
    rows()
    assert os.listdir(path.parent) == [path.name]


def test_an_edited_module_is_fitted_again(rows, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    accuracies = []
    for sign in ("", "-", ""):
        text = f"""
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
    def forward(self, x):
        return {sign}self.layer(x) if self.training else self.layer(x)
"""
        (tmp_path / "edited_net.py").write_text(text)
        monkeypatch.delitem(sys.modules, "edited_net", raising=False)
        importlib.invalidate_caches()
        accuracies.append(rows(module=importlib.import_module("edited_net").Net)[-1]["accuracy"])
    assert accuracies[0] == accuracies[2] > accuracies[1] + 0.1


class Images(Dataset):
    def __init__(self, X):
        self.X = X.astype(np.float32)

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return self.X[i]


def test_a_dataset_that_differs_in_the_middle_is_fitted_again(rows, data, path):
    middle = data.X.copy()
    middle[1:-1] = middle[-2:0:-1]
    for i, X in enumerate((data.X, data.X.copy(), middle)):
        rows(data._replace(X=Images(X), X_meta=Images(data.X_meta), X_test=Images(data.X_test)))
        assert len(path.read_text().splitlines()) == [4, 4, 7][i]
