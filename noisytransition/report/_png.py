"""Small pictures as PNG in data URIs."""

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

# longest side of a picture in pixels; a choice, not measured
_SIDE = 64
# colour types of PNG by number of channels: grey, RGB, RGBA
_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}


def as_image(array: NDArray) -> NDArray | None:
    """Array of shape (height, width, channels) if an array can be one picture, with channels first or last or none."""
    if array.dtype.kind not in "biuf" or array.ndim not in (2, 3) or min(array.shape) < 1:
        return None
    if array.ndim == 2:
        return array[..., None] if min(array.shape) > 1 else None
    if array.shape[2] in _COLOUR_TYPES:
        return array
    return np.moveaxis(array, 0, 2) if array.shape[0] in _COLOUR_TYPES else None


def data_uri(image: NDArray) -> str:
    """PNG of an image of shape (height, width, channels), made smaller if a side is over 64 pixels, as a data URI.

    Values of uint8 are taken as they are, others from 0 to 1 are multiplied by 255, and those of any other range are
    scaled from their smallest to their largest.
    """
    return "data:image/png;base64," + base64.b64encode(_png(_as_bytes(_smaller(image)))).decode()


def _smaller(image: NDArray) -> NDArray:
    """Means of square blocks of pixels."""
    step = -(-max(image.shape[:2]) // _SIDE)
    if step == 1:
        return image
    starts = [np.arange(0, side, step) for side in image.shape[:2]]
    sums = np.add.reduceat(np.add.reduceat(image.astype(np.float64), starts[0], axis=0), starts[1], axis=1)
    sizes = [np.diff(start, append=side) for start, side in zip(starts, image.shape[:2], strict=True)]
    means = sums / np.outer(*sizes)[..., None]
    return means.round().astype(image.dtype) if image.dtype.kind in "iu" else means


def _as_bytes(image: NDArray) -> NDArray[np.uint8]:
    if image.dtype == np.uint8:
        return image
    values = np.nan_to_num(image.astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = values.min(), values.max()
    if low < 0 or high > 1:
        values = (values - low) / max(high - low, np.finfo(float).tiny)
    return (255 * values).round().astype(np.uint8)


def _png(image: NDArray[np.uint8]) -> bytes:
    """PNG file (ISO/IEC 15948) of 8 bits a channel, without filters."""
    height, width, channels = image.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    lines = np.pad(image.reshape(height, -1), ((0, 0), (1, 0)))  # each line starts with its filter: none
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in parts)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
