"""Cells, methods and settings of the paper's tables.

If the paper leaves a setting open, a comment gives the value that is used here.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from examples.cifar import CIFAR100_SUPERCLASSES
from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
    SModelClassifier,
    TRevisionClassifier,
)
from noisytransition.methods import METHODS as ALL_METHODS
from noisytransition.transition import cifar10_noise, pair_noise, superclass_noise, symmetric_noise

TUNED = Path(__file__).with_name("tuned.json")

# ---------------------------------------------------------------------------- cells
RATES = (0.2, 0.4, 0.6, 0.8)
ASYMMETRIC_NAMES = [f"asymmetric {rate:g}" for rate in RATES]
NINE = [("none", 0.0), *(("symmetric", r) for r in RATES), *(("asymmetric", r) for r in RATES)]
# the paper's rates for Tiny-ImageNet are not known here; T of pair noise with 200 classes is singular at 0.5
SIX = [(kind, rate) for kind in ("symmetric", "asymmetric") for rate in RATES[:3]]
# data set and noises of each table
TABLES = {
    "cifar10": ("cifar10", NINE),
    "cifar100": ("cifar100", NINE),
    "cifar10n": ("cifar10", [("aggre", None), ("worse", None)]),
    # not in the paper: the labels "worse" redrawn with their T, and with T and the features (scale `features`)
    "cifar10n-redrawn": ("cifar10", [("redrawn", None), ("redrawn by features", None)]),
    "tiny-imagenet": ("tiny-imagenet", SIX),
    "clothing1m": ("clothing1m", [("shops", None)]),
}
# the noisy labels of the clean samples are not known
WITHOUT_PAIRS = {"clothing1m"}
N_CLASSES = {"cifar10": 10, "cifar100": 100, "tiny-imagenet": 200, "clothing1m": 14}
ASYMMETRIC = {
    "cifar10": cifar10_noise,
    "cifar100": lambda rate: superclass_noise(CIFAR100_SUPERCLASSES, rate),
    "tiny-imagenet": lambda rate: pair_noise(200, rate),
}


def noise_matrix(data, kind, rate):
    """Return T of simulated noise; None without noise, or if the data have noisy labels."""
    if kind == "symmetric":
        return symmetric_noise(N_CLASSES[data], rate)
    return ASYMMETRIC[data](rate) if kind == "asymmetric" else None


# ---------------------------------------------------------------------------- methods
TRUE_T, FROM_FORWARD, AT_DEFAULTS = "true T", "meta-transition from Forward", "meta-transition, default"
# methods that also get the noisy labels of the clean samples
PAIRS = ("GLC, pairs", "EM, pairs")
# with the initial T of their own papers: S-Model of a confusion matrix, T-Revision of anchor points
OWN_STARTS = ("S-Model, own start", "T-Revision, own start")
# the library's methods (the paper's nine, and EM) and variants
METHODS = ALL_METHODS | {
    "clean samples only": CrossEntropyClassifier,
    "S-Model, own start": SModelClassifier,
    "T-Revision, own start": TRevisionClassifier,
    FROM_FORWARD: MetaTransitionClassifier,
    AT_DEFAULTS: MetaTransitionClassifier,
    TRUE_T: GLCClassifier,
    "GLC, pairs": GLCClassifier,
    "EM, pairs": EMTransitionClassifier,
}
# variants with the settings of another method
SETTINGS_OF = {TRUE_T: "GLC", FROM_FORWARD: "meta-transition"} | {
    method: method.partition(",")[0] for method in (*PAIRS, *OWN_STARTS)
}
# as in the paper, GLC's T is the initial T of S-Model, T-Revision and meta-transition
OWN: dict[str, dict[str, Any]] = {
    "S-Model": {"transition_init": "gold"},
    "T-Revision": {"transition_init": "gold"},
    "S-Model, own start": {"transition_init": "confusion"},
    "T-Revision, own start": {"transition_init": "anchor"},
    FROM_FORWARD: {"transition_init": "anchor"},
    "GLC, pairs": {"transition_init": "count"},
}
# few clean samples need more epochs, as many as fine-tuning has
DEFAULTS: dict[str, dict[str, Any]] = {"clean samples only": {"max_epochs": 50}}
# If the learning rate decays, fine-tuning has that of the last epochs before it. EM has no folds in these networks
DECAYED: dict[str, dict[str, Any]] = {"fine-tuning": {"fine_tuning_lr": 1e-3}, "EM": {"cv": 2}}


def make(method, **params):
    """Create an unfitted classifier: the paper's nine methods as published, EM and `AT_DEFAULTS` as in the library."""
    cls = METHODS[method]
    return cls(**params) if cls is EMTransitionClassifier or method == AT_DEFAULTS else cls.as_published(**params)


# figures of the paper (ResNet-34 trained on images, last epoch): table, column of the results, method, noise
PAPER: dict[tuple[str, str], dict[str, dict[str, float]]] = {
    ("cifar10", "accuracy"): {
        "cross-entropy": {"asymmetric 0.4": 0.7785},
        "GLC": {"asymmetric 0.4": 0.9180},
        "meta-transition": {"symmetric 0.4": 0.8973, "asymmetric 0.4": 0.9317},
        FROM_FORWARD: {"asymmetric 0.4": 0.9298},
    },
    ("cifar100", "accuracy"): {
        "meta-transition": {"asymmetric 0.4": 0.7158},
        FROM_FORWARD: {"asymmetric 0.4": 0.6760},
    },
    ("cifar10", "transition_error"): {
        "GLC": dict(zip(ASYMMETRIC_NAMES, (0.051, 0.093, 0.163, 0.206), strict=True)),
        "meta-transition": dict(zip(ASYMMETRIC_NAMES, (0.046, 0.058, 0.068, 0.097), strict=True)),
    },
    ("cifar100", "transition_error"): {
        "GLC": dict(zip(ASYMMETRIC_NAMES, (0.251, 0.515, 0.563, 0.676), strict=True)),
        "meta-transition": dict(zip(ASYMMETRIC_NAMES, (0.188, 0.273, 0.297, 0.323), strict=True)),
    },
}


# ---------------------------------------------------------------------------- scales
class Scale(NamedTuple):
    """Settings of one scale.

    Attributes
    ----------
    training : dict
        Parameters of every classifier. Three are not the library's: ``decay_at`` (epochs after which the learning rate
        is divided by 10), ``linear_decay`` (the learning rate decreases linearly) and ``augment`` (True: crops and
        flips; "cutout": also a hidden square).
    networks : tuple of str
        Networks for all data sets; ``()`` means the paper's network.
    n_noisy, n_meta : int, optional
        Numbers of noisy and clean samples; at least five clean samples of each class, except in `smoke`. None: all
        noisy samples, and the paper's number of clean samples.
    seeds : int
        Default number of seeds.
    """

    training: dict[str, Any]
    networks: tuple[str, ...] = ()
    n_noisy: int | None = None
    n_meta: int | None = None
    seeds: int = 3


SGD = {"optimizer": "sgd", "lr": 0.1, "batch_size": 128, "optimizer__momentum": 0.9, "optimizer__weight_decay": 1e-3}
SCALES = {
    # random images of the tests
    "smoke": Scale(SGD | {"lr": 0.05, "max_epochs": 2, "decay_at": [1], "augment": True}, ("small CNN",), 100, 30),
    # Frozen features: large batches, since a step costs little. With a learning rate of 0.01 cross-entropy with a
    # linear head memorises the labels "worse" of CIFAR-10N (held-out clean samples, seed 101)
    "features": Scale(SGD | {"lr": 0.003, "batch_size": 512, "max_epochs": 20}, ("linear", "MLP")),
    # a few thousand images
    "small": Scale(SGD | {"lr": 0.05, "max_epochs": 8, "augment": True}, ("small CNN",), n_noisy=4000, n_meta=500),
    # a deep network without a GPU: a training takes about half an hour on one core
    "deep": Scale(
        SGD | {"max_epochs": 6, "linear_decay": True, "augment": True},
        ("fast CNN",),
        seeds=1,
    ),
    # a deep network in a few minutes on a GPU
    "gpu": Scale(
        SGD | {"max_epochs": 30, "linear_decay": True, "augment": "cutout", "precision": "bf16"},
        ("ResNet-9",),
    ),
    # The paper's "initial learning rate 0.0001" is assumed to be a typing error: nothing is learned with it in 120
    # epochs from scratch, and the sources that the paper cites have 0.1. The padding of crops is an eighth of the image
    "full": Scale(SGD | {"max_epochs": 120, "decay_at": [80, 100], "augment": True}, seeds=5),
}
# usual settings of Clothing1M: a pretrained network needs no 120 epochs of a million images
FULL_OF = {"clothing1m": {"lr": 0.01, "max_epochs": 10, "decay_at": [5]}}
FULL_NETWORKS = {
    "cifar10": "ResNet-34",
    "cifar100": "ResNet-34",
    "tiny-imagenet": "PreAct ResNet-18",
    "clothing1m": "ResNet-50",
}
# The paper has 1,000 clean images for CIFAR. Ten of each class for Tiny-ImageNet (as in CIFAR-100) and the validation
# list for Clothing1M are choices
N_META = {"cifar10": 1000, "cifar100": 1000, "tiny-imagenet": 2000, "clothing1m": None}


class Cell(NamedTuple):
    """A fit, identified by its columns in a file of results; all values are JSON."""

    table: str
    data: str
    noise: str
    rate: float | None
    method: str
    seed: int
    scale: str
    network: str
    n_meta: int | None
    settings: dict[str, Any]
    held_out: bool = False

    def __str__(self) -> str:
        rate = "" if not self.rate else f" {self.rate:g}"
        return f"{self.data}, {self.noise}{rate}, {self.method}, {self.network}, seed {self.seed}"

    @property
    def key(self) -> str:
        """Key of the cell in a file of results."""
        return key(self._asdict())


def key(row):
    """Return the key of a cell or of its result row."""
    return json.dumps({name: row.get(name) for name in Cell._fields}, sort_keys=True)


def tuned(table, scale, network, method):
    """Read the settings that `tune` found for a method in a table."""
    found = json.loads(TUNED.read_text()) if TUNED.exists() else {}
    of_methods = found.get(scale, {}).get(table, {}).get(network, {})
    return of_methods.get(SETTINGS_OF.get(method, method), {})


def training(table, scale):
    """Return the parameters of every classifier."""
    return SCALES[scale].training | (FULL_OF.get(table, {}) if scale == "full" else {})


def settings(table, scale, network, method, own=None):
    """Return the parameters of a method's classifier: of the scale, of the method, and found by `tune`."""
    of_all, base = training(table, scale), SETTINGS_OF.get(method, method)
    of = DEFAULTS if of_all.keys().isdisjoint({"decay_at", "linear_decay"}) else DECAYED
    of_method = of.get(base, {}) | of.get(method, {}) | OWN.get(method, {})
    own = tuned(table, scale, network, method) if own is None else own
    return of_all | of_method | own


def number_of_clean_rows(scale, data):
    """Return the default number of clean samples at a scale."""
    least = SCALES[scale].n_meta
    if least is None:
        return N_META[data]
    return max(least, (1 if scale == "smoke" else 5) * N_CLASSES[data])


def cells(table, scale, seeds=None, networks=None, n_meta=None, methods=METHODS):
    """List the cells of a table by seed, noise, network and method."""
    data, noises = TABLES[table]
    networks = networks or SCALES[scale].networks or (FULL_NETWORKS[data],)
    n_meta = number_of_clean_rows(scale, data) if n_meta is None else n_meta
    return [
        Cell(table, data, *noise, method, seed, scale, network, n_meta, settings(table, scale, network, method))
        for seed in (range(SCALES[scale].seeds) if seeds is None else dict.fromkeys(seeds))
        for noise in noises
        for network in dict.fromkeys(networks)
        for method in METHODS
        if method in methods and not (method in PAIRS and data in WITHOUT_PAIRS)
    ]
