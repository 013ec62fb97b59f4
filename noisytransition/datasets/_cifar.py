"""CIFAR-10 and CIFAR-100, and people's labels for CIFAR-10."""

from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ..transition._checks import check_label_indices
from ._split import ComparisonData, make_noisy_data

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

# superclasses and classes are numbered alphabetically
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
_SUPERCLASS_OF = {name: i for i, names in enumerate(_TREE.values()) for name in names.split()}
_CIFAR100_CLASSES = tuple(sorted(_SUPERCLASS_OF))
# number of the superclass of each class
CIFAR100_SUPERCLASSES = np.array([_SUPERCLASS_OF[name] for name in _CIFAR100_CLASSES])
CIFAR100_SUPERCLASSES.flags.writeable = False

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
        The folder that has ``cifar-10-batches-py``.
    download : bool, default=False
        Whether torchvision may download the set to `root`.
    **params
        `noise`, `n_meta`, `n_noisy`, `balanced` and `random_state` of `make_noisy_data`. The noise of the literature is
        `symmetric_noise` or `cifar10_noise`; people's labels are those of `load_cifar10n`.

    Returns
    -------
    ComparisonData
        Images are uint8 of shape (n, 32, 32, 3), in the original order.

    Examples
    --------
    >>> from noisytransition.datasets import load_cifar10, load_cifar10n
    >>> from noisytransition.transition import cifar10_noise
    >>> data = load_cifar10("data", noise=cifar10_noise(0.4), random_state=0)  # doctest: +SKIP
    >>> data.X.shape, data.X_meta.shape, data.X_test.shape  # doctest: +SKIP
    ((49000, 32, 32, 3), (1000, 32, 32, 3), (10000, 32, 32, 3))
    >>> people = load_cifar10("data", noise=load_cifar10n("data", "worse"), random_state=0)  # doctest: +SKIP
    """
    return make_noisy_data(*_read("CIFAR10", root, download), classes=CIFAR10_CLASSES, **params)


def load_cifar100(
    root: str | PathLike, *, labels: Literal["fine", "coarse"] = "fine", download: bool = False, **params: Any
) -> ComparisonData:
    """Load CIFAR-100 (Krizhevsky, 2009): 50,000 training and 10,000 test images of 100 classes in 20 superclasses.

    Parameters
    ----------
    root : str or path
        The folder that has ``cifar-100-python``.
    labels : {"fine", "coarse"}, default="fine"
        The 100 classes, or the 20 superclasses.
    download : bool, default=False
        Whether torchvision may download the set to `root`.
    **params
        As in `load_cifar10`. The noise of the literature is `symmetric_noise` or
        ``superclass_noise(CIFAR100_SUPERCLASSES, rate)``.

    Returns
    -------
    ComparisonData
        Images are uint8 of shape (n, 32, 32, 3), in the original order.

    Examples
    --------
    >>> from noisytransition.datasets import CIFAR100_SUPERCLASSES, load_cifar100
    >>> from noisytransition.transition import superclass_noise
    >>> T = superclass_noise(CIFAR100_SUPERCLASSES, 0.4)
    >>> data = load_cifar100("data", noise=T, random_state=0)  # doctest: +SKIP
    """
    if labels not in ("fine", "coarse"):
        raise ValueError(f"labels={labels!r}; give 'fine' or 'coarse'.")
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
        raise ImportError("CIFAR needs torchvision: pip install noisytransition[vision]") from error
    folder = Path(root).expanduser()
    train, test = (getattr(datasets, name)(folder, train=part, download=download) for part in (True, False))
    return train.data, np.array(train.targets), test.data, np.array(test.targets)


def load_cifar10n(
    path: str | PathLike, labels: Literal["clean", "aggre", "worse", "random1", "random2", "random3"] = "worse"
) -> NDArray[np.int64]:
    """Load CIFAR-10N (Wei et al., 2022): labels that three people each gave to the training images of CIFAR-10.

    Parameters
    ----------
    path : str or path
        The file ``CIFAR-10_human.pt`` of http://www.noisylabels.com, or its folder. Arrays alone are read: code that
        a file of this format may hold is refused.
    labels : {"clean", "aggre", "worse", "random1", "random2", "random3"}, default="worse"
        "aggre" is the majority of the three, "worse" a wrong one of them where there is one; "clean" are the labels of
        CIFAR-10.

    Returns
    -------
    ndarray of shape (n,), int64
        Labels in the order of the training images of torchvision's CIFAR-10, for ``load_cifar10(noise=)``.

    Examples
    --------
    >>> from noisytransition.datasets import load_cifar10, load_cifar10n
    >>> data = load_cifar10("data", noise=load_cifar10n("data", "worse"), random_state=0)  # doctest: +SKIP
    >>> float((data.y != data.y_true).mean().round(1))  # doctest: +SKIP
    0.4
    """
    if labels not in _KEYS:
        raise ValueError(f"labels={labels!r}; give one of {sorted(_KEYS)}.")
    file = _file(path, "CIFAR-10_human.pt")
    try:
        with torch.serialization.safe_globals(_of_arrays()):
            content = torch.load(file, map_location="cpu", weights_only=True)[_KEYS[labels]]
    except Exception as error:  # torch raises many kinds for files that are cut off or hold other things
        raise ValueError(f"{file} does not hold the labels of CIFAR-10N; get it from www.noisylabels.com.") from error
    return check_label_indices(np.asarray(content), 10, name=f"{labels} of {file}").astype(np.int64)


def _of_arrays() -> list[Any]:
    """What a pickle of arrays of numbers calls: no code of the file's own is among it.

    The function behind arrays has one name up to numpy 1 and another from numpy 2 on.
    """
    rebuild = np.empty(0).__reduce__()[0]
    places = ("numpy.core.multiarray", "numpy._core.multiarray")
    kinds = [type(np.dtype(code)) for code in "bBhHiIlLqQ"]
    return [(rebuild, f"{place}._reconstruct") for place in places] + [np.ndarray, np.dtype, *kinds]


def load_cifar10h(path: str | PathLike) -> NDArray[np.float64]:
    """Load CIFAR-10H (Peterson et al., 2019): how about 50 people labelled each test image of CIFAR-10.

    Parameters
    ----------
    path : str or path
        The file ``cifar10h-probs.npy`` or ``cifar10h-counts.npy`` of https://github.com/jcpeterson/cifar-10h, or the
        folder that has the first.

    Returns
    -------
    ndarray of shape (n, 10), float64
        Share of the people that chose each class, in the order of the test images of torchvision's CIFAR-10.

    Examples
    --------
    >>> from noisytransition.datasets import load_cifar10h
    >>> load_cifar10h("data/cifar10h-probs.npy").shape  # doctest: +SKIP
    (10000, 10)
    """
    file = _file(path, "cifar10h-probs.npy")
    counts = np.load(file, allow_pickle=False)
    if counts.ndim != 2 or counts.shape[1] != 10 or not (counts >= 0).all() or not counts.sum(axis=1).all():
        raise ValueError(f"{file} has shape {counts.shape}; give shares or counts of 10 classes for each image.")
    return counts / counts.sum(axis=1, keepdims=True)


def _file(path: str | PathLike, name: str) -> Path:
    """Return `path`, or the file of this name in that folder."""
    given = Path(path).expanduser()
    file = given / name if given.is_dir() else given
    if not file.is_file():
        raise FileNotFoundError(f"{file} is missing; give the file {name}, or its folder.")
    return file
