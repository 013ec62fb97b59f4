"""Data sets that the library does not read: images in files, and arrays.

CIFAR is read by the library, or from the four arrays of `load_npy`.
"""

from collections import Counter
from pathlib import Path

import numpy as np
from torch.utils.data import Dataset
from torchvision.datasets import folder as images

from noisytransition.datasets import CIFAR10_CLASSES, CIFAR100_SUPERCLASSES, make_noisy_data

NAMES = ("X_train.npy", "y_train.npy", "X_test.npy", "y_test.npy")
# copies of Tiny-ImageNet with two more classes, at the end of wnids.txt, are in circulation
N_TINY_IMAGENET = 200


class ImageFiles(Dataset):
    """Images in files, uint8 of shape (height, width, 3), which are read when they are asked for."""

    def __init__(self, paths, transform=None):
        self.paths = [str(path) for path in paths]
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        """One image."""
        image = images.default_loader(self.paths[index])
        return np.asarray(image if self.transform is None else self.transform(image))


def load_npy(root, labels="fine", **params):
    """Rows and labels in ``X_train.npy``, ``y_train.npy``, ``X_test.npy`` and ``y_test.npy``; of CIFAR-100 the fine."""
    X, y, X_test, y_test = (np.load(Path(root) / name, mmap_mode="r") for name in NAMES)
    if labels == "coarse":
        y, y_test = CIFAR100_SUPERCLASSES[y], CIFAR100_SUPERCLASSES[y_test]
    return make_noisy_data(X, np.array(y), np.array(X_test), np.array(y_test), **params)


def from_arrays_or(load, root, **params):
    """Read the four arrays if they are there; otherwise the files of the set."""
    return load_npy(root, **params) if (Path(root) / NAMES[0]).exists() else load(root, **params)


def load_cifar10_1(root, version="v6"):
    """Images and labels of CIFAR-10.1 (Recht et al., 2018): new test images for CIFAR-10."""
    X, y = (np.load(Path(root) / f"cifar10.1_{version}_{part}.npy") for part in ("data", "labels"))
    if len(X) != len(y):
        raise ValueError(f"{root} has {len(y)} labels for {len(X)} rows of CIFAR-10.1.")
    return X, y.astype(np.int64)


def load_cinic10_test(root):
    """Test images of CINIC-10 (Darlow et al., 2018) that are from ImageNet, and their labels.

    The others are of CIFAR-10, from its training set too; their files are named so.
    """
    paths, y = class_folders(Path(root) / "test", CIFAR10_CLASSES)
    kept = [not Path(path).name.startswith("cifar10-") for path in paths]
    return ImageFiles([path for path, take in zip(paths, kept, strict=True) if take]), y[kept]


def load_tiny_imagenet(root, **params):
    """Tiny-ImageNet: 100,000 training images of 200 classes; the 10,000 validation images are the test set.

    The labels of the official test images are not public. Classes are numbered by their line in ``wnids.txt``.
    """
    folder = Path(root) / "tiny-imagenet-200"
    folder = folder if folder.is_dir() else Path(root)
    classes = (folder / "wnids.txt").read_text().split()[:N_TINY_IMAGENET]
    paths, y = class_folders(folder / "train", classes)
    codes = {name: code for code, name in enumerate(classes)}
    lines = (line.split("\t") for line in (folder / "val" / "val_annotations.txt").read_text().splitlines())
    of = {name: codes[synset] for name, synset, *_ in lines if synset in codes}
    if lost := sorted(set(of) - {path.name for path in (folder / "val" / "images").iterdir()}):
        raise ValueError(f"{folder / 'val' / 'images'} lacks {len(lost)} images, such as {lost[0]}.")
    X, X_test = ImageFiles(paths), ImageFiles(folder / "val" / "images" / name for name in of)
    return make_noisy_data(X, y, X_test, np.array(list(of.values())), classes=classes, **params)


def class_folders(folder, classes):
    """Image files in one folder per class, and their labels; a class with fewer files than others is incomplete."""
    codes = {name: code for code, name in enumerate(classes)}
    samples = images.make_dataset(folder, codes, is_valid_file=_is_image)
    sizes = Counter(label for _, label in samples)
    if len(set(sizes.values())) > 1:
        least = min(sizes, key=sizes.__getitem__)
        raise ValueError(f"{folder / classes[least]} has {sizes[least]} images, another class {max(sizes.values())}.")
    return [path for path, _ in samples], np.array([label for _, label in samples])


def _is_image(path):
    """Whether a file is one by its name; files that systems hide are none."""
    return not Path(path).name.startswith(".") and images.has_file_allowed_extension(path, images.IMG_EXTENSIONS)
