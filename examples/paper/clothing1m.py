"""Clothing1M: images from online shops with labels from their surrounding text, and clean labels for some of them.

The authors provide it on request: https://github.com/Cysu/noisy_label (Xiao et al., CVPR 2015).
"""

from pathlib import Path

import numpy as np
from torch.utils.data import Subset
from torchvision.transforms import CenterCrop, Compose, Resize

from examples.paper.image_sets import ImageFiles
from noisytransition import ComparisonData

N_CLASSES = 14
NOISY, VALIDATION = "noisy_train_key_list.txt", "clean_val_key_list.txt"
CLEAN = ("clean_train_key_list.txt", VALIDATION, "clean_test_key_list.txt")


class Files:
    """Text files and images of Clothing1M in a folder."""

    def __init__(self, root):
        self.root = Path(root)
        self.clean, self.noisy = self.labels("clean_label_kv.txt"), self.labels("noisy_label_kv.txt")

    def lines(self, name):
        """Read the lines of a text file in ``annotations`` or in the folder itself."""
        path = self.root / "annotations" / name
        path = path if path.exists() else self.root / name
        return [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]

    def labels(self, name):
        """Read labels from a file with lines "image label"."""
        pairs = (line.rpartition(" ") for line in self.lines(name))
        return {key: int(label) for key, _, label in pairs}

    def keys(self, name):
        """Read the images of a list; raise if one of them occurs twice."""
        keys = self.lines(name)
        if len(set(keys)) < len(keys):
            raise ValueError(f"{name} has duplicate images; download Clothing1M again.")
        return keys

    def images(self, keys):
        """Return images resized to 256 pixels and cropped to the central 224 x 224."""
        return ImageFiles([f"{self.root}/{key}" for key in keys], Compose([Resize(256), CenterCrop(224)]))


def load_clothing1m(root, *, n_noisy=None, n_clean=None, random_state=None):
    """Load noisy samples, clean samples from the validation list, balanced by class, and the samples of the test list.

    Images with a clean label are excluded from the noisy samples. ``rows`` and ``rows_clean`` are positions in the
    lists of noisy and of validation images.
    """
    rng, files = np.random.RandomState(random_state), Files(root)
    clean, test, listed = (files.keys(name) for name in (VALIDATION, CLEAN[2], NOISY))
    y_clean, y_test = (np.array([files.clean[key] for key in keys]) for keys in (clean, test))
    y = np.array([files.noisy[key] for key in listed])
    X_clean, rows_clean = files.images(clean), np.arange(len(clean))
    if n_clean is not None:
        rows_clean = draw_balanced(y_clean, n_clean, rng)
        X_clean = Subset(X_clean, rows_clean.tolist())
    known = {key for name in CLEAN for key in files.keys(name)}
    rows = np.flatnonzero([key not in known for key in listed])
    if n_noisy is not None:
        rows = np.sort(rng.choice(rows, n_noisy, replace=False))
    return ComparisonData(
        files.images([listed[row] for row in rows]),
        y[rows],
        X_clean,
        y_clean[rows_clean],
        files.images(test),
        y_test,
        classes=tuple(files.lines("category_names_eng.txt")),
        rows=rows,
        rows_clean=rows_clean,
    )


def draw_balanced(y, n, rng):
    """Draw sorted positions with equally many samples of each class, up to a difference of one."""
    sizes = np.full(N_CLASSES, n // N_CLASSES)
    sizes[rng.choice(N_CLASSES, n % N_CLASSES, replace=False)] += 1
    return np.sort(np.concatenate([rng.choice(np.flatnonzero(y == c), size, False) for c, size in enumerate(sizes)]))


def label_pairs(root):
    """Read true and noisy labels of the images in the clean training list that have both, to count T."""
    files = Files(root)
    keys = [key for key in files.keys(CLEAN[0]) if key in files.noisy]
    return np.array([files.clean[key] for key in keys]), np.array([files.noisy[key] for key in keys])
