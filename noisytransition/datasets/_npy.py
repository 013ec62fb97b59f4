"""Folders with four .npy files: rows and labels for training and test."""

from collections.abc import Sequence
from os import PathLike
from typing import Unpack

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..comparison import ComparisonData
from ._source import Source
from ._split import Draws, make_noisy_data

NAMES = ("X_train.npy", "y_train.npy", "X_test.npy", "y_test.npy")
_OWN = Source("a folder of .npy files", "arrays of your own: np.save(folder / 'X_train.npy', X_train) and so on")


def load_npy(root: str | PathLike, *, classes: Sequence[str] | None = None, **params: Unpack[Draws]) -> ComparisonData:
    """Load rows and labels from ``X_train.npy``, ``y_train.npy``, ``X_test.npy`` and ``y_test.npy``.

    Rows have any shape: images, or features.

    Parameters
    ----------
    root : str or path
        The folder with the four files. Labels are class indices 0..c-1, and true.
    classes : sequence of str, optional
        Names of the classes; default: none.
    **params
        `noise`, `n_meta`, `n_noisy`, `balanced` and `random_state` of `make_noisy_data`.

    Returns
    -------
    ComparisonData
        See `make_noisy_data`.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a file is truncated, or the files do not fit together.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from noisytransition.datasets import load_npy
    >>> folder = Path(tempfile.mkdtemp())
    >>> for part, n in (("train", 60), ("test", 30)):
    ...     np.save(folder / f"X_{part}.npy", np.zeros((n, 2)))
    ...     np.save(folder / f"y_{part}.npy", np.arange(n) % 3)
    >>> data = load_npy(folder, n_meta=6, random_state=0)
    >>> print(len(data.y), "noisy rows; clean rows of the classes", data.y_meta.tolist())
    54 noisy rows; clean rows of the classes [2, 2, 1, 1, 0, 0]
    """
    arrays = read_npy(_OWN, root, None if classes is None else len(classes))
    return make_noisy_data(*arrays, classes=classes, **params)


def read_npy(
    source: Source,
    root: str | PathLike,
    n_classes: int | None,
    shape: tuple[int | None, ...] | None = None,
    dtype: DTypeLike | None = None,
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Training rows and labels, test rows and labels; all files are checked before one is read."""
    paths = source.find(root, *NAMES)
    X, X_test = (source.open_array(path, shape, dtype) for path in paths[::2])
    if X.ndim != X_test.ndim or X.shape[1:] != X_test.shape[1:]:
        raise source.damaged(
            paths[2], f"its rows have shape {X_test.shape[1:]}; those of {paths[0].name} {X.shape[1:]}"
        )
    y, y_test = (source.read_labels(p, n_classes, len(rows)) for p, rows in zip(paths[1::2], (X, X_test), strict=True))
    return X, y, np.array(X_test), y_test
