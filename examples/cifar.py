"""Load CIFAR-10, CIFAR-100, and human labels of CIFAR-10. Copy this file beside your program.

torchvision reads the images: ``pip install "noisytransition[vision]"``.
"""

from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from noisytransition.datasets import ComparisonData, make_noisy_data
from noisytransition.labels._arrays import check_label_indices

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

# superclass -> classes; both are numbered alphabetically
_TREE = {
    "aquatic_mammals": "beaver dolphin otter seal whale",
    "fish": "aquarium_fish flatfish ray shark trout",
    "flowers": "orchid poppy rose sunflower tulip",
    "food_containers": "bottle bowl can cup plate",
    "fruit_and_vegetables": "apple mushroom orange pear sweet_pepper",
    "household_electrical_devices": "clock keyboard lamp telephone television",
    "household_furniture": "bed chair couch table wardrobe",
    "insects": "bee beetle butterfly caterpillar cockroach",
    "large_carnivores": "bear leopard lion tiger wolf",
    "large_man-made_outdoor_things": "bridge castle house road skyscraper",
    "large_natural_outdoor_scenes": "cloud forest mountain plain sea",
    "large_omnivores_and_herbivores": "camel cattle chimpanzee elephant kangaroo",
    "medium_mammals": "fox porcupine possum raccoon skunk",
    "non-insect_invertebrates": "crab lobster snail spider worm",
    "people": "baby boy girl man woman",
    "reptiles": "crocodile dinosaur lizard snake turtle",
    "small_mammals": "hamster mouse rabbit shrew squirrel",
    "trees": "maple_tree oak_tree palm_tree pine_tree willow_tree",
    "vehicles_1": "bicycle bus motorcycle pickup_truck train",
    "vehicles_2": "lawn_mower rocket streetcar tank tractor",
}
_CIFAR100_CLASSES = tuple(sorted(" ".join(_TREE.values()).split()))
#: superclass index of each class
CIFAR100_SUPERCLASSES = np.array(
    [[name in of.split() for of in _TREE.values()].index(True) for name in _CIFAR100_CLASSES]
)

# label set of CIFAR-10N -> its key in CIFAR-10_human.pt
_KEYS = {
    "clean": "clean_label",
    "aggre": "aggre_label",
    "worse": "worse_label",
    "random1": "random_label1",
    "random2": "random_label2",
    "random3": "random_label3",
}


def load_cifar10(root: str | PathLike, *, download: bool = False, **params: Any) -> ComparisonData:
    """Load CIFAR-10 (Krizhevsky, 2009): 50,000 training and 10,000 test images of 10 classes.

    Parameters
    ----------
    root : str or path
        Folder that contains ``cifar-10-batches-py``.
    download : bool, default=False
        Whether torchvision may download the data to `root`.
    **params
        `noise`, `n_clean`, `n_noisy`, `balanced` and `random_state` of `make_noisy_data`. The literature uses
        `symmetric_noise` and `cifar10_noise`; `load_cifar10n` loads human labels.

    Returns
    -------
    ComparisonData
        Images are uint8 arrays of shape (n, 32, 32, 3), in the original order.

    Examples
    --------
    >>> from cifar import load_cifar10
    >>> from noisytransition.transition import cifar10_noise
    >>> data = load_cifar10("data", noise=cifar10_noise(0.4), random_state=0)  # doctest: +SKIP
    >>> data.X.shape, data.X_clean.shape, data.X_test.shape  # doctest: +SKIP
    ((49000, 32, 32, 3), (1000, 32, 32, 3), (10000, 32, 32, 3))
    """
    return make_noisy_data(*_read("CIFAR10", root, download), classes=CIFAR10_CLASSES, **params)


def load_cifar100(
    root: str | PathLike, *, labels: Literal["fine", "coarse"] = "fine", download: bool = False, **params: Any
) -> ComparisonData:
    """Load CIFAR-100 (Krizhevsky, 2009): 50,000 training and 10,000 test images of 100 classes in 20 superclasses.

    Parameters
    ----------
    root : str or path
        Folder that contains ``cifar-100-python``.
    labels : {"fine", "coarse"}, default="fine"
        The 100 classes, or the 20 superclasses.
    download, **params
        As in `load_cifar10`. The literature uses `symmetric_noise` and
        ``superclass_noise(CIFAR100_SUPERCLASSES, rate)``.

    Returns
    -------
    ComparisonData
        As in `load_cifar10`.

    Examples
    --------
    >>> from cifar import CIFAR100_SUPERCLASSES, load_cifar100
    >>> from noisytransition.transition import superclass_noise
    >>> T = superclass_noise(CIFAR100_SUPERCLASSES, 0.4)
    >>> data = load_cifar100("data", noise=T, random_state=0)  # doctest: +SKIP
    """
    if labels not in ("fine", "coarse"):
        raise ValueError(f"labels={labels!r}; pass 'fine' or 'coarse'.")
    X, y, X_test, y_test = _read("CIFAR100", root, download)
    if labels == "fine":
        return make_noisy_data(X, y, X_test, y_test, classes=_CIFAR100_CLASSES, **params)
    y, y_test = CIFAR100_SUPERCLASSES[y], CIFAR100_SUPERCLASSES[y_test]
    return make_noisy_data(X, y, X_test, y_test, classes=tuple(_TREE), **params)


def _read(name: str, root: str | PathLike, download: bool) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Training images and labels, test images and labels."""
    try:
        from torchvision import datasets
    except ImportError as error:
        raise ImportError("CIFAR requires torchvision: pip install noisytransition[vision]") from error
    folder = Path(root).expanduser()
    train, test = (getattr(datasets, name)(folder, train=part, download=download) for part in (True, False))
    return train.data, np.array(train.targets), test.data, np.array(test.targets)


def load_cifar10n(
    path: str | PathLike, labels: Literal["clean", "aggre", "worse", "random1", "random2", "random3"] = "worse"
) -> NDArray[np.int64]:
    """Load CIFAR-10N (Wei et al., 2022): the labels of three annotators for each training image of CIFAR-10.

    Parameters
    ----------
    path : str or path
        File ``CIFAR-10_human.pt`` from http://www.noisylabels.com, or its folder. Only arrays are loaded; a file that
        contains code raises an error.
    labels : {"clean", "aggre", "worse", "random1", "random2", "random3"}, default="worse"
        "aggre" is the majority vote, "worse" a wrong label if any of the three is wrong, and "clean" the label of
        CIFAR-10.

    Returns
    -------
    ndarray of shape (n,), int64
        Labels in the order of torchvision's training images, for ``load_cifar10(noise=)``.

    Examples
    --------
    >>> from cifar import load_cifar10, load_cifar10n
    >>> data = load_cifar10("data", noise=load_cifar10n("data", "worse"), random_state=0)  # doctest: +SKIP
    >>> float((data.y != data.y_true).mean().round(1))  # doctest: +SKIP
    0.4
    """
    if labels not in _KEYS:
        raise ValueError(f"labels={labels!r}; pass one of {sorted(_KEYS)}.")
    file = _file(path, "CIFAR-10_human.pt")
    try:
        with torch.serialization.safe_globals(_of_arrays()):
            content = torch.load(file, map_location="cpu", weights_only=True)[_KEYS[labels]]
    except Exception as error:  # torch raises many types of errors for damaged files
        raise ValueError(f"{file} does not hold labels of CIFAR-10N. Download it from www.noisylabels.com.") from error
    return check_label_indices(np.asarray(content), 10, name=f"{labels} of {file}").astype(np.int64)


def _of_arrays() -> list[Any]:
    """Functions and types in a pickle of numeric arrays; numpy 1 and 2 name the function differently."""
    rebuild = np.empty(0).__reduce__()[0]
    places = ("numpy.core.multiarray", "numpy._core.multiarray")
    kinds = [type(np.dtype(code)) for code in "bBhHiIlLqQ"]
    return [(rebuild, f"{place}._reconstruct") for place in places] + [np.ndarray, np.dtype, *kinds]


def load_cifar10h(path: str | PathLike) -> NDArray[np.float64]:
    """Load CIFAR-10H (Peterson et al., 2019): the labels of about 50 annotators for each test image of CIFAR-10.

    Parameters
    ----------
    path : str or path
        File ``cifar10h-probs.npy`` or ``cifar10h-counts.npy`` from https://github.com/jcpeterson/cifar-10h, or the
        folder of the former.

    Returns
    -------
    ndarray of shape (n, 10), float64
        Share of annotators that chose each class, in the order of torchvision's test images.

    Examples
    --------
    >>> from cifar import load_cifar10h
    >>> load_cifar10h("data/cifar10h-probs.npy").shape  # doctest: +SKIP
    (10000, 10)
    """
    file = _file(path, "cifar10h-probs.npy")
    counts = np.load(file, allow_pickle=False)
    if counts.ndim != 2 or counts.shape[1] != 10 or not (counts >= 0).all() or not counts.sum(axis=1).all():
        raise ValueError(f"{file} has shape {counts.shape}. Pass shares or counts of 10 classes for each image.")
    return counts / counts.sum(axis=1, keepdims=True)


def _file(path: str | PathLike, name: str) -> Path:
    """Return `path`, or the file with this name if `path` is a folder."""
    given = Path(path).expanduser()
    file = given / name if given.is_dir() else given
    if not file.is_file():
        raise FileNotFoundError(f"{file} is missing. Pass the path of {name} or of its folder.")
    return file
