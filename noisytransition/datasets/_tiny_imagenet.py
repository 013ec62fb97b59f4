"""Tiny-ImageNet."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from ..comparison import ComparisonData
from ._images import ImageFiles, class_folders
from ._source import Source
from ._split import Draws, make_noisy_data

TINY_IMAGENET = Source("Tiny-ImageNet", "http://cs231n.stanford.edu/tiny-imagenet-200.zip (Stanford, course CS231n)")

# copies with two more classes, at the end of wnids.txt, are in circulation
_N_CLASSES = 200


def load_tiny_imagenet(
    root: str | PathLike, *, transform: Callable[[Any], Any] | None = None, **params: Unpack[Draws]
) -> ComparisonData:
    """Load Tiny-ImageNet: 100,000 training images of 200 classes; the 10,000 validation images are the test set.

    The labels of the official test images are not public. Classes are numbered by their line in ``wnids.txt``.

    Parameters
    ----------
    root : str or path
        The folder ``tiny-imagenet-200``, or the one that has it. ``wnids.txt``, ``train`` and ``val`` are read, and
        ``words.txt`` for the names of the classes, if it is there.
    transform : callable, optional
        As in `ImageFiles`.
    **params
        `noise`, `n_meta`, `n_noisy`, `balanced` and `random_state` of `make_noisy_data`. The noise of the literature:
        `symmetric_noise` and `pair_noise`, with 200 classes.

    Returns
    -------
    ComparisonData
        Images are read when they are used; see `ImageFiles` and `make_noisy_data`.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a file or folder is incomplete, or a parameter is not valid.

    Examples
    --------
    >>> from noisytransition.datasets import load_tiny_imagenet
    >>> from noisytransition.transition import pair_noise
    >>> data = load_tiny_imagenet("data", noise=pair_noise(200, 0.45), random_state=0)  # doctest: +SKIP
    >>> data.X[0].shape  # doctest: +SKIP
    (64, 64, 3)
    """
    inner = Path(root).expanduser() / "tiny-imagenet-200"
    folder = inner if inner.is_dir() else TINY_IMAGENET.folder(root)
    wnids, train, annotations, images = TINY_IMAGENET.find(
        folder, "wnids.txt", "train", "val/val_annotations.txt", "val/images"
    )
    synsets = wnids.read_text().split()
    if lost := sorted(entry.name for entry in train.iterdir() if entry.is_dir() and entry.name not in synsets):
        raise TINY_IMAGENET.damaged(wnids, f"it has no line for {len(lost)} folders of {train}, such as {lost[0]}")
    classes = synsets[:_N_CLASSES]
    paths, y = class_folders(TINY_IMAGENET, train, classes)
    test_paths, y_test = _validation(annotations, images, synsets)
    X, X_test = (ImageFiles(files, transform) for files in (paths, test_paths))
    return make_noisy_data(X, y, X_test, y_test, classes=_names(folder / "words.txt", classes), **params)


def _validation(annotations: Path, images: Path, synsets: list[str]) -> tuple[list[Path], NDArray[np.int64]]:
    """Validation images and their labels; each image needs its line, and each line its image."""
    codes = {synset: code for code, synset in enumerate(synsets)}
    label_of = {}
    for number, line in enumerate(annotations.read_text().splitlines(), start=1):
        fields = line.split("\t")
        if len(fields) < 2 or fields[1] not in codes:
            raise TINY_IMAGENET.damaged(
                annotations, f"line {number} is {line!r}, not a file, tab and a line of wnids.txt"
            )
        label_of[fields[0]] = codes[fields[1]]
    there = {path.name for path in images.iterdir() if not path.name.startswith(".")}
    if lost := sorted(label_of.keys() - there):
        raise TINY_IMAGENET.missing(images, lost[0])
    if unlabelled := sorted(there - label_of.keys()):
        raise TINY_IMAGENET.damaged(
            annotations, f"it has no line for {len(unlabelled)} images, such as {unlabelled[0]}"
        )
    kept = {name: code for name, code in label_of.items() if code < _N_CLASSES}
    return [images / name for name in kept], np.array(list(kept.values()), dtype=np.int64)


def _names(words: Path, synsets: list[str]) -> list[str]:
    """First English word of each class, made unique by its synset; the synset where words are not known."""
    if not words.exists():
        return synsets
    lines = (line.partition("\t") for line in words.read_text().splitlines())
    known = {synset: text.partition(",")[0] for synset, _, text in lines}
    names = [known.get(synset) or synset for synset in synsets]
    return [f"{n} ({s})" if names.count(n) > 1 and n != s else n for n, s in zip(names, synsets, strict=True)]
