"""Samples of a report, as images or short text."""

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._text import LONGEST_TEXT, plain, short

# number of displayed values of a table row, and characters of each
_MOST_VALUES, _LONGEST_VALUE = 8, 60
_SIDE = 64  # longest side of an image in pixels
_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}  # PNG colour types by number of channels: grey, RGB, RGBA


def sample_facts(source: Any, positions: Sequence[int], columns: Sequence | None = None) -> list[dict[str, str]]:
    """Samples at these positions as JSON values: ``{"image": PNG as a data URI}`` or ``{"text": ...}``.

    Images are PIL images, and arrays and tensors with two dimensions, or three with 1, 3 or 4 channels first or last.
    `columns` has column names of a table without names.
    """
    source = source.tocsr() if hasattr(source, "tocsr") else source
    return [_sample(_at(source, i), columns) for i in positions]


def _at(source: Any, i: int) -> Any:
    """Sample i, without its label if the source is a Dataset of pairs."""
    if hasattr(source, "iloc"):
        row = source.iloc[i]
        return dict(zip(source.columns, row, strict=True)) if getattr(source, "ndim", 1) == 2 else row
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
    if (image := _as_image(array)) is not None:
        return {"image": "data:image/png;base64," + base64.b64encode(_png(image)).decode()}
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
def _as_image(array: NDArray) -> NDArray[np.uint8] | None:
    """Image of shape (height, width, channels) with sides of at most 64 pixels; None if the array is not an image.

    Values are scaled from [min(smallest, 0), max(largest, 1)] to [0, 255], except for uint8.
    """
    if array.dtype.kind not in "biuf" or not array.size:
        return None
    if array.ndim == 2 and min(array.shape) > 1:
        array = array[..., None]
    elif array.ndim == 3 and array.shape[2] not in _COLOUR_TYPES:
        array = np.moveaxis(array, 0, 2)
    if array.ndim != 3 or array.shape[2] not in _COLOUR_TYPES:
        return None
    values = np.nan_to_num(array.astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = (0, 255) if array.dtype == np.uint8 else (min(values.min(), 0), max(values.max(), 1))
    return (255 * _smaller((values - low) / (high - low))).round().astype(np.uint8)


def _smaller(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """Downsample an image by means of square blocks of pixels."""
    height, width, channels = image.shape
    step = min(-(-max(height, width) // _SIDE), height, width)
    height, width = height // step, width // step
    blocks = image[: height * step, : width * step].reshape(height, step, width, step, channels)
    return blocks.mean(axis=(1, 3))


def _png(image: NDArray[np.uint8]) -> bytes:
    """PNG file (ISO/IEC 15948) with 8 bits per channel, without filters."""
    height, width, channels = image.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    lines = np.pad(image.reshape(height, -1), ((0, 0), (1, 0)))  # each line starts with its filter type: 0, none
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    chunks = (struct.pack(">I", len(c)) + name + c + struct.pack(">I", zlib.crc32(name + c)) for name, c in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
