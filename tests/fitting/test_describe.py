"""Fingerprints of fits: equal in every process for equal fits, different for different values, code or data."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from estimators import small
from skorch.dataset import ValidSplit
from torch import nn
from torch.utils.data import TensorDataset
from training import no_training, refused

import noisytransition
from noisytransition import CrossEntropyClassifier
from noisytransition.fitting._describe import describe

MODULE = """
import torch
from torch import nn

def transform(x, by=2):
    return x * by

def scaled(factor):
    def inner(x):
        return factor * x
    return inner

class Base(nn.Module):
    def scaled(self, x):
        return 2 * x

class Net(Base):
    margin = 0.5

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)

    def forward(self, x):
        return self.scaled(self.layer(x))
"""
SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import torch, edited
from noisytransition.fitting._describe import describe
torch.manual_seed(0)
things = [edited.transform, edited.Net, edited.Net(), edited.scaled(2.0), {{"a": 1, "b": {{"x", "y"}}}}, torch.ones(3)]
print(*map(describe, things))
"""


def described_by_a_new_process(folder, module, seed):
    (folder / "edited.py").write_text(module)
    package = str(Path(noisytransition.__file__).parents[1])
    command, env = [sys.executable, "-B", "-c", SCRIPT.format(folder=str(folder))], {"PYTHONHASHSEED": str(seed)}
    return subprocess.check_output(command, env=env | {"PYTHONPATH": package}, text=True).split()


@pytest.mark.slow
def test_processes_agree_and_edited_code_is_told_apart(tmp_path):
    first = described_by_a_new_process(tmp_path, MODULE, 1)
    assert described_by_a_new_process(tmp_path, MODULE, 2) == first
    changed = described_by_a_new_process(
        tmp_path, MODULE.replace("by=2", "by=3").replace("return 2 *", "return 3 *"), 1
    )
    assert [one != other for one, other in zip(first, changed, strict=True)] == [True, True, True, False, False, False]


def shifted(x, by=1):
    return x + by


def doubled(x):
    return 2 * x


def times(factor):
    return lambda x: factor * x


class Crop:
    def __init__(self, margin):
        self.margin = margin

    def twice(self, x):
        return x[2 * self.margin :]


PAIRS = {
    "numbers": (1, 1.5),
    "numbers and text": (1, "1"),
    "arrays": (np.zeros(3), np.ones(3)),
    "tensors": (torch.zeros(3), torch.ones(3)),
    "types": (torch.zeros(3), torch.zeros(3, dtype=torch.float64)),
    "weights": (nn.Linear(2, 1), nn.Linear(2, 1)),
    "functions": (shifted, doubled),
    "what a function uses": (times(2), times(3)),
    "partials": (partial(shifted, by=2), partial(shifted, by=3)),
    "objects": (Crop(1), Crop(2)),
    "methods": (Crop(1).twice, Crop(2).twice),
    "splits": (ValidSplit(2), ValidSplit(3)),
    "generators": (np.random.RandomState(0), np.random.RandomState(1)),
    "inside lists": ([(shifted, 1)], [(doubled, 1)]),
    "classes": (nn.ReLU, nn.Tanh),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_what_differs_reads_differently(kind):
    one, other = PAIRS[kind]
    assert describe(one) == describe(one)
    assert describe(one) != describe(other)


def test_equal_things_read_alike():
    for make in (lambda: Crop(1), lambda: partial(shifted, by=2), lambda: times(2), lambda: np.random.RandomState(0)):
        assert describe(make()) == describe(make())
    assert describe(np.float64(0.5)) == describe(0.5)


def test_what_cannot_be_pickled_is_refused():
    with open(__file__) as file, pytest.raises(ValueError, match="module="):
        describe(file, "module")


@pytest.mark.parametrize(
    "changes",
    [{"lr": 0.2}, {"module__hidden": [16]}, {"train_split": ValidSplit(2)}, {"batch_transform": doubled}],
    ids=lambda changes: next(iter(changes)),
)
def test_a_parameter_tells_fits_apart(blobs, tmp_path, changes):
    given = {"module__hidden": [8], "batch_transform": shifted}
    small(CrossEntropyClassifier, **given).fit(*blobs[:2], state=tmp_path / "fit")
    with refused(next(iter(changes))):
        small(CrossEntropyClassifier, **(given | changes)).fit(*blobs[:2], state=tmp_path / "fit")
    with no_training():
        small(CrossEntropyClassifier, **given, verbose=0).fit(*blobs[:2], state=tmp_path / "fit")


def test_data_tell_fits_apart(blobs, tmp_path):
    X, y, X_meta, y_meta, *_ = blobs
    for form in (lambda X: X, lambda X: TensorDataset(torch.tensor(X))):
        path = tmp_path / str(form(X).__class__.__name__)
        clf = small(CrossEntropyClassifier).fit(form(X), y, meta=(form(X_meta), y_meta), state=path)
        with refused("X, y"):
            clf.fit(form(X + (np.arange(4) == 2)), y, meta=(form(X_meta), y_meta), state=path)
        with refused("X, y"):
            clf.fit(form(X), np.roll(y, 1), meta=(form(X_meta), y_meta), state=path)
        with refused("clean set"):
            clf.fit(form(X), y, meta=(form(X_meta[1:]), y_meta[1:]), state=path)
