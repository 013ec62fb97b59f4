"""Labels of people for CIFAR-10: CIFAR-10N for training images, CIFAR-10H for test images."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ._source import Source, describe_labels

CIFAR10N = Source("CIFAR-10N", "http://www.noisylabels.com (https://github.com/UCSC-REAL/cifar-10-100n)")
CIFAR10H = Source("CIFAR-10H", "https://github.com/jcpeterson/cifar-10h (folder data)")

# label set -> its key in CIFAR-10_human.pt
_KEYS = {
    "clean": "clean_label",
    "aggre": "aggre_label",
    "worse": "worse_label",
    "random1": "random_label1",
    "random2": "random_label2",
    "random3": "random_label3",
}
_PT = "CIFAR-10_human.pt"


def load_cifar10n(
    path: str | PathLike, labels: Literal["clean", "aggre", "worse", "random1", "random2", "random3"] = "worse"
) -> NDArray[np.int64]:
    """Load CIFAR-10N (Wei et al., 2022): labels that three people each gave to the training images of CIFAR-10.

    Parameters
    ----------
    path : str or path
        The file ``CIFAR-10_human.pt``; a .npy file of one label set; or a folder that has the first, or
        ``cifar10n_worse.npy`` (with the name of the label set). Of the .pt file arrays alone are read: code that a
        file of this format may hold is refused.
    labels : {"clean", "aggre", "worse", "random1", "random2", "random3"}, default="worse"
        "aggre" is the majority of the three, "worse" a wrong one of them where there is one; "clean" are the labels of
        CIFAR-10. Not used if `path` is a .npy file.

    Returns
    -------
    ndarray of shape (n,), int64
        Labels in the order of the training images of torchvision's CIFAR-10, for ``load_cifar10(noise=)``.

    Raises
    ------
    FileNotFoundError
        If the file is missing.
    ValueError
        If the file is damaged, or `labels` is not valid.

    Examples
    --------
    >>> from noisytransition.datasets import load_cifar10, load_cifar10n
    >>> data = load_cifar10("data", noise=load_cifar10n("data", "worse"), random_state=0)  # doctest: +SKIP
    >>> float((data.y != data.y_true).mean().round(1))  # doctest: +SKIP
    0.4
    """
    if labels not in _KEYS:
        raise ValueError(f"labels={labels!r}; give one of {sorted(_KEYS)}.")
    file = _file(CIFAR10N, path, (_PT, f"cifar10n_{labels}.npy"))
    if file.suffix == ".npy":
        return CIFAR10N.read_labels(file, 10)
    return _of_archive(file, _KEYS[labels])


def load_cifar10h(path: str | PathLike) -> NDArray[np.float64]:
    """Load CIFAR-10H (Peterson et al., 2019): how about 50 people labelled each test image of CIFAR-10.

    Parameters
    ----------
    path : str or path
        The file ``cifar10h-probs.npy`` or ``cifar10h-counts.npy``, or the folder that has one of them. Other names of
        .npy files are taken, too.

    Returns
    -------
    ndarray of shape (n, 10), float64
        Share of the people that chose each class, in the order of the test images of torchvision's CIFAR-10.

    Raises
    ------
    FileNotFoundError
        If the file is missing.
    ValueError
        If the file is damaged.

    Examples
    --------
    >>> from noisytransition.datasets import load_cifar10h
    >>> load_cifar10h("data/cifar10h-probs.npy").shape  # doctest: +SKIP
    (10000, 10)
    """
    names = [f"cifar10h{mark}{kind}.npy" for kind in ("probs", "counts") for mark in "-_"]
    file = _file(CIFAR10H, path, names)
    array = CIFAR10H.open_array(file, (None, 10)).astype(np.float64)
    sums = array.sum(axis=1, keepdims=True)
    if not np.isfinite(array).all() or (array < 0).any() or not (sums > 0).all():
        raise CIFAR10H.damaged(file, "a row has no counts, or negative or missing ones")
    return array / sums


def _file(source: Source, path: str | PathLike, names: Any) -> Path:
    """Return `path`, or the first file of these names in this folder."""
    given = Path(path).expanduser()
    if given.is_file():
        return given
    if given.suffix and not given.is_dir():
        raise source.missing(source.folder(given.parent), given.name)
    folder = source.folder(given)
    there = [folder / name for name in names if (folder / name).exists()]
    if not there:
        raise source.missing(folder, names[0], f"{' or '.join(names[1:])} would do, too. ")
    return there[0]


def _of_archive(file: Path, key: str) -> NDArray[np.int64]:
    """One label set of CIFAR-10_human.pt."""
    try:
        with torch.serialization.safe_globals(_of_arrays()):
            content = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for files that are truncated or hold other than arrays
        raise CIFAR10N.damaged(file, "it does not hold arrays in torch's format") from error
    if not isinstance(content, Mapping) or key not in content:
        found = sorted(map(str, content)) if isinstance(content, Mapping) else type(content).__name__
        raise CIFAR10N.damaged(file, f"it has no {key}, but {found}")
    labels = np.asarray(content[key])
    if why := describe_labels(labels, 10, len(content.get("clean_label", labels))):
        raise CIFAR10N.damaged(file, why)
    return labels.astype(np.int64)


def _of_arrays() -> list[Any]:
    """What a pickle of arrays of numbers calls: no code of the file's own is among it.

    The function behind arrays has one name up to numpy 1 and another from numpy 2 on.
    """
    rebuild = np.empty(0).__reduce__()[0]
    places = ("numpy.core.multiarray", "numpy._core.multiarray")
    kinds = [type(np.dtype(code)) for code in "bBhHiIlLqQ"]
    return [(rebuild, f"{place}._reconstruct") for place in places] + [np.ndarray, np.dtype, *kinds]
