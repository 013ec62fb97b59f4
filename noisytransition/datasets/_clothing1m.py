"""Clothing1M: images of shops with labels from the text around them, and clean labels for some."""

import warnings
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..comparison import ComparisonData
from ..transition import RandomState, as_generator
from ._images import ImageFiles
from ._source import Source
from ._split import draw_rows, take
from ._vision import torchvision

CLOTHING1M = Source(
    "Clothing1M",
    "its authors, on request: https://github.com/Cysu/noisy_label (Xiao et al., Learning from Massive Noisy Labeled "
    "Data for Image Classification, CVPR 2015)",
)

_LISTS = {
    "train": "clean_train_key_list.txt",
    "validation": "clean_val_key_list.txt",
    "test": "clean_test_key_list.txt",
}
_N_CLASSES = 14

# images of each list whose files are looked for: a million looks take minutes on some disks. A choice, not measured
_LOOKED_FOR = 1000


class CleanPart(NamedTuple):
    """Images of Clothing1M with clean labels.

    Attributes
    ----------
    X : ImageFiles
        Images.
    y : ndarray of shape (n,)
        Clean labels.
    y_noisy : ndarray of shape (n,)
        Noisy labels; -1 where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from noisytransition.datasets import CleanPart
    >>> from noisytransition.transition import count_transition_matrix
    >>> part = CleanPart(X=np.zeros((5, 2)), y=np.array([0, 0, 0, 1, 1]), y_noisy=np.array([0, 0, 1, 1, -1]))
    >>> both = part.y_noisy >= 0  # rows with both labels
    >>> count_transition_matrix(part.y[both], part.y_noisy[both]).round(2)
    array([[0.67, 0.33],
           [0.  , 1.  ]])
    """

    X: Any
    y: NDArray[np.int64]
    y_noisy: NDArray[np.int64]


def load_clothing1m(
    root: str | PathLike,
    *,
    meta: Literal["train", "validation"] = "train",
    both_labels: bool = False,
    n_meta: int | None = None,
    n_noisy: int | None = None,
    balanced: bool = True,
    random_state: RandomState = None,
    transform: Callable[[Any], Any] | None = None,
) -> ComparisonData:
    """Load Clothing1M (Xiao et al., 2015): a million images of 14 kinds of clothes with noisy labels.

    Parameters
    ----------
    root : str or path
        The folder that has ``images`` and ``annotations``. The text files may also be in the folder itself.
    meta : {"train", "validation"}, default="train"
        The list that clean rows are from: ``clean_train_key_list.txt`` or ``clean_val_key_list.txt``.
    both_labels : bool, default=False
        Whether only images that have a noisy label, too, can be clean rows. ``y_meta_noisy`` is then known.
    n_meta : int, optional
        Number of clean rows; default: the whole list.
    n_noisy : int, optional
        Number of noisy rows, drawn at random; default: all.
    balanced : bool, default=True
        Whether `n_meta` clean rows are equally many of each class.
    random_state : int, RandomState, Generator or None
        Source of the draws.
    transform : callable, optional
        As in `ImageFiles`. Default: the short side resized to 256 pixels, and the central 224 x 224 pixels of it.

    Returns
    -------
    ComparisonData
        The test set is that of ``clean_test_key_list.txt``. ``rows`` and ``rows_meta`` count the lines of
        ``noisy_train_key_list.txt`` and of the list of clean rows. Images with a clean label are removed from the noisy
        rows. The true labels of noisy rows and T are not known; ``y_meta_noisy`` is None if it is not known for all
        clean rows. Images are read when they are used.

    Warns
    -----
    UserWarning
        If images have labels and are in no list: a list may be truncated.

    Raises
    ------
    FileNotFoundError
        If a file is missing. The files of 1000 images of each list are looked for.
    ValueError
        If a text file is damaged, an image is in two clean lists or twice in a list, or a parameter is not valid.

    Examples
    --------
    >>> from noisytransition.datasets import load_clothing1m, load_clothing1m_part
    >>> from noisytransition.transition import count_transition_matrix
    >>> data = load_clothing1m("data/clothing1M", n_meta=1400, random_state=0)  # doctest: +SKIP
    >>> both = load_clothing1m_part("data/clothing1M", "train", both_labels=True)  # doctest: +SKIP
    >>> T = count_transition_matrix(both.y, both.y_noisy, 14)  # doctest: +SKIP
    """
    if meta not in ("train", "validation"):
        raise ValueError(f"meta={meta!r}; give 'train' or 'validation'.")
    rng, files = as_generator(random_state), _Files(root, transform)
    clean, in_list = files.part(meta, both_labels)
    test, _ = files.part("test")
    if n_meta is not None:
        few = draw_rows(clean.y, n_meta, _N_CLASSES, balanced, rng)
        clean, in_list = CleanPart(take(clean.X, few), clean.y[few], clean.y_noisy[few]), in_list[few]
    keys = files.keys("noisy_train_key_list.txt")
    y = files.labels_of(keys, "noisy_label_kv.txt", "noisy_train_key_list.txt")
    if text := files.in_no_list(set(keys)):
        warnings.warn(text, UserWarning, stacklevel=2)
    noisy = np.flatnonzero([key not in files.clean for key in keys])
    drawn = noisy if n_noisy is None else draw_rows(y, n_noisy, _N_CLASSES, False, rng, among=noisy)
    return ComparisonData(
        files.images([keys[row] for row in drawn]),
        y[drawn],
        clean.X,
        clean.y,
        test.X,
        test.y,
        y_meta_noisy=clean.y_noisy if (clean.y_noisy >= 0).all() else None,
        classes=files.classes,
        rows=drawn,
        rows_meta=in_list,
    )


def load_clothing1m_part(
    root: str | PathLike,
    part: Literal["train", "validation", "test"],
    *,
    both_labels: bool = False,
    transform: Callable[[Any], Any] | None = None,
) -> CleanPart:
    """Load the images of Clothing1M with clean labels.

    Parameters
    ----------
    root : str or path
        As in `load_clothing1m`.
    part : {"train", "validation", "test"}
        The list.
    both_labels : bool, default=False
        Whether to take only images that have a noisy label, too: the two labels give T.
    transform : callable, optional
        As in `load_clothing1m`.

    Returns
    -------
    CleanPart
        Images, clean labels and noisy labels (-1 where there is none).

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a text file is damaged, an image is twice in the list, or a parameter is not valid.

    Examples
    --------
    >>> from noisytransition.datasets import load_clothing1m_part
    >>> load_clothing1m_part("data/clothing1M", "validation").y.shape  # doctest: +SKIP
    (14313,)
    """
    if part not in _LISTS:
        raise ValueError(f"part={part!r}; give one of {sorted(_LISTS)}.")
    return _Files(root, transform).part(part, both_labels)[0]


class _Files:
    """The text files and images below a folder; a text file is read once."""

    def __init__(self, root: str | PathLike, transform: Callable[[Any], Any] | None) -> None:
        self.root = CLOTHING1M.folder(root)
        self.transform = _resized() if transform is None else transform
        self._keys: dict[str, list[str]] = {}
        self._labels: dict[str, dict[str, int]] = {}

    @cached_property
    def classes(self) -> tuple[str, ...]:
        path = self._text("category_names_eng.txt")
        names = tuple(line.strip() for line in _lines(path) if line.strip())
        if len(names) != _N_CLASSES:
            raise CLOTHING1M.damaged(path, f"it has {len(names)} names of classes, not {_N_CLASSES}")
        return names

    @cached_property
    def clean(self) -> set[str]:
        """Images of the three clean lists, none of which is in two of them."""
        of: dict[str, str] = {}
        for name in _LISTS.values():
            if shared := [key for key in self.keys(name) if key in of]:
                first = f"{len(shared):,} of its images, such as {shared[0]}, are in {of[shared[0]]}, too"
                raise CLOTHING1M.damaged(self._text(name), f"{first}; an image is in one clean list at most")
            of |= dict.fromkeys(self.keys(name), name)
        return set(of)

    def in_no_list(self, noisy: set[str]) -> str:
        """Say which lists may be truncated, by images that have a label and are in none; empty if there are none."""
        of_clean, of_noisy = (self.labels(name).keys() for name in ("clean_label_kv.txt", "noisy_label_kv.txt"))
        parts = [
            (of_clean - self.clean, "clean_label_kv.txt", "no clean list", tuple(_LISTS.values())),
            # an image with both labels is missing from a clean list
            (of_noisy - of_clean - self.clean - noisy, "noisy_label_kv.txt", "no list", ("noisy_train_key_list.txt",)),
        ]
        return " ".join(
            f"{len(lost):,} images of {labels}, such as {min(lost)}, are in {where}: "
            + " or ".join(f"{name}, of {len(self.keys(name)):,} images," for name in lists)
            + " may be truncated."
            for lost, labels, where, lists in parts
            if lost
        )

    def part(self, part: str, both_labels: bool = False) -> tuple[CleanPart, NDArray]:
        """Images of a clean list, and their places in it."""
        name = _LISTS[part]
        keys = self.keys(name)
        y = self.labels_of(keys, "clean_label_kv.txt", name)
        noisy = self.labels("noisy_label_kv.txt")
        y_noisy = np.array([noisy.get(key, -1) for key in keys], dtype=np.int64)
        rows = np.flatnonzero(y_noisy >= 0) if both_labels else np.arange(len(keys))
        if not len(rows):
            raise CLOTHING1M.damaged(self._text(name), "none of its images has a noisy label")
        return CleanPart(self.images([keys[row] for row in rows]), y[rows], y_noisy[rows]), rows

    def images(self, keys: list[str]) -> ImageFiles:
        """Images of some keys; of a sample the files are looked for."""
        for i in np.unique(np.linspace(0, len(keys) - 1, min(len(keys), _LOOKED_FOR), dtype=int)):
            if not (self.root / keys[i]).exists():
                raise CLOTHING1M.missing(self.root, keys[i])
        return ImageFiles([f"{self.root}/{key}" for key in keys], self.transform)

    def keys(self, name: str) -> list[str]:
        """Images of a list, each of which is there once."""
        if name not in self._keys:
            path = self._text(name)
            keys = [line.strip() for line in _lines(path) if line.strip()]
            if not keys:
                raise CLOTHING1M.damaged(path, "it has no lines")
            if len(set(keys)) < len(keys):
                ((key, n),) = Counter(keys).most_common(1)
                raise CLOTHING1M.damaged(path, f"it has {key} {n} times; each image is in a list once")
            self._keys[name] = keys
        return self._keys[name]

    def labels_of(self, keys: list[str], name: str, listed: str) -> NDArray[np.int64]:
        """Labels of all images of a list."""
        labels = self.labels(name)
        if unknown := [key for key in keys if key not in labels]:
            raise CLOTHING1M.damaged(
                self._text(name), f"it has no label for {len(unknown)} images of {listed}, such as {unknown[0]}"
            )
        return np.array([labels[key] for key in keys], dtype=np.int64)

    def labels(self, name: str) -> dict[str, int]:
        """Labels of a file of lines "image label"."""
        if name not in self._labels:
            path = self._text(name)
            lines = enumerate(_lines(path), start=1)
            self._labels[name] = dict(_parse(path, number, line) for number, line in lines if line.strip())
        return self._labels[name]

    def _text(self, name: str) -> Path:
        for path in (self.root / "annotations" / name, self.root / name):
            if path.exists():
                return path
        raise CLOTHING1M.missing(self.root, f"annotations/{name}")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise CLOTHING1M.damaged(path, "it is not a text file in UTF-8") from error


def _parse(path: Path, number: int, line: str) -> tuple[str, int]:
    key, _, label = line.strip().rpartition(" ")
    if not key or not label.isdecimal() or int(label) >= _N_CLASSES:
        raise CLOTHING1M.damaged(path, f"line {number} is {line!r}, not an image, a space and a label 0..13")
    return key, int(label)


def _resized() -> Callable[[Any], Any]:
    tools = torchvision("transforms")
    return tools.Compose([tools.Resize(256), tools.CenterCrop(224)])
