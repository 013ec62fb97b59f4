import importlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from dataset_files import cut, write_cinic10, write_image, write_npy, write_tiny_imagenet

import noisytransition
from noisytransition.datasets import CIFAR10_CLASSES, ImageFiles, load_cinic10, load_tiny_imagenet
from noisytransition.transition import pair_noise

pytest.importorskip("torchvision")


def test_images_are_read_when_they_are_used(tmp_path):
    for i, mode in enumerate(("RGB", "L")):
        write_image(tmp_path / f"{i}.png", i, size=(5, 6), mode=mode)
    images = ImageFiles([tmp_path / "0.png", tmp_path / "1.png", tmp_path / "2.png"])
    assert len(images) == 3
    for i in range(2):
        assert images[i].shape == (5, 6, 3)
        assert images[i].dtype == np.uint8
    with pytest.raises(FileNotFoundError, match=r"2\.png"):
        images[2]
    assert ImageFiles([tmp_path / "0.png"], lambda image: image.crop((0, 0, 2, 3)))[0].shape == (3, 2, 3)
    assert ImageFiles([tmp_path / "0.png"], lambda image: image.size)[0] == (6, 5)
    cut(tmp_path / "0.png")
    with pytest.raises(ValueError, match=r"0\.png is not a whole image file"):
        images[0]


# ---------------------------------------------------------------------------- CINIC-10
def paths(images):
    return [Path(images.dataset.paths[i]) for i in images.indices]


@pytest.mark.parametrize(("images", "n"), [("all", 3), ("cifar10", 1), ("imagenet", 2)])
def test_cinic10(tmp_path, images, n):
    data = load_cinic10(write_cinic10(tmp_path), images=images, n_meta=2, balanced=False, random_state=0)
    assert data.classes == CIFAR10_CLASSES
    assert len(data.y) == 10 * n - 2
    assert len(data.X_test) == 10 * n
    for part, labels in ((data.X, data.y), (data.X_meta, data.y_meta)):
        assert [CIFAR10_CLASSES[label] for label in labels] == [path.parent.name for path in paths(part)]
        assert {path.parents[1].name for path in paths(part)} == {"train"}
    assert {Path(path).parents[1].name for path in data.X_test.paths} == {"test"}
    assert data.X[0].shape == (8, 8, 3)


def test_folders_of_cinic10_that_are_missing_or_incomplete(tmp_path):
    write_cinic10(tmp_path / "CINIC-10")
    with pytest.raises(FileNotFoundError, match=rf"train is missing.*It is in {tmp_path / 'CINIC-10'}.*BayesWatch"):
        load_cinic10(tmp_path)
    folder = tmp_path / "CINIC-10"
    (folder / "test" / "ship" / "n08_1.png").unlink()
    with pytest.raises(ValueError, match=r"ship: it has 2 images, but airplane has 3"):
        load_cinic10(folder)
    shutil.rmtree(folder / "train" / "dog")
    with pytest.raises(FileNotFoundError, match=r"dog is missing.*BayesWatch"):
        load_cinic10(folder)
    (folder / "train" / "dog").mkdir()
    with pytest.raises(ValueError, match="dog: it has 0 images"):
        load_cinic10(folder)
    shutil.rmtree(folder / "test")
    with pytest.raises(FileNotFoundError, match="test is missing"):
        load_cinic10(folder)
    with pytest.raises(ValueError, match="images='some'"):
        load_cinic10(folder, images="some")


def test_cinic10_without_images_of_the_kind(tmp_path):
    with pytest.raises(ValueError, match="no name of a file says that it is from cifar10"):
        load_cinic10(write_cinic10(tmp_path, n_cifar=0), images="cifar10")


# ---------------------------------------------------------------------------- Tiny-ImageNet
def test_tiny_imagenet_numbers_classes_by_line(tmp_path):
    folder = write_tiny_imagenet(tmp_path)
    data = load_tiny_imagenet(tmp_path, noise=pair_noise(3, 1.0), n_meta=3, random_state=0)
    assert data.classes == ("crane (n03)", "goldfish", "crane (n02)")
    synsets = ["n03", "n01", "n02"]
    assert [path.parents[1].name for path in paths(data.X)] == [synsets[label] for label in data.y_true]
    np.testing.assert_array_equal(data.y, (data.y_true + 1) % 3)
    assert [Path(path).name for path in data.X_test.paths] == [f"val_{i}.JPEG" for i in range(3)]
    assert data.y_test.tolist() == [0, 1, 2]
    assert {data.X[i].shape for i in range(9)} == {(8, 8, 3)}  # grey ones, too
    (folder / "words.txt").unlink()
    assert load_tiny_imagenet(folder, n_meta=3).classes == tuple(synsets)


def test_classes_after_the_first_200_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("noisytransition.datasets._tiny_imagenet._N_CLASSES", 2)
    write_tiny_imagenet(tmp_path)
    data = load_tiny_imagenet(tmp_path, n_meta=2)
    assert len(data.y) == 6
    assert data.y_test.tolist() == [0, 1]
    assert len(data.classes) == 2


def test_files_of_tiny_imagenet_that_are_missing_or_incomplete(tmp_path):
    folder = write_tiny_imagenet(tmp_path / "data")
    with pytest.raises(FileNotFoundError, match=r"wnids.txt is missing.*pass this folder.*stanford"):
        load_tiny_imagenet(folder / "val")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_tiny_imagenet(tmp_path / "nothing")
    (folder / "train" / "n01" / "images" / "n01_2.JPEG").unlink()
    with pytest.raises(ValueError, match="n01: it has 3 images, but n03 has 4"):
        load_tiny_imagenet(folder)
    shutil.rmtree(folder / "train" / "n01")
    with pytest.raises(FileNotFoundError, match="n01 is missing"):
        load_tiny_imagenet(folder)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda text: text[: len(text) // 2], ValueError, "val_annotations.txt .*line 2 is|no line for"),
        (lambda text: "\n".join(text.splitlines()[:2]), ValueError, "no line for 1 images, such as val_2.JPEG"),
        (lambda text: text.replace("n01", "n77"), ValueError, "line 2 is .*n77"),
        (lambda text: text + "val_9.JPEG\tn01\n", FileNotFoundError, "val_9.JPEG is missing"),
    ],
)
def test_annotations_of_tiny_imagenet_that_do_not_fit(tmp_path, change, error, message):
    path = write_tiny_imagenet(tmp_path) / "val" / "val_annotations.txt"
    path.write_text(change(path.read_text()))
    with pytest.raises(error, match=message):
        load_tiny_imagenet(tmp_path)


def test_torchvision_is_imported_for_images_alone(tmp_path, monkeypatch):
    write_npy(tmp_path, np.zeros((20, 2)), np.arange(20) % 2, np.zeros((4, 2)), np.arange(4) % 2)
    monkeypatch.setattr(noisytransition, "datasets", noisytransition.datasets)  # to be put back
    for name in [name for name in sys.modules if name.startswith("noisytransition.datasets")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ["torchvision", *(name for name in sys.modules if name.startswith("torchvision."))]:
        monkeypatch.setitem(sys.modules, name, None)
    again = importlib.import_module("noisytransition.datasets")
    assert again.load_npy(tmp_path, n_meta=4).X.shape == (16, 2)
    for use in (lambda: again.load_cifar10("nothing"), lambda: again.ImageFiles(["a.png"])[0]):
        with pytest.raises(ImportError, match=r"pip install 'noisytransition\[vision\]'"):
            use()


def test_files_that_systems_hide_are_no_images(tmp_path):
    for path in (write_tiny_imagenet(tmp_path / "tiny") / "val" / "images", write_cinic10(tmp_path) / "train" / "cat"):
        (path / ".DS_Store").write_text("")
        (path / "._image.png").write_text("")
    load_tiny_imagenet(tmp_path / "tiny", n_meta=3)
    load_cinic10(tmp_path, n_meta=10)


def test_a_list_of_classes_that_was_cut_at_the_end_of_a_line(tmp_path):
    root = write_tiny_imagenet(tmp_path)
    for kept in ("n03\nn01\n", ""):
        (root / "wnids.txt").write_text(kept)
        with pytest.raises(ValueError, match=r"wnids.txt.*no line for \d folders of .*train, such as n0"):
            load_tiny_imagenet(root)


def test_folders_without_images(tmp_path):
    for path in write_cinic10(tmp_path).glob("train/*/*.png"):
        path.unlink()
    with pytest.raises(ValueError, match=r"train.*the folders of its classes have no images"):
        load_cinic10(tmp_path)
