"""Images in files, read one by one."""

from collections import Counter
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Dataset

from ._source import Source
from ._vision import torchvision


class ImageFiles(Dataset):
    """Images in files, which are read when they are asked for; a torch Dataset.

    Parameters
    ----------
    paths : sequence of str or path
        The files.
    transform : callable, optional
        Takes an RGB image of PIL and returns what a sample is, for example a torchvision transform. Images of PIL that
        come out of it become arrays.

    Examples
    --------
    >>> from noisytransition.datasets import ImageFiles
    >>> images = ImageFiles(["a.png", "b.png"])
    >>> len(images)
    2
    >>> images[0].shape  # doctest: +SKIP
    (64, 64, 3)
    """

    def __init__(self, paths: Sequence[str | PathLike], transform: Callable[[Any], Any] | None = None) -> None:
        self.paths = [str(path) for path in paths]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        """One image: what `transform` makes of it, or a uint8 array of shape (height, width, 3)."""
        try:
            image = torchvision("datasets.folder").default_loader(self.paths[index])
        except FileNotFoundError:
            raise
        except OSError as error:  # PIL's errors for files that are no image, or end too early
            raise ValueError(f"{self.paths[index]} is not a whole image file ({error}); get it anew.") from error
        image = image if self.transform is None else self.transform(image)
        return np.asarray(image) if hasattr(image, "getbands") else image


def class_folders(source: Source, folder: Path, classes: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Image files in one folder per class, and their labels; all classes must have equally many.

    For sets whose classes are of one size: a class with fewer files is incomplete.
    """
    tools = torchvision("datasets.folder")
    for name in classes:
        source.find(folder, name)
    codes = {name: code for code, name in enumerate(classes)}
    samples = tools.make_dataset(folder, codes, is_valid_file=_is_image, allow_empty=True)
    counts = Counter(label for _, label in samples)
    sizes = {name: counts[code] for name, code in codes.items()}
    least, most = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    if not sizes[most]:
        raise source.damaged(folder, "the folders of its classes have no images")
    if sizes[least] < sizes[most]:
        raise source.damaged(
            folder / least, f"it has {sizes[least]} images, but {most} has {sizes[most]}, and classes are of one size"
        )
    return [path for path, _ in samples], np.array([label for _, label in samples], dtype=np.int64)


def _is_image(path: str) -> bool:
    """Whether a file is one by its name; files that systems hide are none."""
    tools = torchvision("datasets.folder")
    return not Path(path).name.startswith(".") and tools.has_file_allowed_extension(path, tools.IMG_EXTENSIONS)
