"""Data of a cell: images or features with noisy labels, clean samples and test samples."""

import hashlib
import json
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import Dataset, Subset

from examples.cifar import load_cifar10, load_cifar10n, load_cifar100
from examples.paper.clothing1m import label_pairs, load_clothing1m
from examples.paper.features import read_json
from examples.paper.image_sets import from_arrays_or, load_tiny_imagenet
from examples.paper.tables import N_CLASSES, SCALES, noise_matrix
from noisytransition import CrossEntropyClassifier
from noisytransition.transition import count_transition_matrix

# noises that use human labels: the labels themselves, or labels redrawn with their T
FROM_PEOPLE = {"aggre": "aggre", "worse": "worse", "redrawn": "worse", "redrawn by features": "worse"}
# power of the posterior in redrawn labels
POWERS = {"redrawn": 0.0, "redrawn by features": 0.25}
HEAD = {"lr": 0.003, "batch_size": 512, "max_epochs": 10, "optimizer": "sgd", "optimizer__momentum": 0.9}
LOADERS = {
    "cifar10": partial(from_arrays_or, load_cifar10),
    "cifar100": partial(from_arrays_or, load_cifar100),
    "tiny-imagenet": load_tiny_imagenet,
}


class Places(NamedTuple):
    """Paths of the files, and the device to train on.

    Attributes
    ----------
    data_root : Path
        Folder with the files of the data sets, or with one folder for each of them.
    features_dir : Path or None
        Folder with ``cifar10_train.npy``, ``cifar10_test.npy`` and so on.
    states : Path or None
        Folder for the states of unfinished fits.
    weights : str or None
        File with the weights of a pretrained ResNet-50.
    device : str
    """

    data_root: Path
    features_dir: Path | None = None
    states: Path | None = None
    weights: str | None = None
    device: str = "cpu"


@lru_cache(maxsize=1)
def load(data, noise, rate, seed, scale, n_meta, held_out, places):
    """Load the samples of a cell; ``transition_matrix`` is T, for human labels the average T.

    With `held_out`, for the search of hyperparameters, the test samples are further clean samples, and T is None.
    """
    drawn = 2 * n_meta if held_out else n_meta
    found = _images(data, noise, rate, seed, SCALES[scale].n_noisy, drawn, places.data_root)
    if noise in POWERS and scale != "features":
        raise ValueError(f"{noise} needs --scale features, not {scale!r}.")
    if scale == "features":
        found = with_features(found, data, places.features_dir)
        if noise in POWERS:
            found = redrawn(found, POWERS[noise], seed)
    return _held_out(found, n_meta, seed) if held_out else found


def folder_of(root, name):
    """Return the folder of a data set: the folder with its name if there is one, otherwise the root."""
    return root / name if (root / name).is_dir() else root


def _images(data, noise, rate, seed, n_noisy, n_meta, data_root):
    root, params = folder_of(data_root, data), {"n_noisy": n_noisy, "n_clean": n_meta, "random_state": seed}
    if data == "clothing1m":
        return load_clothing1m(root, **params)._replace(transition_matrix=counted(*label_pairs(root), N_CLASSES[data]))
    people = FROM_PEOPLE.get(noise)
    labels = people_s_labels(data_root, people) if people else noise_matrix(data, noise, rate)
    found = LOADERS[data](root, noise=labels, **params)
    if found.transition_matrix is not None:
        return found
    true, given = (np.concatenate(pair) for pair in ((found.y_true, found.y_clean), (found.y, found.y_clean_noisy)))
    return found._replace(transition_matrix=counted(true, given, N_CLASSES[data]))


def people_s_labels(data_root, labels):
    """Read a label set of CIFAR-10N from the original file, or from an array such as ``cifar10n_worse.npy``."""
    folder = folder_of(data_root, "cifar10n")
    array = folder / f"cifar10n_{labels}.npy"
    return np.load(array) if array.exists() else load_cifar10n(folder, labels)


def counted(y, y_noisy, n_classes):
    """Count T from pairs of labels; the row of a class without pairs is uniform."""
    known = np.bincount(y, minlength=n_classes) > 0
    return count_transition_matrix(y, y_noisy, n_classes, smoothing=0 if known.all() else 1e-9)


def with_features(found, data, folder):
    """Replace images by features, standardised by the noisy samples."""
    if data == "clothing1m":
        raise ValueError("--scale features does not support clothing1m; use another scale.")
    if folder is None:
        raise ValueError("--scale features needs --features-dir, the folder of features.")
    train, test = (np.load(Path(folder) / f"{data}_{part}.npy", mmap_mode="r") for part in ("train", "test"))
    n_train, n_test = max(found.rows.max(), found.rows_clean.max()) + 1, len(found.y_test)
    if len(train) < n_train or len(test) != n_test:
        raise ValueError(
            f"{folder} has features of {len(train)} training and {len(test)} test samples; {n_train} and {n_test} are "
            "needed."
        )
    X, X_clean, X_test = (rows.astype(np.float32) for rows in (train[found.rows], train[found.rows_clean], test))
    mean, std = moments(X)
    return found._replace(X=(X - mean) / std, X_clean=(X_clean - mean) / std, X_test=(X_test - mean) / std)


def identity_of_features(data, folder):
    """Hash the description of the features of a data set, or the files if they have no description.

    Return None if there are no files; reading them raises the error.
    """
    paths = [] if folder is None else [Path(folder) / f"{data}_{part}.npy" for part in ("train", "test")]
    if not paths or not all(path.exists() for path in paths):
        return None
    digest = hashlib.sha256()
    for path in paths:
        about = read_json(path.with_suffix(".json"))
        if about is None:
            about = joblib.hash(np.load(path, mmap_mode="r"), coerce_mmap=True)
        digest.update(json.dumps(about, sort_keys=True).encode())
    return digest.hexdigest()[:16]


def moments(X):
    """Compute mean and standard deviation of each column; a standard deviation of 0 becomes 1."""
    std = X.std(axis=0)
    return X.mean(axis=0), np.where(std == 0, 1, std)


def redrawn(found, power, seed):
    """Redraw noisy labels from ``P(j | i, x) ~ T[i, j] p_j(x)^power``, where p is a classifier of the true labels.

    With power 0, one T holds for all samples. Otherwise labels are wrong where the classifier is uncertain, and are
    flipped to classes that it considers likely.
    """
    T, n_classes = found.transition_matrix, len(found.transition_matrix)
    clf = CrossEntropyClassifier(
        nn.Linear, module__in_features=found.X.shape[1], module__out_features=n_classes, random_state=seed, **HEAD
    ).fit(found.X, found.y_true)
    rng, drawn = np.random.default_rng(seed), []
    for X, y in ((found.X, found.y_true), (found.X_clean, found.y_clean)):
        share = T[y] * clf.predict_proba(X) ** power
        below = share.cumsum(axis=1) < rng.random((len(y), 1)) * share.sum(axis=1, keepdims=True)
        drawn.append(below.sum(axis=1))
    true = np.concatenate([found.y_true, found.y_clean])
    T = counted(true, np.concatenate(drawn), n_classes)
    return found._replace(y=drawn[0], y_clean_noisy=drawn[1], transition_matrix=T)


def _held_out(found, n_meta, seed):
    """Split the clean samples into a half for training and a half that replaces the test samples."""
    halves = train_test_split(
        np.arange(len(found.y_clean)), train_size=n_meta, stratify=found.y_clean, random_state=seed
    )
    (X, y), (X_test, y_test) = ((_take(found.X_clean, rows), found.y_clean[rows]) for rows in halves)
    unknown = {"transition_matrix": None, "y_true": None, "y_clean_noisy": None, "rows_clean": None}
    return found._replace(X_clean=X, y_clean=y, X_test=X_test, y_test=y_test, **unknown)


def _take(X, rows):
    return Subset(X, rows.tolist()) if isinstance(X, Dataset) else X[rows]
