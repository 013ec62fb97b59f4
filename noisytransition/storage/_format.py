"""One format for all files: safetensors, with values as JSON in a tensor, and a checksum of the whole file."""

import json
from collections.abc import Collection
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors.torch import load
from torch import Tensor

from ._files import checksum, replace
from ._plain import DTYPES, Decoder, Encoder, as_bytes

_FORMAT, _VERSION = "noisytransition", "2"
# kinds of files, in the words of messages
_KINDS = {"fit": "a file of a saved fit", "stage": "a file of a saved fit", "classifier": "a saved classifier"}
# the tensor that has the JSON; those that it refers to have their index as name
_CONTENT = "content"
# safetensors' own limit for the length of a header
_LONGEST = 100_000_000
# in place of the checksum while it is computed
_NO_CHECKSUM = b"0" * 64


def write(path: Path, kind: str, value: Any, named: Collection[type] = ()) -> None:
    """Write a value to a file of a kind ("fit", "stage" or "classifier"), in one move.

    Raises
    ------
    TypeError
        For what is not plain data.
    """
    encoder = Encoder(named)
    text = json.dumps(encoder.encode(value)).encode()
    tensors = {str(i): tensor for i, tensor in enumerate(encoder.stored)}
    tensors[_CONTENT] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    tensors = dict(sorted(tensors.items(), key=lambda item: -item[1].itemsize))  # so that each is aligned
    data = [as_bytes(tensor).numpy().data for tensor in tensors.values()]
    head = _head(kind, tensors)
    replace(path, [head.replace(_NO_CHECKSUM, checksum(head, *data).encode(), 1), *data])


def read(path: Path, kind: str, named: Collection[type] = ()) -> Any:
    """Value in a file of a kind.

    Raises
    ------
    ValueError
        If it is no such file, has another version, is damaged, or holds something else than plain data.
    """
    whole = check(path, kind)
    try:
        tensors = load(whole)
        content = json.loads(bytes(tensors.pop(_CONTENT).numpy()))
        return Decoder([tensors[str(i)] for i in range(len(tensors))], named).decode(content)
    except Exception as error:  # the checksum is right: somebody made the file, and it can be wrong in any way
        raise ValueError(f"{str(path)!r} holds more than tensors and plain data. Do not use it.") from error


def check(path: Path, kind: str) -> bytes:
    """Bytes of a file; raise a ValueError unless its kind, version and checksum are right."""
    whole = path.read_bytes()
    head, digest = _read_head(BytesIO(whole), path, kind)
    if checksum(head.replace(digest, _NO_CHECKSUM, 1), memoryview(whole)[len(head) :]) != digest.decode():
        raise ValueError(f"{str(path)!r} is damaged: its checksum is wrong.")
    return whole


def check_kind(path: Path, kind: str) -> None:
    """Raise a ValueError unless kind and version of a file are right; its content is not read."""
    with path.open("rb") as file:
        _read_head(file, path, kind)


def _head(kind: str, tensors: dict[str, Tensor]) -> bytes:
    """Head of a file without checksum: its length, and what safetensors demands."""
    metadata = {"format": _FORMAT, "kind": kind, "version": _VERSION, "checksum": _NO_CHECKSUM.decode()}
    entries: dict[str, dict] = {"__metadata__": metadata}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.nbytes
        entries[name] = {"dtype": DTYPES[tensor.dtype], "shape": tensor.shape, "data_offsets": [start, end]}
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _read_head(file: BinaryIO, path: Path, kind: str) -> tuple[bytes, bytes]:
    """Head of a file of the kind and of this version, and its checksum."""
    try:
        size = file.read(8)
        text = file.read(min(int.from_bytes(size, "little"), _LONGEST))
        found = json.loads(text)["__metadata__"]
        known = (found["format"], found["kind"]) == (_FORMAT, kind)
        version, digest = found["version"], found["checksum"].encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        known = False
    if not known:
        raise ValueError(f"{str(path)!r} is not {_KINDS[kind]}, or is damaged.")
    if version != _VERSION:
        raise ValueError(
            f"{str(path)!r} has version {version} of the format, and this version of noisytransition reads version "
            f"{_VERSION}."
        )
    return size + text, digest
