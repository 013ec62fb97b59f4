"""Record T, posteriors and histories of every classifier on three small problems.

    python tests/golden/record.py            # compare with the record: the same bits, or how far apart
    python tests/golden/record.py --write    # write the record anew; CHANGELOG.md says why an entry is another one

Bits are those of one processor and one torch; `tests/golden/test_golden.py` compares up to rounding.
"""

import argparse
import warnings
from operator import attrgetter
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler
from skorch.callbacks import LRScheduler
from skorch.dataset import ValidSplit
from torch import nn

import noisytransition
from noisytransition.nets import MLP
from noisytransition.transition import flip_labels, pair_noise, symmetric_noise

RECORD = Path(__file__).with_name("golden.npz")
SHOWN = 40


# ---------------------------------------------------------------------------- problems
# given, so that the record does not depend on the defaults of training and of the network
PLAIN_SGD = {"optimizer": torch.optim.SGD, "batch_size": 64}


def mlp(n_in, n_out):
    """Return the built-in network without the scaling of inputs."""
    return {"module": MLP, "module__n_in": n_in, "module__n_out": n_out}


def blobs():
    """Three Gaussian classes with pair noise, and 60 separate clean samples."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    X = rng.normal(size=(400, 4)) + 3 * np.array([[0, 0, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0]])[y]
    y_noisy = flip_labels(y, pair_noise(3, 0.4), random_state=0)
    return X[60:], y_noisy[60:], {"meta": (X[:60], y[:60])}, mlp(4, 3) | PLAIN_SGD | {"max_epochs": 3, "lr": 0.1}


def wine():
    """Wine with string labels, 30 verified samples without a noisy label, and the user's optimiser and schedule."""
    X, y = load_wine(return_X_y=True)
    X, names = StandardScaler().fit_transform(X), np.array(["ant", "bee", "cat"])
    verified = np.arange(len(y)) % 6 == 0
    y_noisy = np.where(verified, None, names[flip_labels(y, symmetric_noise(3, 0.3), random_state=1)])
    params = mlp(13, 3) | {
        "max_epochs": 4,
        "batch_size": 16,
        "lr": 0.01,
        "optimizer": torch.optim.Adam,
        "optimizer__weight_decay": 1e-3,
        "module__hidden": [16, 8],
        "callbacks": [("schedule", LRScheduler("CosineAnnealingLR", T_max=4))],
        "train_split": ValidSplit(4, stratified=False),
    }
    return X, y_noisy, {"y_verified": np.where(verified, names[y], None)}, params


class SmallNet(nn.Sequential):
    """Convolution, batch normalisation and dropout."""

    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.2),
            nn.Linear(32, 10),
        )


def jitter(x):
    """Return images with a little noise added: an augmentation that draws random numbers."""
    return x + 0.05 * torch.randn_like(x)


def digits():
    """Images of 500 digits with pair noise, in uint8, through a small convolutional net."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:600].reshape(-1, 1, 8, 8).astype(np.uint8), y[:600]
    y_noisy = flip_labels(y, pair_noise(10, 0.3), random_state=2)
    params = PLAIN_SGD | {"max_epochs": 2, "lr": 0.05, "module": SmallNet, "batch_transform": jitter}
    return X[100:], y_noisy[100:], {"X_clean": X[:100], "y_clean": y[:100]}, params


# ---------------------------------------------------------------------------- methods
EM = {"cv": 2, "clean_weight": 1.5}
METHODS = {
    "cross_entropy": ("CrossEntropyClassifier", {}),
    "fine_tuning": ("FineTuningClassifier", {"fine_tuning_epochs": 2, "fine_tuning_lr": 0.02}),
    "gce_published": ("GCEClassifier.as_published", {}),
    "gce_truncated": ("GCEClassifier", {"truncation": 0.2, "truncation_start": 1}),
    "forward_published": ("ForwardClassifier.as_published", {"warm_up_epochs": 2}),
    "forward_confusion": ("ForwardClassifier", {"warm_up_epochs": 2, "transition_init": "confusion"}),
    "glc_published": ("GLCClassifier.as_published", {"warm_up_epochs": 2}),
    "s_model": ("SModelClassifier", {"transition_lr": 0.05, "transition_init": "gold"}),
    "t_revision": ("TRevisionClassifier", {"revision_lr": 1e-3, "transition_init": "gold"}),
    "mw_net": ("MWNetClassifier.as_published", {}),
    "mw_net_default": ("MWNetClassifier", {}),
    "meta_transition": ("MetaTransitionClassifier", {}),
    "meta_transition_paper": ("MetaTransitionClassifier.as_published", {"transition_lr": 1.0}),
    "meta_transition_from_warm_up": ("MetaTransitionClassifier", {"from_warm_up": True, "refit": False}),
    "em": ("EMTransitionClassifier", EM),
}
PROBLEMS = {"blobs": blobs, "wine": wine, "digits": digits}


def recorded(method, problem):
    """Fit a method and return its recorded results as arrays by name."""
    name, own = METHODS[method]
    X, y, clean, params = PROBLEMS[problem]()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clf = attrgetter(name)(noisytransition)(**params, **own, random_state=3).fit(X, y, **clean)
    kept = {"proba": clf.predict_proba(X[:SHOWN])}
    for attribute in ("transition_matrix_", "transition_init_", "transition_history_", "noisy_class_counts_"):
        if hasattr(clf, attribute):
            kept[attribute] = getattr(clf, attribute)
    for stage, history in clf.histories_.items():
        for column in sorted(history[-1]):
            values = history[:, column]
            if column not in ("epoch", "dur", "batches") and np.ndim(values) == 1:
                kept[f"{stage}/{column}"] = np.array(values, dtype=np.float64)
    return {f"{problem}/{method}/{key}": value for key, value in kept.items()}


def compare(old, new):
    """Print the differences from the record."""
    same = [key for key in old if key in new and np.array_equal(old[key], new[key], equal_nan=True)]
    for key in sorted({*old, *new} - set(same)):
        if key not in old or key not in new:
            print(f"{key}: {'new' if key in new else 'gone'}")
        elif old[key].shape != new[key].shape:
            print(f"{key}: shape {old[key].shape} -> {new[key].shape}")
        else:
            print(f"{key}: apart by {np.nanmax(np.abs(old[key] - new[key])):.3g}")
    print(f"{len(same)} of {len(old)} entries are the same to the bit")


def main():
    """Compare, or write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the record anew")
    write = parser.parse_args().write
    found = {}
    for problem in PROBLEMS:
        for method in METHODS:
            found |= recorded(method, problem)
    if RECORD.exists():
        compare(dict(np.load(RECORD)), found)
    if write:
        np.savez_compressed(RECORD, **found)


if __name__ == "__main__":
    main()
