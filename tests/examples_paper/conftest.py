"""Tiny data sets in their own file formats, for the scale `smoke`."""

import numpy as np
import pytest
from PIL import Image
from small_files import pixels


def write_arrays(folder, n, n_classes, n_test):
    folder.mkdir()
    for name, array in (
        ("X_train", pixels(n)),
        ("y_train", np.arange(n) % n_classes),
        ("X_test", pixels(n_test, seed=1)),
        ("y_test", np.arange(n_test) % n_classes),
    ):
        np.save(folder / f"{name}.npy", array)


def write_image(path, seed, mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels(1, seed)[0, :8, :8]).convert(mode).save(path)


def write_tiny_imagenet(folder):
    synsets = [f"n{i:08d}" for i in range(200)]
    for c, synset in enumerate(synsets):
        write_image(folder / "train" / synset / "images" / f"{synset}_0.JPEG", c, mode="L")  # some images are grey
        write_image(folder / "train" / synset / "images" / f"{synset}_1.JPEG", c)
        write_image(folder / "val" / "images" / f"val_{c}.JPEG", c)
    (folder / "wnids.txt").write_text("\n".join(synsets) + "\n")
    lines = "".join(f"val_{c}.JPEG\t{synset}\t0\t0\t7\t7\n" for c, synset in enumerate(synsets))
    (folder / "val" / "val_annotations.txt").write_text(lines)


def write_clothing1m(root):
    """Write noisy images and three clean lists; every second clean image also has a noisy label."""
    annotations, noisy, clean, number = root / "annotations", [], [], 0
    annotations.mkdir(parents=True)
    for name, size in {"noisy_train": 120, "clean_train": 28, "clean_val": 14, "clean_test": 14}.items():
        keys = [f"images/{i % 10}/{i},{i}.jpg" for i in range(number, number + size)]
        for i, key in enumerate(keys):
            write_image(root / key, i)
            if name == "noisy_train" or i % 2:
                noisy.append(f"{key} {(i + (name != 'noisy_train')) % 14}")
            if name != "noisy_train":
                clean.append(f"{key} {i % 14}")
        (annotations / f"{name}_key_list.txt").write_text("\n".join(keys) + "\n")
        number += size
    (annotations / "noisy_label_kv.txt").write_text("\n".join(noisy) + "\n")
    (annotations / "clean_label_kv.txt").write_text("\n".join(clean) + "\n")
    (annotations / "category_names_eng.txt").write_text("\n".join(f"class {i}" for i in range(14)) + "\n")


@pytest.fixture(scope="session")
def data_root(tmp_path_factory):
    """A folder with every data set."""
    root = tmp_path_factory.mktemp("data")
    write_arrays(root / "cifar10", 300, 10, 40)
    write_arrays(root / "cifar100", 300, 100, 100)
    (root / "cifar10n").mkdir()
    y, wrong = np.arange(300) % 10, np.random.default_rng(0).random(300)
    for name, rate in (("aggre", 0.1), ("worse", 0.4)):
        np.save(root / "cifar10n" / f"cifar10n_{name}.npy", np.where(wrong < rate, (y + 1) % 10, y).astype(np.uint8))
    write_tiny_imagenet(root / "tiny-imagenet")
    write_clothing1m(root / "clothing1m")
    return root
