"""CIFAR-10 and CIFAR-100."""

from os import PathLike
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from ..comparison import ComparisonData
from ._classes import CIFAR10_CLASSES, CIFAR100_CLASSES, CIFAR100_SUPERCLASS_NAMES, CIFAR100_SUPERCLASSES
from ._npy import NAMES, read_npy
from ._source import Source
from ._split import Draws, make_noisy_data
from ._vision import torchvision

CIFAR10 = Source("CIFAR-10", "https://www.cs.toronto.edu/~kriz/cifar.html ('python version')")
CIFAR100 = Source("CIFAR-100", "https://www.cs.toronto.edu/~kriz/cifar.html ('python version')")

_IMAGES = (None, 32, 32, 3)


def load_cifar10(root: str | PathLike, *, download: bool = False, **params: Unpack[Draws]) -> ComparisonData:
    """Load CIFAR-10 (Krizhevsky, 2009): 50,000 training and 10,000 test images of 10 classes.

    Parameters
    ----------
    root : str or path
        The folder that has ``cifar-10-batches-py`` or, without it, one with ``X_train.npy``, ``y_train.npy``,
        ``X_test.npy`` and ``y_test.npy``.
    download : bool, default=False
        Whether torchvision may download the set to `root` if it is not there.
    **params
        `noise`, `n_meta`, `n_noisy`, `balanced` and `random_state` of `make_noisy_data`. The noise of the literature:
        `symmetric_noise`, `uniform_noise`, `cifar10_noise`; labels of people: `load_cifar10n`.

    Returns
    -------
    ComparisonData
        Images are uint8 of shape (n, 32, 32, 3), in the original order. See `make_noisy_data`.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a file is damaged, or a parameter is not valid.

    Examples
    --------
    >>> from noisytransition.datasets import load_cifar10, load_cifar10n
    >>> from noisytransition.transition import cifar10_noise
    >>> data = load_cifar10("data", noise=cifar10_noise(0.4), random_state=0)  # doctest: +SKIP
    >>> data.X.shape, data.X_meta.shape, data.X_test.shape  # doctest: +SKIP
    ((49000, 32, 32, 3), (1000, 32, 32, 3), (10000, 32, 32, 3))
    >>> people = load_cifar10("data", noise=load_cifar10n("data", "worse"), random_state=0)  # doctest: +SKIP
    """
    arrays = _read(CIFAR10, "CIFAR10", 10, root, download)
    return make_noisy_data(*arrays, classes=CIFAR10_CLASSES, **params)


def load_cifar100(
    root: str | PathLike,
    *,
    labels: Literal["fine", "coarse"] = "fine",
    download: bool = False,
    **params: Unpack[Draws],
) -> ComparisonData:
    """Load CIFAR-100 (Krizhevsky, 2009): 50,000 training and 10,000 test images of 100 classes in 20 superclasses.

    Parameters
    ----------
    root : str or path
        The folder that has ``cifar-100-python`` or, without it, one with ``X_train.npy``, ``y_train.npy``,
        ``X_test.npy`` and ``y_test.npy``, with fine labels.
    labels : {"fine", "coarse"}, default="fine"
        The 100 classes, or the 20 superclasses.
    download : bool, default=False
        Whether torchvision may download the set to `root` if it is not there.
    **params
        `noise`, `n_meta`, `n_noisy`, `balanced` and `random_state` of `make_noisy_data`. The noise of the literature:
        `symmetric_noise` and ``superclass_noise(CIFAR100_SUPERCLASSES, rate)``.

    Returns
    -------
    ComparisonData
        Images are uint8 of shape (n, 32, 32, 3), in the order of the files. See `make_noisy_data`.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a file is damaged, or a parameter is not valid.

    Examples
    --------
    >>> from noisytransition.datasets import CIFAR100_SUPERCLASSES, load_cifar100
    >>> from noisytransition.transition import superclass_noise
    >>> T = superclass_noise(CIFAR100_SUPERCLASSES, 0.4)
    >>> data = load_cifar100("data", noise=T, random_state=0)  # doctest: +SKIP
    """
    if labels not in ("fine", "coarse"):
        raise ValueError(f"labels={labels!r}; give 'fine' or 'coarse'.")
    X, y, X_test, y_test = _read(CIFAR100, "CIFAR100", 100, root, download)
    if labels == "fine":
        return make_noisy_data(X, y, X_test, y_test, classes=CIFAR100_CLASSES, **params)
    y, y_test = CIFAR100_SUPERCLASSES[y], CIFAR100_SUPERCLASSES[y_test]
    return make_noisy_data(X, y, X_test, y_test, classes=CIFAR100_SUPERCLASS_NAMES, **params)


def _read(
    source: Source, name: str, n_classes: int, root: str | PathLike, download: bool
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Training images and labels, test images and labels, from .npy files or by torchvision."""
    folder = Path(root).expanduser()
    kind = getattr(torchvision("datasets"), name)
    if not (folder / kind.base_folder).is_dir() and any((folder / file).exists() for file in NAMES):
        return _read_npy(source, folder, n_classes)
    try:
        train, test = (kind(folder, train=part, download=download) for part in (True, False))
    except RuntimeError:
        _explain(source, kind, folder)
        raise
    return train.data, np.array(train.targets), test.data, np.array(test.targets)


def _read_npy(source: Source, folder: Path, n_classes: int) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """The four files; other sets, and parts of this one, lack classes."""
    arrays = read_npy(source, folder, n_classes, _IMAGES, np.uint8)
    for name, labels in zip(NAMES[1::2], arrays[1::2], strict=True):
        if (n := len(np.unique(labels))) < n_classes:
            raise source.damaged(folder / name, f"it has {n} of the {n_classes} classes")
    return arrays


def _explain(source: Source, kind: Any, root: Path) -> None:
    """Raise for the first file that torchvision misses or finds damaged."""
    checksum = torchvision("datasets.utils").calculate_md5
    expected = dict(kind.train_list + kind.test_list) | {kind.meta["filename"]: kind.meta["md5"]}
    folder = source.folder(root)
    archive = f"Unpack {folder / kind.filename} there. " if (folder / kind.filename).exists() else ""
    for name, md5 in expected.items():
        path = folder / kind.base_folder / name
        if not path.exists():
            also = archive or f"The four files {', '.join(NAMES)} are read, too. "
            raise source.missing(folder, f"{kind.base_folder}/{name}", also) from None
        if (found := checksum(path)) != md5:
            raise source.damaged(path, f"its MD5 is {found}, not {md5}") from None
