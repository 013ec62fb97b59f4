"""Tiny data sets in their own file formats, for the scale `smoke`."""

import dataset_files as files
import numpy as np
import pytest


@pytest.fixture(scope="session")
def data_root(tmp_path_factory):
    """A folder with every data set."""
    root = tmp_path_factory.mktemp("data")
    y = np.arange(300) % 10
    files.write_npy(root / "cifar10", files.pixels(300), y, files.pixels(40, 1), np.arange(40) % 10)
    (root / "cifar10n").mkdir()
    wrong = np.random.default_rng(0).random(300)
    for name, rate in (("aggre", 0.1), ("worse", 0.4)):
        np.save(root / "cifar10n" / f"cifar10n_{name}.npy", np.where(wrong < rate, (y + 1) % 10, y).astype(np.uint8))
    files.write_npy(root / "cifar100", files.pixels(300), np.arange(300) % 100, files.pixels(100, 1), np.arange(100))
    files.write_tiny_imagenet(root / "tiny-imagenet", [f"n{i:08d}" for i in range(200)], n=2)
    files.write_clothing1m(root / "clothing1m", n_noisy=120)
    return root
