"""CINIC-10."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from ..comparison import ComparisonData
from ._classes import CIFAR10_CLASSES
from ._images import ImageFiles, class_folders
from ._source import Source
from ._split import Draws, make_noisy_data

CINIC10 = Source("CINIC-10", "https://github.com/BayesWatch/cinic-10")

# beginning of the names of the files that are from CIFAR-10; the others are named after their ImageNet synset
_FROM_CIFAR10 = "cifar10-"


def load_cinic10(
    root: str | PathLike,
    *,
    images: Literal["all", "cifar10", "imagenet"] = "all",
    transform: Callable[[Any], Any] | None = None,
    **params: Unpack[Draws],
) -> ComparisonData:
    """Load CINIC-10 (Darlow et al., 2018): images of CIFAR-10 and ImageNet of the ten classes of CIFAR-10.

    Parameters
    ----------
    root : str or path
        The folder that has ``train`` and ``test``, with one folder of PNG files for each class. ``valid`` is not read.
    images : {"all", "cifar10", "imagenet"}, default="all"
        Which images to take, by the names of the files. To test a classifier that was trained on CIFAR-10, take
        "imagenet": the others are images of CIFAR-10, from its training set, too.
    transform : callable, optional
        As in `ImageFiles`.
    **params
        `noise`, `n_meta`, `n_noisy`, `balanced` and `random_state` of `make_noisy_data`.

    Returns
    -------
    ComparisonData
        Images are read when they are used; see `ImageFiles` and `make_noisy_data`.

    Raises
    ------
    FileNotFoundError
        If a folder is missing.
    ValueError
        If a folder is incomplete, or a parameter is not valid.

    Examples
    --------
    >>> from noisytransition.datasets import load_cinic10
    >>> data = load_cinic10("data/CINIC-10", images="imagenet")  # doctest: +SKIP
    >>> data.X_test, data.y_test  # doctest: +SKIP
    """
    if images not in ("all", "cifar10", "imagenet"):
        raise ValueError(f"images={images!r}; give 'all', 'cifar10' or 'imagenet'.")
    train, test = CINIC10.find(root, "train", "test")
    X, y = _part(train, images, transform)
    X_test, y_test = _part(test, images, transform)
    return make_noisy_data(X, y, X_test, y_test, classes=CIFAR10_CLASSES, **params)


def _part(folder: Path, images: str, transform: Callable[[Any], Any] | None) -> tuple[ImageFiles, NDArray[np.int64]]:
    paths, y = class_folders(CINIC10, folder, CIFAR10_CLASSES)
    if images != "all":
        wanted = [Path(path).name.startswith(_FROM_CIFAR10) == (images == "cifar10") for path in paths]
        paths, y = [path for path, take in zip(paths, wanted, strict=True) if take], y[wanted]
    if not paths:
        raise CINIC10.damaged(folder, f"no name of a file says that it is from {images}")
    return ImageFiles(paths, transform), y
