"""Test sets for classifiers that were trained on CIFAR-10."""

from os import PathLike
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ._source import Source

CIFAR10_1 = Source("CIFAR-10.1", "https://github.com/modestyachts/CIFAR-10.1 (folder datasets)")


def load_cifar10_1(root: str | PathLike, version: Literal["v4", "v6"] = "v6") -> tuple[NDArray, NDArray[np.int64]]:
    """Load CIFAR-10.1 (Recht et al., 2018): new test images for CIFAR-10, 2,021 in v4 and 2,000 in v6.

    Parameters
    ----------
    root : str or path
        The folder that has ``cifar10.1_v6_data.npy`` and ``cifar10.1_v6_labels.npy``.
    version : {"v4", "v6"}, default="v6"
        The version; v6 has equally many images of each class.

    Returns
    -------
    X : ndarray of shape (n, 32, 32, 3), uint8
        Images.
    y : ndarray of shape (n,)
        Labels, as in CIFAR-10.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a file is damaged, or `version` is not valid.

    Examples
    --------
    >>> from noisytransition.datasets import load_cifar10, load_cifar10_1
    >>> X_test, y_test = load_cifar10_1("data")  # doctest: +SKIP
    >>> data = load_cifar10("data")._replace(X_test=X_test, y_test=y_test)  # doctest: +SKIP
    """
    if version not in ("v4", "v6"):
        raise ValueError(f"version={version!r}; give 'v4' or 'v6'.")
    images, labels = CIFAR10_1.find(root, *(f"cifar10.1_{version}_{part}.npy" for part in ("data", "labels")))
    X = CIFAR10_1.open_array(images, (None, 32, 32, 3), np.uint8)
    return np.array(X), CIFAR10_1.read_labels(labels, 10, len(X))
