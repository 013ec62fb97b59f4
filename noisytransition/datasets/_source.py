"""Where a data set is from, its files, and the errors for those that are missing or damaged."""

from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

# entries of a folder that an error names; subfolders that are searched for a misplaced file. Choices, not measured
_NAMED = 8
_SEARCHED = 100


class Source(NamedTuple):
    """A data set, and where to get it.

    Parameters
    ----------
    name : str
    address : str
        Web address of the official page, or of the paper.
    """

    name: str
    address: str

    def folder(self, root: str | PathLike) -> Path:
        """Return `root` as a path; raise unless it is a folder."""
        folder = Path(root).expanduser()
        if folder.is_dir():
            return folder
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise FileNotFoundError(f"{self.name}: {folder} {what}. {self._advice()}")

    def find(self, root: str | PathLike, *names: str) -> list[Path]:
        """Paths of files or folders below `root`, all of which must be there."""
        folder = self.folder(root)
        for name in names:
            if not (folder / name).exists():
                raise self.missing(folder, name)
        return [folder / name for name in names]

    def missing(self, folder: Path, name: str, also: str = "") -> FileNotFoundError:
        """Error for a file that should be ``folder / name``; it names a place nearby that has it."""
        entries = sorted(entry.name for entry in folder.iterdir())
        found = ", ".join(entries[:_NAMED]) + (f" and {len(entries) - _NAMED} more" if len(entries) > _NAMED else "")
        return FileNotFoundError(
            f"{self.name}: {folder / name} is missing. {folder} has {found or 'no files'}.{_nearby(folder, name)} "
            f"{also}{self._advice()}"
        )

    def damaged(self, path: Path, why: str) -> ValueError:
        """Error for a file that is truncated, or not what it should be."""
        size = f" ({path.stat().st_size:,} bytes)" if path.is_file() else ""
        return ValueError(
            f"{self.name}: {path}{size}: {why}. The file may be truncated or another one. {self._advice()}"
        )

    def _advice(self) -> str:
        return f"Get {self.name} from {self.address}."

    def open_array(
        self, path: Path, shape: tuple[int | None, ...] | None = None, dtype: DTypeLike | None = None
    ) -> NDArray:
        """Open a .npy file without reading its values; None in `shape` is any length, as `dtype` any type.

        A file that is shorter than its header says is refused here.
        """
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise self.damaged(path, "it is not a whole .npy file of numbers") from error
        if not isinstance(array, np.ndarray):
            raise self.damaged(path, "it is a .npz archive; give a .npy file of one array")
        fits = shape is None or (
            array.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
        )
        if not fits:
            expected = ", ".join("n" if n is None else str(n) for n in shape or ())
            raise self.damaged(path, f"it has shape {array.shape}, not ({expected})")
        if dtype is not None and array.dtype != dtype:
            raise self.damaged(path, f"its numbers are of type {array.dtype}, not {np.dtype(dtype)}")
        return array

    def read_labels(self, path: Path, n_classes: int | None = None, n_rows: int | None = None) -> NDArray[np.int64]:
        """Class indices of a .npy file; `n_rows` is the number of rows they belong to."""
        labels = self.open_array(path, (None,))
        why = describe_labels(labels, n_classes, n_rows)
        if why:
            raise self.damaged(path, why)
        return labels.astype(np.int64)


def describe_labels(labels: NDArray, n_classes: int | None, n_rows: int | None) -> str:
    """Say what is wrong with class indices; empty if nothing is."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        return f"labels have shape {labels.shape} and dtype {labels.dtype}, not (n,) and an integer type"
    if n_rows is not None and len(labels) != n_rows:
        return f"it has {len(labels)} labels for {n_rows} rows"
    if len(labels) and (labels.min() < 0 or (n_classes is not None and labels.max() >= n_classes)):
        last = "" if n_classes is None else n_classes - 1
        return f"it has the labels {labels.min()}..{labels.max()}, not 0..{last}"
    return ""


def _nearby(folder: Path, name: str) -> str:
    """Say where a misplaced file is: in the folder above, in a subfolder, or without its own subfolder."""
    above = folder.resolve().parent
    below = [entry for entry in sorted(folder.iterdir()) if entry.is_dir()][:_SEARCHED]
    for place in (above, *below):
        if (place / name).exists():
            return f" It is in {place}: pass this folder."
    base = Path(name).name
    for place in (folder, *below):
        if (place / base).exists():
            return f" There is {place / base}: move it to {folder / name}."
    return ""
