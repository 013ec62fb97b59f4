"""CIFAR in its original files, and human labels."""

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from small_files import pixels

from examples import cifar
from examples.cifar import load_cifar10, load_cifar10h, load_cifar10n, load_cifar100
from noisytransition.transition import cifar10_noise, superclass_noise

torchvision = pytest.importorskip("torchvision")
LABELS = {"clean_label": np.arange(60) % 10, "worse_label": (np.arange(60) + (np.arange(60) < 20)) % 10}


@pytest.fixture(autouse=True)
def _any_checksum(monkeypatch):
    """Let torchvision accept other files than the official ones."""
    monkeypatch.setattr(torchvision.datasets.cifar, "check_integrity", lambda path, md5: Path(path).exists())


def write(folder, kind, files):
    """Write images and labels in the official format."""
    folder = folder / kind.base_folder
    folder.mkdir()
    for name, content in files.items():
        if (X := content.get("data")) is not None:
            content |= {"data": X.transpose(0, 3, 1, 2).reshape(len(X), 3072)}
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))


def test_cifar10(tmp_path):
    X, y, X_test, y_test = pixels(50), np.arange(50) % 10, pixels(20, seed=1), np.arange(20) % 10
    files = {
        f"data_batch_{i + 1}": {"data": X[10 * i :][:10], "labels": y[10 * i :][:10].tolist()} for i in range(5)
    } | {
        "test_batch": {"data": X_test, "labels": y_test.tolist()},
        "batches.meta": {"label_names": cifar.CIFAR10_CLASSES},
    }
    write(tmp_path, torchvision.datasets.CIFAR10, files)
    data = load_cifar10(tmp_path, noise=cifar10_noise(0.4), n_clean=20, random_state=0)
    assert data.classes == cifar.CIFAR10_CLASSES
    np.testing.assert_array_equal(data.X, X[data.rows])
    np.testing.assert_array_equal(data.y_clean, y[data.rows_clean])
    np.testing.assert_array_equal(data.X_test, X_test)
    np.testing.assert_array_equal(data.y_test, y_test)
    with pytest.raises(RuntimeError, match="download"):
        load_cifar10(tmp_path / "nothing")


def test_cifar100_with_fine_and_coarse_labels(tmp_path):
    fine, fine_test = np.arange(200) % 100, np.arange(100)
    files = {
        "train": {"data": pixels(200), "fine_labels": fine.tolist()},
        "test": {"data": pixels(100, seed=1), "fine_labels": fine_test.tolist()},
        "meta": {"fine_label_names": [str(i) for i in range(100)]},
    }
    write(tmp_path, torchvision.datasets.CIFAR100, files)
    data = load_cifar100(
        tmp_path, noise=superclass_noise(cifar.CIFAR100_SUPERCLASSES, 0.4), n_clean=100, random_state=0
    )
    np.testing.assert_array_equal(data.y_true, fine[data.rows])
    np.testing.assert_array_equal(cifar.CIFAR100_SUPERCLASSES[data.y], cifar.CIFAR100_SUPERCLASSES[data.y_true])
    coarse = load_cifar100(tmp_path, labels="coarse", n_clean=20, random_state=0)
    np.testing.assert_array_equal(coarse.y_test, cifar.CIFAR100_SUPERCLASSES[fine_test])
    for name, superclass in zip(data.classes, cifar.CIFAR100_SUPERCLASSES, strict=True):
        assert name in cifar._TREE[coarse.classes[superclass]].split()
    with pytest.raises(ValueError, match="coarse"):
        load_cifar100(tmp_path, labels="super")


def test_labels_of_cifar10n_of_any_numpy(tmp_path):
    path, stream = tmp_path / "CIFAR-10_human.pt", io.BytesIO()
    torch.save(LABELS, path)
    np.testing.assert_array_equal(load_cifar10n(path), LABELS["worse_label"])
    torch.save(LABELS, stream)
    with zipfile.ZipFile(stream) as new, zipfile.ZipFile(path, "w") as old:  # as the published file has it
        for entry in new.namelist():
            old.writestr(entry, new.read(entry).replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))
    np.testing.assert_array_equal(load_cifar10n(tmp_path, "clean"), LABELS["clean_label"])


class Attack:
    def __reduce__(self):
        return print, ("code of the file ran",)


def test_no_code_of_a_file_runs(tmp_path, capsys):
    path = tmp_path / "CIFAR-10_human.pt"
    torch.save({"worse_label": Attack()}, path)
    for content in (path.read_bytes(), pickle.dumps(Attack(), protocol=2)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="does not hold"):
            load_cifar10n(path)
    assert "ran" not in capsys.readouterr().out


def test_files_of_people_s_labels_that_are_missing_or_others(tmp_path):
    for load in (load_cifar10n, load_cifar10h):
        with pytest.raises(FileNotFoundError, match="missing"):
            load(tmp_path)
    torch.save({"worse_label": np.arange(20)}, tmp_path / "CIFAR-10_human.pt")
    for labels, words in (("worse", "0..9"), ("aggre", "does not hold"), ("worst", "labels=")):
        with pytest.raises(ValueError, match=words):
            load_cifar10n(tmp_path, labels)
    for counts in (np.ones((5, 9)), np.zeros((5, 10)), np.full((5, 10), np.nan)):
        np.save(tmp_path / "cifar10h-probs.npy", counts)
        with pytest.raises(ValueError, match="shares or counts"):
            load_cifar10h(tmp_path)


def test_counts_of_cifar10h_become_shares(tmp_path):
    counts = np.random.default_rng(0).integers(1, 20, size=(30, 10))
    np.save(tmp_path / "cifar10h-counts.npy", counts)
    shares = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(load_cifar10h(tmp_path / "cifar10h-counts.npy"), shares)
