"""Names and samples of a report as JSON values: numbers, short text, images."""

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# longest name of a class or sample, and longest text of a sample, in characters
LONGEST_NAME, LONGEST_TEXT = 80, 300
# number of displayed values of a table row, and characters of each
_MOST_VALUES, _LONGEST_VALUE = 8, 60
_SIDE = 64  # longest side of an image in pixels
_CHANNELS = (1, 3, 4)  # grey, RGB, RGBA


def short(text: object, most: int) -> str:
    """Shorten text to one line of at most `most` characters, without its middle and unprintable characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in str(text)).split())
    if len(line) <= most:
        return line
    end = (most - 1) // 3
    return f"{line[: most - 1 - end]}…{line[len(line) - end :]}"


def plain(value: Any, most: int = LONGEST_NAME) -> Any:
    """Convert to a JSON value: a finite number, a bool, None or short text."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and np.isfinite(value)):
        return value
    return short(value, most)


def sample_facts(source: Any, positions: Sequence[int], columns: Sequence | None = None) -> list[dict[str, str]]:
    """Samples at these positions as JSON values: ``{"image": PNG as a data URI}`` or ``{"text": ...}``.

    `columns` has column names of a table without names.
    """
    source = source.tocsr() if hasattr(source, "tocsr") else source
    return [_sample(_at(source, i), columns) for i in positions]


def _at(source: Any, i: int) -> Any:
    """Sample i, without its label if the source is a Dataset of pairs."""
    if hasattr(source, "iloc"):
        row = source.iloc[i]
        return row.to_dict() if hasattr(row, "to_dict") else row
    if hasattr(source, "tocsr"):
        row = source[[i]].tocoo()
        return dict(zip(row.col.tolist(), row.data.tolist(), strict=True))
    sample = source[i]
    with_label = isinstance(sample, tuple | list) and not isinstance(source, tuple | list)
    return sample[0] if with_label else sample


def _sample(value: Any, columns: Sequence | None) -> dict[str, str]:
    if isinstance(value, str):
        return {"text": short(value, LONGEST_TEXT)}
    if isinstance(value, Mapping):
        return {"text": _row(value, columns)}
    array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    if (pixels := _pixels(array)) is not None:
        return {"image": _png(pixels)}
    if array.ndim == 1:
        return {"text": _row(dict(enumerate(array)), columns)}
    return {"text": short(array.tolist() if array.size < LONGEST_TEXT else f"array {array.shape}", LONGEST_TEXT)}


def _row(values: Mapping, columns: Sequence | None) -> str:
    """First values of a table row, with their column names."""
    names = {} if columns is None else dict(enumerate(columns))
    shown = []
    for name, value in list(values.items())[:_MOST_VALUES]:
        value = plain(value, _LONGEST_VALUE)
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        shown.append(f"{short(names.get(name, name), _LONGEST_VALUE)}: {text}")
    more = len(values) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more else "")


# ---------------------------------------------------------------------------- images
def _pixels(array: NDArray) -> NDArray[np.uint8] | None:
    """Pixels from 0 to 255, channels last; None if the array is not an image. Values other than bytes are scaled."""
    if array.ndim == 3 and array.shape[2] not in _CHANNELS:
        array = np.moveaxis(array, 0, 2)
    is_image = min(array.shape) > 1 if array.ndim == 2 else array.ndim == 3 and array.shape[2] in _CHANNELS
    if not is_image or not array.size or array.dtype.kind not in "biuf":
        return None
    values = np.nan_to_num(array.astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = (0, 255) if array.dtype == np.uint8 else (min(values.min(), 0), max(values.max(), 1))
    scaled = (255 * (values - low) / (high - low)).round().astype(np.uint8)
    return scaled[..., 0] if array.shape[2:] == (1,) else scaled


def _png(pixels: NDArray[np.uint8]) -> str:
    """Small PNG image as a data URI."""
    from PIL import Image

    image = Image.fromarray(pixels)
    image.thumbnail((_SIDE, _SIDE))
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
