import numpy as np
import pytest
from dataset_files import cut, pixels, set_hashes, write_cifar10, write_cifar100, write_npy

from noisytransition.datasets import (
    CIFAR10_CLASSES,
    CIFAR100_CLASSES,
    CIFAR100_SUPERCLASS_NAMES,
    CIFAR100_SUPERCLASSES,
    load_cifar10,
    load_cifar100,
    load_npy,
)
from noisytransition.transition import cifar10_noise, superclass_noise

torchvision = pytest.importorskip("torchvision")
X, Y = pixels(50), np.arange(50) % 10
X_TEST, Y_TEST = pixels(20, seed=1), np.arange(20) % 10
FINE, FINE_TEST = np.arange(200) % 100, np.arange(100)


@pytest.fixture
def cifar10(tmp_path, monkeypatch):
    """A folder with CIFAR-10's own files."""
    folder = write_cifar10(tmp_path / "data", X, Y, X_TEST, Y_TEST)
    set_hashes(monkeypatch, torchvision.datasets.CIFAR10, folder)
    return tmp_path / "data"


@pytest.fixture
def cifar100(tmp_path, monkeypatch):
    folder = write_cifar100(tmp_path / "data", pixels(200), FINE, pixels(100, seed=1), FINE_TEST)
    set_hashes(monkeypatch, torchvision.datasets.CIFAR100, folder)
    return tmp_path / "data"


def test_cifar10_from_its_own_files_and_from_npy_is_the_same(cifar10, tmp_path):
    npy = write_npy(tmp_path / "npy", X, Y.astype(np.uint8), X_TEST, Y_TEST.astype(np.uint8))
    params = {"noise": cifar10_noise(0.4), "n_meta": 20, "random_state": 0}
    data = load_cifar10(cifar10, **params)
    others = load_cifar10(npy, **params), load_npy(npy, classes=CIFAR10_CLASSES, **params)
    assert data.classes == CIFAR10_CLASSES
    for other in others:
        for one, two in zip(data, other, strict=True):
            np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(data.X, X[data.rows])
    np.testing.assert_array_equal(data.X_meta, X[data.rows_meta])
    np.testing.assert_array_equal(data.X_test, X_TEST)
    np.testing.assert_array_equal(data.y_true, Y[data.rows])
    np.testing.assert_array_equal(data.y_test, Y_TEST)
    assert not isinstance(others[0].X_test, np.memmap)


def test_cifar100_with_fine_and_coarse_labels(cifar100):
    T = superclass_noise(CIFAR100_SUPERCLASSES, 0.4)
    data = load_cifar100(cifar100, noise=T, n_meta=100, random_state=0)
    assert data.classes == CIFAR100_CLASSES
    np.testing.assert_array_equal(data.y_true, FINE[data.rows])
    np.testing.assert_array_equal(CIFAR100_SUPERCLASSES[data.y], CIFAR100_SUPERCLASSES[data.y_true])
    assert (data.y != data.y_true).any()
    coarse = load_cifar100(cifar100, labels="coarse", n_meta=20, random_state=0)
    assert coarse.classes == CIFAR100_SUPERCLASS_NAMES
    np.testing.assert_array_equal(coarse.y_test, CIFAR100_SUPERCLASSES[FINE_TEST])
    with pytest.raises(ValueError, match="give 'fine' or 'coarse'"):
        load_cifar100(cifar100, labels="super")


def test_the_tree_of_cifar100():
    assert len(CIFAR100_CLASSES) == len(set(CIFAR100_CLASSES)) == 100
    assert np.bincount(CIFAR100_SUPERCLASSES).tolist() == [5] * 20
    for name, superclass in (("apple", 4), ("beaver", 0), ("worm", 13), ("tractor", 19), ("train", 18)):
        assert CIFAR100_SUPERCLASSES[CIFAR100_CLASSES.index(name)] == superclass
    T = superclass_noise(CIFAR100_SUPERCLASSES, 0.4)
    assert sorted(set(T.ravel().round(12))) == [0, 0.1, 0.6]


@pytest.mark.parametrize("name", ["data_batch_3", "test_batch", "batches.meta"])
def test_a_file_of_cifar10_that_is_missing_or_damaged(cifar10, name):
    path = cifar10 / "cifar-10-batches-py" / name
    cut(path)
    with pytest.raises(ValueError, match=rf"{name} .*bytes.*MD5 is .*truncated.*cs.toronto.edu"):
        load_cifar10(cifar10)
    path.rename(cifar10 / name)
    with pytest.raises(FileNotFoundError, match=rf"{name} is missing.*There is .*{name}: move it.*cs.toronto.edu"):
        load_cifar10(cifar10)
    (cifar10 / name).unlink()
    with pytest.raises(FileNotFoundError, match=rf"{name} is missing.*X_train.npy.*cs.toronto.edu"):
        load_cifar10(cifar10)


def test_another_folder_is_given(cifar10, cifar100, tmp_path):
    for folder in (cifar10 / "cifar-10-batches-py", tmp_path):
        with pytest.raises(FileNotFoundError, match=f"It is in {cifar10}: pass this folder"):
            load_cifar10(folder)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_cifar10(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="is a file"):
        load_cifar100(cifar100 / "cifar-100-python" / "meta")


def test_an_archive_is_to_be_unpacked_and_nothing_is_downloaded(tmp_path, monkeypatch):
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "download", lambda self: pytest.fail("a download"))
    with pytest.raises(FileNotFoundError, match="has no files"):
        load_cifar10(tmp_path)
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(b"0")
    with pytest.raises(FileNotFoundError, match=r"Unpack .*cifar-10-python.tar.gz"):
        load_cifar10(tmp_path)


def test_download_is_left_to_torchvision(cifar10, monkeypatch):
    asked = []
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "download", lambda self: asked.append(self.root))
    load_cifar10(cifar10, download=True, n_meta=10)
    assert asked == [cifar10] * 2


@pytest.mark.parametrize("load", [load_cifar10, load_npy])
def test_npy_files_that_are_missing_or_damaged(tmp_path, load):
    folder = write_npy(tmp_path / "npy", X, Y, X_TEST, Y_TEST)
    for name in ("X_train.npy", "y_test.npy"):
        whole = (folder / name).read_bytes()
        cut(folder / name)
        with pytest.raises(ValueError, match=f"{name} .*it is not a whole .npy file"):
            load(folder)
        (folder / name).unlink()
        with pytest.raises(FileNotFoundError, match=f"{name} is missing"):
            load(folder)
        (folder / name).write_bytes(whole)
    with pytest.raises(FileNotFoundError, match=f"It is in {folder}: pass this folder"):
        load_npy(tmp_path)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("X_train", np.zeros((50, 3, 32, 32), np.uint8), r"it has shape \(50, 3, 32, 32\), not \(n, 32, 32, 3\)"),
        ("y_train", np.arange(49) % 10, "it has 49 labels for 50 rows"),
        ("y_train", np.arange(50) % 11, r"it has the labels 0..10, not 0..9"),
        ("y_test", np.zeros(20), "dtype float64"),
        ("y_test", np.array([None] * 20), "not a whole .npy file of numbers"),
        ("X_test", np.array([{}] * 20), "not a whole .npy file of numbers"),
    ],
)
def test_npy_files_that_do_not_fit(tmp_path, name, array, message):
    folder = write_npy(tmp_path, X, Y, X_TEST, Y_TEST)
    np.save(folder / f"{name}.npy", array)
    with pytest.raises(ValueError, match=rf"(?s){name}.npy .*{message}"):
        load_cifar10(folder)


def test_features_of_another_width_in_the_test_set(tmp_path):
    folder = write_npy(tmp_path, np.zeros((50, 4)), Y, np.zeros((20, 3)), Y_TEST)
    with pytest.raises(ValueError, match=r"X_test.npy .*its rows have shape \(3,\); those of X_train.npy \(4,\)"):
        load_npy(folder)


def test_own_files_come_before_npy_files_of_another_set_in_the_same_folder(cifar100):
    write_npy(cifar100, X, Y, X_TEST, Y_TEST)
    np.testing.assert_array_equal(load_cifar100(cifar100, n_meta=100, random_state=0).y_test, FINE_TEST)


@pytest.mark.parametrize(
    ("images", "labels", "load", "message"),
    [
        (X, Y, load_cifar100, "y_train.npy.*it has 10 of the 100 classes"),
        (X / 255, Y, load_cifar10, "X_train.npy.*numbers are of type float64, not uint8"),
    ],
)
def test_npy_files_of_another_set_or_type(tmp_path, images, labels, load, message):
    write_npy(tmp_path, images, labels, X_TEST, Y_TEST)
    with pytest.raises(ValueError, match=message):
        load(tmp_path)
