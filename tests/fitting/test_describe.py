"""Fingerprints of fits: equal in every process for equal fits, different for different values or data."""

import pickle
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
from noisytransition.fitting._run import _Hasher

SCRIPT = """
import torch
from skorch.dataset import ValidSplit
from noisytransition.fitting._run import _Hasher
torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
print(_Hasher().hash([module, ValidSplit(2), {"a": 1, "b": {"x", "y"}}, torch.ones(3)]))
"""


@pytest.mark.slow
def test_processes_agree(capsys):
    """The other one has another order of sets: nobody starts pytest with this seed of hashes."""
    env = {"PYTHONPATH": str(Path(noisytransition.__file__).parents[1]), "PYTHONHASHSEED": "1234"}
    other = subprocess.check_output([sys.executable, "-c", SCRIPT], env=env, text=True)
    exec(SCRIPT, {})
    assert capsys.readouterr().out == other


def shifted(x, by=1):
    return x + by


def doubled(x):
    return 2 * x


PAIRS = {
    "tensors": (torch.zeros(3), torch.ones(3)),
    "types": (torch.zeros(3), torch.zeros(3, dtype=torch.float64)),
    "shapes": (torch.zeros(3), torch.zeros(3, 1)),
    "weights": (nn.Linear(2, 1), nn.Linear(2, 1)),
    "functions": (shifted, doubled),
    "partials": (partial(shifted, by=2), partial(shifted, by=3)),
    "splits": (ValidSplit(2), ValidSplit(3)),
    "classes": (nn.ReLU, nn.Tanh),
}


def test_what_differs_reads_differently():
    for one, other in PAIRS.values():
        assert _Hasher().hash(one) == _Hasher().hash(one) != _Hasher().hash(other)


def fit(state, X, y, clean=None, **params):
    return small(CrossEntropyClassifier, max_epochs=1, **params).fit(X, y, meta=clean, state=state)


CHANGES = {"lr": 0.2, "module__hidden": [16], "train_split": ValidSplit(2), "batch_transform": doubled}


def test_a_parameter_tells_fits_apart(blobs, tmp_path):
    given = {"module__hidden": [8], "batch_transform": shifted, "lr": 0.1}
    fit(tmp_path / "fit", *blobs[:2], **given)
    for name, value in CHANGES.items():
        with refused(name):
            fit(tmp_path / "fit", *blobs[:2], **(given | {name: value}))
    with no_training():
        fit(tmp_path / "fit", *blobs[:2], **(given | {"verbose": 0, "lr": np.float64(0.1)}))


def test_what_cannot_be_pickled_is_refused(blobs):
    with refused("lambda", pickle.PicklingError):
        fit("anywhere", *blobs[:2], batch_transform=lambda x: x)


@pytest.mark.parametrize("form", [lambda X: X, lambda X: TensorDataset(torch.tensor(X))], ids=["array", "Dataset"])
def test_data_tell_fits_apart(blobs, tmp_path, form):
    X, y, X_clean, y_clean, *_ = blobs
    clean = form(X_clean), y_clean
    fit(tmp_path / "fit", form(X), y, clean)
    for others in [(form(X + (np.arange(4) == 2)), y, clean), (form(X), np.roll(y, 1), clean)]:
        with refused("X, y"):
            fit(tmp_path / "fit", *others)
    with refused("clean set"):
        fit(tmp_path / "fit", form(X), y, (form(X_clean[1:]), y_clean[1:]))
