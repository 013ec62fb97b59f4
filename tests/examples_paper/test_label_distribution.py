"""Measures and tables of the label distribution, and attacks on a small network."""

from itertools import product

import numpy as np
import pytest
import torch
from dataset_files import pixels
from torch import nn

pytest.importorskip("torchvision")

from examples.paper import label_distribution
from noisytransition.datasets import CIFAR10_CLASSES


def test_cross_entropy_by_loops():
    rng = np.random.default_rng(0)
    shares, proba = rng.dirichlet(np.ones(3), size=5), rng.dirichlet(np.ones(3), size=5)
    shares[0] = [1, 0, 0]
    loss = [-sum(q * np.log(p) for q, p in zip(*pair, strict=True)) for pair in zip(shares, proba, strict=True)]
    assert label_distribution.cross_entropy(shares, proba) == pytest.approx(np.mean(loss))
    assert label_distribution.cross_entropy(shares, shares) < label_distribution.cross_entropy(shares, proba)


@pytest.mark.parametrize("name", label_distribution.CORRUPTIONS)
def test_corruptions_change_images_a_little(name):
    images = torch.randint(60, 190, (4, 3, 8, 8), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    images = images.repeat_interleave(4, dim=2).repeat_interleave(4, dim=3)
    changed = label_distribution.CORRUPTIONS[name](images)
    assert changed.shape == images.shape
    assert changed.dtype == torch.uint8
    assert 2 < (changed.float() - images.float()).abs().mean() < 100


class Body(nn.Module):
    """Each pixel of a small image is a feature."""

    def extract_features(self, x):
        return nn.functional.adaptive_avg_pool2d(x, 4).flatten(1)[:, :, None, None]


def test_attacks_lower_the_accuracy(monkeypatch, tmp_path):
    pytest.importorskip("foolbox")
    images = np.random.default_rng(0).integers(256, size=(40, 8, 8, 3), dtype=np.uint8)
    (tmp_path / "cifar10").mkdir()
    np.save(tmp_path / "cifar10" / "X_test.npy", images)
    monkeypatch.setattr(label_distribution, "body", Body)
    monkeypatch.setattr(label_distribution, "EPSILON", 40)
    head, (mean, std) = nn.Linear(48, 2), (np.zeros(48, np.float32), np.ones(48, np.float32))
    whole = label_distribution.Whole(head, mean, std)
    with torch.no_grad():
        y = whole(torch.from_numpy(images).permute(0, 3, 1, 2) / 255).argmax(dim=1).numpy()
    found = label_distribution.attacked(head, mean, std, label_distribution.Places(tmp_path), y)
    assert found["none"] == 1
    assert found["PGD"] <= found["FGSM"] < 0.5


def test_tables(monkeypatch, tmp_path):
    monkeypatch.setattr(label_distribution, "OUT", tmp_path / "rows.jsonl")
    rows = [
        {
            "noise": noise,
            "seed": seed,
            "method": name,
            "accuracy": 0.5 + seed / 10,
            "cross_entropy": 1.0,
            "lowest": 0.25,
            "corrupted": {"blur": 0.3 + seed / 10},
        }
        | ({"attacked": {"FGSM": 0.125}} if noise == label_distribution.ATTACKED_NOISE else {})
        for noise in label_distribution.NOISES
        for seed in (0, 1)
        for name in ("GLC", "EM")
    ]
    label_distribution.report(rows)
    page = (tmp_path / "rows.md").read_text()
    assert "| GLC | 0.550 ± 0.071 | 1.000 ± 0.000 |" in page
    assert "cross-entropy (lowest 0.250)" in page
    lines = (tmp_path / "rows_corrupted.csv").read_text().splitlines()
    assert lines == [",blur", "GLC,0.350 ± 0.071", "EM,0.350 ± 0.071"]
    assert "0.125" in (tmp_path / "rows_attacked.csv").read_text()


def write_cifar10_1(folder, *versions):
    folder.mkdir()
    for version in versions:
        np.save(folder / f"cifar10.1_{version}_data.npy", pixels(20))
        np.save(folder / f"cifar10.1_{version}_labels.npy", np.arange(20) % 10)


@pytest.mark.parametrize("version", ["v4", "v6"])
def test_one_version_of_cifar10_1(version, tmp_path):
    write_cifar10_1(tmp_path / "cifar10.1", version)
    assert list(label_distribution.other_sets(label_distribution.Places(tmp_path))) == [f"CIFAR-10.1 {version}"]


def test_files_of_cifar10_1_that_are_missing_are_named(tmp_path):
    write_cifar10_1(tmp_path / "cifar10.1")
    with pytest.raises(FileNotFoundError, match=r"cifar10.1_v6_data.npy is missing.* has no files"):
        label_distribution.other_sets(label_distribution.Places(tmp_path))
    np.save(tmp_path / "cifar10.1" / "cifar10.1_v4_data.npy", pixels(20))
    with pytest.raises(FileNotFoundError, match=r"cifar10.1_v4_labels.npy is missing"):
        label_distribution.other_sets(label_distribution.Places(tmp_path))


def test_a_test_set_that_came_later_has_a_column():
    old = {"noise": label_distribution.ATTACKED_NOISE, "method": "GLC", "others": {"v6": 0.5}}
    heads, lines = label_distribution.harder([old, old | {"method": "EM", "others": {"v4": 0.25, "v6": 0.5}}], "others")
    assert heads == ["v6", "v4"]
    assert lines == [("GLC", ["0.500", ""]), ("EM", ["0.500", "0.250"])]


def test_other_test_sets_are_those_that_are_there(monkeypatch, tmp_path):
    Image = pytest.importorskip("PIL.Image")
    assert label_distribution.other_sets(label_distribution.Places(tmp_path)) == {}
    write_cifar10_1(tmp_path / "cifar10.1", "v4", "v6")
    for part, label, i in product(("train", "test"), CIFAR10_CLASSES, range(3)):
        folder = tmp_path / "cinic10" / part / label
        folder.mkdir(parents=True, exist_ok=True)
        image = np.full((32, 32, 3), CIFAR10_CLASSES.index(label), dtype=np.uint8)
        Image.fromarray(image).save(folder / (f"cifar10-{part}-{i}.png" if i == 2 else f"n0{i}_{i}.png"))
    monkeypatch.setattr(label_distribution, "N_CINIC10", 15)
    found = label_distribution.other_sets(label_distribution.Places(tmp_path))
    assert list(found) == ["CIFAR-10.1 v4", "CIFAR-10.1 v6", "CINIC-10, ImageNet"]
    assert all(len(X) == len(y) for X, y in found.values())
    X, y = found["CINIC-10, ImageNet"]
    assert len(X) == 15
    np.testing.assert_array_equal(X[:, 0, 0, 0], y)
    assert len(np.unique(y)) > 5, "of all classes"
