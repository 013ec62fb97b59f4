"""Contents of the paper's tables: cells, methods, and settings of each scale.

Where the paper's text leaves a setting open, the comment beside it says what is used here.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from examples.benchmarks.shared import PLAIN
from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, GLCClassifier, MetaTransitionClassifier
from noisytransition.datasets import CIFAR100_SUPERCLASSES
from noisytransition.methods import METHODS as ALL_METHODS
from noisytransition.transition import cifar10_noise, pair_noise, superclass_noise, symmetric_noise

TUNED = Path(__file__).with_name("tuned.json")

# ---------------------------------------------------------------------------- cells
RATES = (0.2, 0.4, 0.6, 0.8)
NINE = [("none", 0.0), *(("symmetric", r) for r in RATES), *(("asymmetric", r) for r in RATES)]
# the paper's rates for Tiny-ImageNet could not be looked up; pair noise of 200 classes has a singular T at 0.5
SIX = [(kind, rate) for kind in ("symmetric", "asymmetric") for rate in RATES[:3]]
# data set, and its noises
TABLES = {
    "cifar10": ("cifar10", NINE),
    "cifar100": ("cifar100", NINE),
    "cifar10n": ("cifar10", [("aggre", None), ("worse", None)]),
    # not in the paper: the labels "worse" drawn anew by their T, and by T and the features (scale `features`)
    "cifar10n-redrawn": ("cifar10", [("redrawn", None), ("redrawn by features", None)]),
    "tiny-imagenet": ("tiny-imagenet", SIX),
    "clothing1m": ("clothing1m", [("shops", None)]),
}
# the noisy labels of its clean rows are not known
WITHOUT_PAIRS = {"clothing1m"}
N_CLASSES = {"cifar10": 10, "cifar100": 100, "tiny-imagenet": 200, "clothing1m": 14}
ASYMMETRIC = {
    "cifar10": cifar10_noise,
    "cifar100": lambda rate: superclass_noise(CIFAR100_SUPERCLASSES, rate),
    "tiny-imagenet": lambda rate: pair_noise(200, rate),
}


def noise_matrix(data, kind, rate):
    """T of simulated noise; None for labels that came with the data, and for none."""
    if kind == "symmetric":
        return symmetric_noise(N_CLASSES[data], rate)
    return ASYMMETRIC[data](rate) if kind == "asymmetric" else None


# ---------------------------------------------------------------------------- methods
TRUE_T, FROM_FORWARD = "true T", "meta-transition from Forward"
# these know the noisy labels of the clean rows too, which rows that were drawn from the training set have
PAIRS = ("GLC, pairs", "EM, pairs")
# the paper's nine and EM, as the library has them, and others beside them
METHODS = ALL_METHODS | {
    "clean samples only": CrossEntropyClassifier,
    FROM_FORWARD: MetaTransitionClassifier,
    TRUE_T: GLCClassifier,
    "GLC, pairs": GLCClassifier,
    "EM, pairs": EMTransitionClassifier,
}
# these have the settings of another method
SETTINGS_OF = {TRUE_T: "GLC", FROM_FORWARD: "meta-transition"} | {
    method: method.removesuffix(", pairs") for method in PAIRS
}
OWN: dict[str, dict[str, Any]] = {
    FROM_FORWARD: {"transition_init": "anchor"},
    "GLC, pairs": {"transition_init": "count"},
}
# Few clean rows need more epochs, as many as in fine-tuning
DEFAULTS: dict[str, dict[str, Any]] = {"clean samples only": {"max_epochs": 50}}
# Fine-tuning's rate is that of the last epochs before it. EM has no folds, and no trainings of 50 epochs on the clean
# rows
PUBLISHED: dict[str, dict[str, Any]] = {"fine-tuning": {"fine_tuning_lr": 1e-3}, "EM": PLAIN | {"cv": None}}


def make(method, scale, **params):
    """Unfitted classifier: at a published scale the method of its paper; EM, which has none, and others by default."""
    cls = METHODS[method]
    published = SCALES[scale].published and cls is not EMTransitionClassifier
    return cls.as_published(**params) if published else cls(**params)


# ---------------------------------------------------------------------------- scales
class Scale(NamedTuple):
    """Settings of one scale.

    Attributes
    ----------
    training : dict
        Parameters of every classifier. Ours are ``decay_at`` (epochs after which the step is divided by 10),
        ``linear_decay`` (the step falls by the same amount after each epoch) and ``augment`` (True: crops and flips;
        "cutout": with a hidden square).
    networks : tuple of str
        For all data sets; the paper's at ``()``.
    n_noisy, n_meta : int, optional
        Rows; at least five clean rows of each class, but for `smoke`. None: all of them, the paper's number.
    seeds : int
        Number of seeds by default.
    published : bool
        Whether methods are as published, by `as_published`; otherwise as they are by default.
    """

    training: dict[str, Any]
    networks: tuple[str, ...] = ()
    n_noisy: int | None = None
    n_meta: int | None = None
    seeds: int = 3
    published: bool = False


SGD = {"optimizer": "sgd", "lr": 0.1, "batch_size": 128, "optimizer__momentum": 0.9, "optimizer__weight_decay": 1e-3}
SCALES = {
    # random images of the tests
    "smoke": Scale(
        SGD | {"lr": 0.05, "max_epochs": 2, "decay_at": [1], "augment": True}, ("small CNN",), 100, 30, published=True
    ),
    # Frozen features: large batches, since a step costs little. The step is what cross-entropy needs: with 0.01, on
    # the labels "worse" of CIFAR-10N, a linear head memorises them (held-out clean rows, seed 101)
    "features": Scale(SGD | {"lr": 0.003, "batch_size": 512, "max_epochs": 20}, ("linear", "MLP")),
    # a few thousand images
    "small": Scale(SGD | {"lr": 0.05, "max_epochs": 8, "augment": True}, ("small CNN",), n_noisy=4000, n_meta=500),
    # a deep network for one machine without a GPU: about half an hour for each training on one core
    "deep": Scale(
        SGD | {"max_epochs": 6, "linear_decay": True, "augment": True},
        ("fast CNN",),
        seeds=1,
        published=True,
    ),
    # a deep network in a few minutes on a GPU
    "gpu": Scale(
        SGD | {"max_epochs": 30, "linear_decay": True, "augment": "cutout", "precision": "bf16"},
        ("ResNet-9",),
        published=True,
    ),
    # The paper's "initial learning rate 0.0001" is taken for a typing error: 120 epochs from scratch with it train
    # nothing, and the sources that the paper cites have 0.1. The margin of the crops is an eighth of the image.
    "full": Scale(SGD | {"max_epochs": 120, "decay_at": [80, 100], "augment": True}, seeds=5, published=True),
}
# Clothing1M: a pretrained network is not trained for 120 epochs of a million images; these are the usual settings
FULL_OF = {"clothing1m": {"lr": 0.01, "max_epochs": 10, "decay_at": [5]}}
FULL_NETWORKS = {
    "cifar10": "ResNet-34",
    "cifar100": "ResNet-34",
    "tiny-imagenet": "PreAct ResNet-18",
    "clothing1m": "ResNet-50",
}
# The paper has 1,000 clean images for CIFAR. Ten of each class for Tiny-ImageNet, as for CIFAR-100, and the validation
# list of Clothing1M are choices
N_META = {"cifar10": 1000, "cifar100": 1000, "tiny-imagenet": 2000, "clothing1m": None}


class Cell(NamedTuple):
    """One fit: what identifies its line in a file of results. All values are those of JSON."""

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
        """Identifies the cell among all lines of a file."""
        return key(self._asdict())


def key(row):
    """Key of a cell or of its line."""
    return json.dumps({name: row.get(name) for name in Cell._fields}, sort_keys=True)


def tuned(data, scale, network, method):
    """Settings that `tune` has found for a method on a data set."""
    found = json.loads(TUNED.read_text()) if TUNED.exists() else {}
    of_methods = found.get(scale, {}).get(data, {}).get(network, {})
    return of_methods.get(SETTINGS_OF.get(method, method), {})


def training(table, scale):
    """Parameters of every classifier."""
    return SCALES[scale].training | (FULL_OF.get(table, {}) if scale == "full" else {})


def settings(table, scale, network, method, own=None):
    """Parameters of a method's classifier: of the scale, of the method, and those that were found by `tune`."""
    of, base = (PUBLISHED if SCALES[scale].published else DEFAULTS), SETTINGS_OF.get(method, method)
    of_method = of.get(base, {}) | of.get(method, {}) | OWN.get(method, {})
    own = tuned(TABLES[table][0], scale, network, method) if own is None else own
    return training(table, scale) | of_method | own


def number_of_clean_rows(scale, data):
    """Clean rows at a scale, by default."""
    least = SCALES[scale].n_meta
    if least is None:
        return N_META[data]
    return max(least, (1 if scale == "smoke" else 5) * N_CLASSES[data])


def cells(table, scale, seeds=None, networks=None, n_meta=None, methods=METHODS):
    """All cells of a table: noise by noise and seed by seed, all methods of one before the next."""
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
