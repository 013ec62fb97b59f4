"""Readers of data sets: image files, and arrays.

`examples/cifar.py` reads the original files of CIFAR; `load_npy` reads it from four arrays.
"""

from collections import Counter
from pathlib import Path

import numpy as np
from torch.utils.data import Dataset
from torchvision.datasets import folder as images

from examples.cifar import CIFAR10_CLASSES, CIFAR100_SUPERCLASSES
from noisytransition.datasets import make_noisy_data

NAMES = ("X_train.npy", "y_train.npy", "X_test.npy", "y_test.npy")
# some copies of Tiny-ImageNet have two more classes at the end of wnids.txt
N_TINY_IMAGENET = 200


class ImageFiles(Dataset):
    """Images in files, uint8 of shape (height, width, 3), which are read when they are accessed."""

    def __init__(self, paths, transform=None):
        self.paths = [str(path) for path in paths]
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        """Read an image."""
        image = images.default_loader(self.paths[index])
        return np.asarray(image if self.transform is None else self.transform(image))


def load_npy(root, labels="fine", **params):
    """Read ``X_train.npy``, ``y_train.npy``, ``X_test.npy`` and ``y_test.npy`` (CIFAR-100 with fine labels)."""
    X, y, X_test, y_test = (np.load(Path(root) / name, mmap_mode="r") for name in NAMES)
    if labels == "coarse":
        y, y_test = CIFAR100_SUPERCLASSES[y], CIFAR100_SUPERCLASSES[y_test]
    return make_noisy_data(X, np.array(y), np.array(X_test), np.array(y_test), **params)


def from_arrays_or(load, root, **params):
    """Read the four arrays if they exist, otherwise the original files."""
    return load_npy(root, **params) if (Path(root) / NAMES[0]).exists() else load(root, **params)


def load_cifar10_1(root, version="v6"):
    """Read images and labels of CIFAR-10.1 (Recht et al., 2018), new test images for CIFAR-10."""
    X, y = (np.load(Path(root) / f"cifar10.1_{version}_{part}.npy") for part in ("data", "labels"))
    if len(X) != len(y):
        raise ValueError(f"{root} has {len(y)} labels for {len(X)} images of CIFAR-10.1; download both files again.")
    return X, y.astype(np.int64)


def load_cinic10_test(root):
    """Read the test images of CINIC-10 (Darlow et al., 2018) from ImageNet, and their labels.

    The other images are from CIFAR-10, also from its training set; their file names start with "cifar10-".
    """
    paths, y = class_folders(Path(root) / "test", CIFAR10_CLASSES)
    kept = [not Path(path).name.startswith("cifar10-") for path in paths]
    return ImageFiles([path for path, take in zip(paths, kept, strict=True) if take]), y[kept]


def load_tiny_imagenet(root, **params):
    """Load Tiny-ImageNet: 100,000 training images of 200 classes; the 10,000 validation images are the test set.

    The labels of the official test images are not public. Class codes are the positions in ``wnids.txt``.
    """
    folder = Path(root) / "tiny-imagenet-200"
    folder = folder if folder.is_dir() else Path(root)
    classes = (folder / "wnids.txt").read_text().split()[:N_TINY_IMAGENET]
    paths, y = class_folders(folder / "train", classes)
    codes = {name: code for code, name in enumerate(classes)}
    lines = (line.split("\t") for line in (folder / "val" / "val_annotations.txt").read_text().splitlines())
    of = {name: codes[synset] for name, synset, *_ in lines if synset in codes}
    if lost := sorted(set(of) - {path.name for path in (folder / "val" / "images").iterdir()}):
        raise ValueError(
            f"{folder / 'val' / 'images'} lacks {len(lost)} images, such as {lost[0]}; unpack the archive again."
        )
    X, X_test = ImageFiles(paths), ImageFiles(folder / "val" / "images" / name for name in of)
    return make_noisy_data(X, y, X_test, np.array(list(of.values())), classes=classes, **params)


def class_folders(folder, classes):
    """List the image files in a folder for each class, and their labels; raise if class sizes differ."""
    codes = {name: code for code, name in enumerate(classes)}
    samples = images.make_dataset(folder, codes, is_valid_file=_is_image)
    sizes = Counter(label for _, label in samples)
    if len(set(sizes.values())) > 1:
        least = min(sizes, key=sizes.__getitem__)
        raise ValueError(f"{folder / classes[least]} has {sizes[least]} images, another class {max(sizes.values())}.")
    return [path for path, _ in samples], np.array([label for _, label in samples])


def _is_image(path):
    """Return whether a file name is that of an image; hidden files are not."""
    return not Path(path).name.startswith(".") and images.has_file_allowed_extension(path, images.IMG_EXTENSIONS)
