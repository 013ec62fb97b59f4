"""Tiny data in the file format of each set."""

import hashlib
import io
import pickle
import zipfile

import numpy as np
import torch
from PIL import Image

from noisytransition.datasets import CIFAR10_CLASSES, CIFAR100_CLASSES, CIFAR100_SUPERCLASSES


def pixels(n, seed=0, size=32):
    return np.random.default_rng(seed).integers(256, size=(n, size, size, 3), dtype=np.uint8)


def write_npy(folder, X, y, X_test, y_test):
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in (("X_train", X), ("y_train", y), ("X_test", X_test), ("y_test", y_test)):
        np.save(folder / f"{name}.npy", array)
    return folder


def write_image(path, seed=0, size=(8, 8), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(256, size=(*size, 3), dtype=np.uint8)).convert(mode).save(path)


def set_hashes(monkeypatch, kind, folder):
    """Let torchvision take the files of a folder for the official ones."""

    def md5(name):
        return hashlib.md5((folder / name).read_bytes()).hexdigest()

    for attribute in ("train_list", "test_list"):
        monkeypatch.setattr(kind, attribute, [[name, md5(name)] for name, _ in getattr(kind, attribute)])
    monkeypatch.setattr(kind, "meta", kind.meta | {"md5": md5(kind.meta["filename"])})


def _dump(path, content):
    """Write a pickle of Python 2's protocol, as the official files are."""
    path.write_bytes(pickle.dumps(content, protocol=2))


def _planes(X):
    """Rows of 3072 bytes: the red, green and blue plane of each image."""
    return X.transpose(0, 3, 1, 2).reshape(len(X), 3072)


def write_cifar10(root, X, y, X_test, y_test):
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    parts = list(zip(np.array_split(X, 5), np.array_split(y, 5), strict=True))
    for i, (images, labels) in enumerate(parts, start=1):
        _dump(folder / f"data_batch_{i}", {"data": _planes(images), "labels": labels.tolist()})
    _dump(folder / "test_batch", {"data": _planes(X_test), "labels": y_test.tolist()})
    _dump(folder / "batches.meta", {"label_names": list(CIFAR10_CLASSES), "num_vis": 3072})
    return folder


def write_cifar100(root, X, y, X_test, y_test):
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    for name, images, labels in (("train", X, y), ("test", X_test, y_test)):
        coarse = CIFAR100_SUPERCLASSES[labels].tolist()
        _dump(folder / name, {"data": _planes(images), "fine_labels": labels.tolist(), "coarse_labels": coarse})
    _dump(folder / "meta", {"fine_label_names": list(CIFAR100_CLASSES)})
    return folder


def write_human_pt(path, **labels):
    """Write CIFAR-10N's archive, with the names of numpy 1 that the published file has."""
    stream = io.BytesIO()
    torch.save(labels, stream)
    with zipfile.ZipFile(stream) as new, zipfile.ZipFile(path, "w") as old:
        for entry in new.namelist():
            old.writestr(entry, new.read(entry).replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))


def write_cinic10(root, n_cifar=1, n_imagenet=2):
    for part in ("train", "valid", "test"):
        for c, name in enumerate(CIFAR10_CLASSES):
            for i in range(n_cifar):
                write_image(root / part / name / f"cifar10-train-{100 * c + i}.png", c)
            for i in range(n_imagenet):
                write_image(root / part / name / f"n0{c}_{i}.png", c)
    return root


def write_tiny_imagenet(root, synsets=("n03", "n01", "n02"), n=4):
    folder = root / "tiny-imagenet-200"
    folder.mkdir(parents=True)
    (folder / "wnids.txt").write_text("\n".join(synsets) + "\n")
    (folder / "words.txt").write_text("n01\tgoldfish, Carassius auratus\nn02\tcrane\nn03\tcrane\nn99\tother\n")
    lines = []
    for c, synset in enumerate(synsets):
        boxes = [f"{synset}_{i}.JPEG\t0\t0\t7\t7" for i in range(n)]
        for i in range(n):
            mode = "L" if i == 0 else "RGB"  # some images are grey
            write_image(folder / "train" / synset / "images" / f"{synset}_{i}.JPEG", c, mode=mode)
        (folder / "train" / synset / f"{synset}_boxes.txt").write_text("\n".join(boxes))
        write_image(folder / "val" / "images" / f"val_{c}.JPEG", c)
        lines.append(f"val_{c}.JPEG\t{synset}\t0\t0\t7\t7")
    (folder / "val" / "val_annotations.txt").write_text("\n".join(lines) + "\n")
    write_image(folder / "test" / "images" / "test_0.JPEG")
    return folder


CLOTHES = "T-Shirt Shirt Knitwear Chiffon Sweater Hoodie Windbreaker Jacket Down_Coat Suit Shawl Dress Vest Underwear"


def write_clothing1m(root, n_noisy=42, n_clean=28):
    """Images 0.. are noisy; then come three clean lists, of which every second image has a noisy label, too."""
    annotations = root / "annotations"
    annotations.mkdir(parents=True)
    lists = {"noisy_train": n_noisy, "clean_train": n_clean, "clean_val": 14, "clean_test": 14}
    noisy, clean, number = [], [], 0
    for name, size in lists.items():
        keys = [f"images/{i % 10}/{i:02d}/{i},{i}.jpg" for i in range(number, number + size)]
        for i, key in enumerate(keys):
            write_image(root / key, i, size=(10 + i % 3, 12))
            if name == "noisy_train" or i % 2:
                noisy.append(f"{key} {(i + (name != 'noisy_train')) % 14}")
            if name != "noisy_train":
                clean.append(f"{key} {i % 14}")
        (annotations / f"{name}_key_list.txt").write_text("\n".join(keys) + "\n")
        number += size
    (annotations / "noisy_label_kv.txt").write_text("\n".join(noisy) + "\n")
    (annotations / "clean_label_kv.txt").write_text("\n".join(clean) + "\n")
    (annotations / "category_names_eng.txt").write_text("\n".join(CLOTHES.split()) + "\n")
    return root


def cut(path, share=0.5):
    """Keep the first part of a file."""
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
