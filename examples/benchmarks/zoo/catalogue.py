"""Problems of the zoo, in a design half and a check half.

The hash of a problem's name decides its half, so names must not change. Methods are designed with the results of the
design half. The check half is run once, at the end, and all of its results are printed.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.model_selection import train_test_split

from noisytransition.transition import count_transition_matrix

from . import bundled, folder, generated, texts
from .labellers import (
    LIBRARY_DESCRIPTIONS,
    LIBRARY_WORDS,
    PACKAGE_WORDS,
    boosting,
    columns,
    labelled,
    model_of_words,
    nearest_description,
    votes_of_words,
)
from .networks import NETWORKS, TOO_SHORT
from .noise import (
    answers,
    asymmetric,
    flips,
    hard_rows,
    in_a_part,
    neighbours,
    pair,
    people,
    programs,
    rule,
    small_model,
    symmetric,
)
from .rows import Data, by_words
from .texts import by_embeddings


class Problem(NamedTuple):
    """Samples, noise, network and clean samples per class (`missing`: the class without clean samples)."""

    name: str
    rows: Callable
    noise: Callable
    network: str
    per_class: int
    missing: int | None = None

    @property
    def half(self):
        """Name of the half, "check" or "design", by the hash of the name."""
        digest = hashlib.sha256(self.name.encode()).hexdigest()
        return "check" if int(digest, 16) % 2 else "design"

    @property
    def kind(self):
        """Kind of noise: class-conditional, feature-dependent, rule or model, human."""
        return self.noise.kind

    @property
    def meets_assumptions(self):
        """Whether one T holds for all samples, all classes have clean samples, and the network has enough epochs."""
        return self.kind == "class-conditional" and self.missing is None and self.network not in TOO_SHORT

    @property
    def package(self):
        """Package that the samples need, or None."""
        return getattr(self.rows, "package", None)

    @property
    def needs_folder(self):
        """Whether the samples are in the folder --data."""
        return self.rows.__module__ == folder.__name__

    def params(self, data) -> dict[str, Any]:
        """Return the parameters of a classifier."""
        return NETWORKS[self.network](data.X.shape[1], len(data.transition_matrix))

    def make(self, seed, data_folder=None) -> Data:
        """Return the noisy, clean and test samples of a seed."""
        rows = self.rows(seed, data_folder) if self.needs_folder else self.rows(seed)
        y, T = self.noise(rows, seed + 2000)  # independent of the seed of the samples
        clean = self._clean(rows.y, seed)
        noisy = np.setdiff1d(np.arange(len(y)), clean)
        if T is None:
            T = count_transition_matrix(rows.y[noisy], y[noisy], rows.y.max() + 1)
        X, X_test = map(_as_float32, (rows.X, rows.X_test))
        of_clean = X[clean], rows.y[clean], y[clean]
        return Data(X[noisy], y[noisy], *of_clean, X_test, rows.y_test, T, rows.y[noisy])

    def _clean(self, y, seed):
        """Draw clean samples, stratified by class."""
        n = self.per_class * (y.max() + 1)
        clean, _ = train_test_split(np.arange(len(y)), train_size=n, stratify=y, random_state=seed + 1000)
        return clean[y[clean] != self.missing] if self.missing is not None else clean


def _as_float32(X):
    return X.astype(np.float32) if issparse(X) else np.ascontiguousarray(X, dtype=np.float32)


LEAVE, MAYBE, STAY = range(3)
CHURN = {(LEAVE, MAYBE): 0.31, (STAY, MAYBE): 0.23}
IN_TWO_CITIES = {(LEAVE, MAYBE): 0.78, (STAY, MAYBE): 0.58}  # two fifths of the customers
UNEQUAL = {(0, 1): 0.4, (1, 0): 0.1}
G = generated
VOTES = votes_of_words(LIBRARY_WORDS)
NEAREST = nearest_description(LIBRARY_DESCRIPTIONS)

PROBLEMS = [
    # ---- generated tables
    Problem("customers, flips in two cities", G.customers, in_a_part(IN_TWO_CITIES), "default", 60),
    Problem("customers, linear, flips in two cities", G.customers, in_a_part(IN_TWO_CITIES), "linear", 60),
    Problem("customers, one T", G.customers, flips(CHURN), "default", 60),
    Problem("customers, one T, linear, 20 clean a class", G.customers, flips(CHURN), "linear", 20),
    Problem("five ordered classes, neighbours 0.4", G.ordered(5), neighbours(0.4), "linear", 30),
    Problem("five ordered classes, hard rows 0.3", G.ordered(5), hard_rows(0.3), "MLP 64-64", 30),
    Problem("three ordered classes, hard rows 0.25, linear", G.ordered(3), hard_rows(0.25), "linear", 100),
    Problem("mixed table of four classes, pair 0.4, Adam", G.mixed(4), pair(0.4), "Adam", 20),
    Problem(
        "mixed table, two sources of noise",
        G.mixed(3),
        in_a_part({(0, 1): 0.6, (2, 0): 0.1}, {(0, 2): 0.1, (1, 2): 0.4}),
        "MLP 64-64",
        30,
    ),
    Problem("mixed table of five classes, symmetric 0.4, memorising", G.mixed(5), symmetric(0.4), "memorising", 20),
    Problem("mixed table without noise", G.mixed(4), symmetric(0.0), "default", 10),
    # ---- generated clouds
    Problem("strong overlap, symmetric 0.4, linear", G.gaussians(3, 1.0), symmetric(0.4), "linear", 30),
    Problem("strong overlap, pair 0.3, two epochs", G.gaussians(4, 1.5), pair(0.3), "two epochs", 20),
    Problem("almost pure chance", G.gaussians(3, 2.0), symmetric(0.64), "default", 30),
    Problem("20 classes, symmetric 0.4", G.gaussians(20, 4.0, 30, n=1500), symmetric(0.4), "Adam", 10),
    Problem("20 classes, pair 0.3, memorising", G.gaussians(20, 4.0, 30, n=1500), pair(0.3), "memorising", 5),
    Problem("50 classes, symmetric 0.2", G.gaussians(50, 5.0, 40, n=2000), symmetric(0.2), "MLP 64-64", 5),
    Problem("products of columns, symmetric 0.6", G.quadratic, symmetric(0.6), "MLP 64-64", 30),
    Problem("products of columns, linear, pair 0.3", G.quadratic, pair(0.3), "linear", 30),
    Problem("moons, hard rows 0.3, Adam", G.moons, hard_rows(0.3), "Adam", 30),
    Problem("two moons, unequal 0.4 and 0.1, under-trained", G.moons, flips(UNEQUAL), "under-trained", 30),
    Problem("rare class, unequal 0.05 and 0.3", G.rare, flips({(0, 1): 0.05, (1, 0): 0.3}), "default", 50),
    Problem(
        "three classes, 5 % of one, symmetric 0.2",
        G.gaussians(3, 2.0, shares=[0.6, 0.35, 0.05]),
        symmetric(0.2),
        "MLP 64-64",
        40,
    ),
    # ---- scikit-learn's data sets
    Problem("digits, pair 0.4, under-trained", bundled.digits, pair(0.4), "under-trained", 10),
    Problem("digits, pair 0.45, Adam", bundled.digits, pair(0.45), "Adam", 10),
    Problem("digits, asymmetric 0.4, MLP 64-64", bundled.digits, asymmetric(0.4), "MLP 64-64", 10),
    Problem("digits, symmetric 0.6", bundled.digits, symmetric(0.6), "default", 10),
    Problem("digits, pure chance", bundled.digits, symmetric(0.9), "default", 20),
    Problem("digits, hard rows 0.3, memorising", bundled.digits, hard_rows(0.3), "memorising", 10),
    Problem("digits, pair 0.3, no clean eight", bundled.digits, pair(0.3), "default", 10, missing=8),
    Problem("digits, symmetric 0.4, 2 epochs", bundled.digits, symmetric(0.4), "two epochs", 5),
    Problem("wine, symmetric 0.4, linear", bundled.wine, symmetric(0.4), "linear", 5),
    Problem("iris, pair 0.3", bundled.iris, pair(0.3), "default", 5),
    Problem("breast cancer, unequal 0.4 and 0.1", bundled.breast_cancer, flips(UNEQUAL), "default", 20),
    Problem(
        "breast cancer, flips of large cells",
        bundled.breast_cancer,
        in_a_part({(0, 1): 0.3, (1, 0): 0.3}, {(1, 0): 0.05}),
        "linear",
        20,
    ),
    # ---- data sets of other packages
    Problem("MNIST, symmetric 0.4, memorising", bundled.mnist, symmetric(0.4), "memorising", 10),
    Problem("MNIST, hard rows 0.3", bundled.mnist, hard_rows(0.3), "MLP 64-64", 30),
    Problem("affairs, unequal 0.1 and 0.4, linear", bundled.affairs, flips({(0, 1): 0.1, (1, 0): 0.4}), "linear", 50),
    Problem("party, neighbours 0.3, Adam", bundled.party, neighbours(0.3), "Adam", 20),
    Problem("party, flips of the old", bundled.party, in_a_part({(0, 1): 0.5, (2, 1): 0.4}), "default", 30),
    # ---- labels that depend on the features only
    Problem("mixed table of four classes, labels of a small model", G.mixed(4), small_model(), "MLP 64-64", 20),
    Problem("three clouds, labels of a rule", G.gaussians(3, 2.0), rule(3), "default", 30),
    Problem("digits, labels of a small model", bundled.digits, small_model(), "default", 10),
    Problem("breast cancer, labels of a small model, linear", bundled.breast_cancer, small_model(), "linear", 20),
    Problem("breast cancer, labels of a rule", bundled.breast_cancer, rule(4), "default", 20),
    Problem("MNIST, labels of a small model", bundled.mnist, small_model(), "MLP 64-64", 20),
    Problem("affairs, labels of a small model", bundled.affairs, small_model(30), "default", 50),
    Problem("party, labels of a small model, Adam", bundled.party, small_model(30), "Adam", 30),
    # ---- sparse words
    Problem("words of four topics, 350 texts, symmetric 0.4", G.topics(4, 350), symmetric(0.4), "default", 15),
    Problem("words of eight topics, pair 0.3, linear", G.topics(8, 1000), pair(0.3), "built-in linear", 10),
    Problem("docstrings, pair 0.3", bundled.docstrings, pair(0.3), "default", 12),
    Problem("docstrings, symmetric 0.4, linear", bundled.docstrings, symmetric(0.4), "built-in linear", 12),
    Problem("docstrings, labels of a small model", bundled.docstrings, small_model(), "default", 10),
    # ---- unscaled columns
    Problem("wine, unscaled, symmetric 0.3", bundled.unscaled_wine, symmetric(0.3), "default", 5),
    Problem(
        "breast cancer, unscaled, unequal 0.3 and 0.1",
        bundled.unscaled_breast_cancer,
        flips({(0, 1): 0.3, (1, 0): 0.1}),
        "built-in linear",
        20,
    ),
    Problem("300 customers, unscaled, one T", G.unscaled_customers, flips(CHURN), "default", 20),
    Problem("party, unscaled, neighbours 0.3", bundled.unscaled_party, neighbours(0.3), "default", 30),
    Problem(
        "affairs, unscaled, unequal 0.1 and 0.3",
        bundled.unscaled_affairs,
        flips({(0, 1): 0.1, (1, 0): 0.3}),
        "default",
        40,
    ),
    # ---- few samples
    Problem("150 digits, symmetric 0.3", partial(bundled.digits, n=150), symmetric(0.3), "default", 3),
    Problem("mixed table of 150 rows, pair 0.3", G.mixed(4, n=150), pair(0.3), "default", 5),
    Problem("300 digits, pair 0.4", partial(bundled.digits, n=300), pair(0.4), "default", 5),
    Problem(
        "100 patients, symmetric 0.2", partial(bundled.breast_cancer, n=100), symmetric(0.2), "built-in linear", 10
    ),
    # ---- embeddings and images
    Problem("350 embeddings of five classes, pair 0.4", G.embeddings(5, 350), pair(0.4), "default", 10),
    Problem("embeddings of ten classes, symmetric 0.5", G.embeddings(10, 1000), symmetric(0.5), "built-in linear", 10),
    Problem("MNIST images, symmetric 0.4", bundled.mnist_images, symmetric(0.4), "convolutions", 10),
    Problem("MNIST images, pair 0.3, linear", bundled.mnist_images, pair(0.3), "built-in linear", 10),
    # ---- texts with labels of rules, of a language model, and of a model of words
    Problem(
        "library docstrings by embeddings, votes of words",
        labelled(texts.library, VOTES, by_embeddings),
        programs,
        "default",
        30,
    ),
    Problem(
        "library docstrings by embeddings, nearest description",
        labelled(texts.library, NEAREST, by_embeddings),
        programs,
        "built-in linear",
        20,
    ),
    Problem(
        "library docstrings by words, nearest description",
        labelled(texts.library, NEAREST, by_words),
        programs,
        "default",
        20,
    ),
    Problem(
        "library docstrings by embeddings, labels of a model of words",
        labelled(texts.library, model_of_words(20), by_embeddings),
        programs,
        "default",
        10,
    ),
    Problem(
        "docstrings of five packages by embeddings, votes of words",
        labelled(texts.packages, votes_of_words(PACKAGE_WORDS), by_embeddings),
        programs,
        "default",
        60,
    ),
    # ---- tables with labels of gradient boosting
    Problem(
        "affairs, labels of gradient boosting",
        labelled(bundled.affairs, boosting(300), n=3300),
        programs,
        "default",
        75,
    ),
    Problem(
        "party, labels of gradient boosting that sees the vote",
        labelled(bundled.party, boosting(150), columns(slice(8))),  # the last two columns are vote and log(population)
        programs,
        "built-in linear",
        30,
    ),
    Problem(
        "customers, labels of gradient boosting on three columns",
        labelled(G.customers, boosting(200, slice(3)), n=4200),
        programs,
        "default",
        50,
    ),
    Problem(
        "MNIST, labels of gradient boosting",
        labelled(bundled.mnist, boosting(300), n=2300),
        programs,
        "MLP 64-64",
        20,
    ),
    # ---- several people
    Problem("mixed table of four classes, three of seven people", G.mixed(4, n=2000), people(7, 3), "default", 25),
    Problem("digits, one of five people", bundled.digits, people(5, 1), "default", 10),
    Problem(
        "docstrings of five packages by embeddings, one of seven people",
        texts.embedded_packages,
        people(7, 1),
        "built-in linear",
        40,
    ),
    # ---- data sets in the folder --data
    Problem("LabelMe, a person's answer, linear", folder.labelme, answers, "linear", 10),
    Problem("LabelMe, a person's answer, memorising", folder.labelme, answers, "memorising", 20),
    Problem("global warming, labels of a language model", folder.global_warming, answers, "default", 30),
    Problem("Hausa titles, labels of rules, linear", folder.hausa, answers, "linear", 20),
    Problem("Hausa titles, labels of rules, Adam", folder.hausa, answers, "Adam", 50),
    Problem("350 sentences on global warming by words", folder.global_warming_words, answers, "default", 40),
    Problem("350 Hausa titles by words", folder.hausa_words, answers, "default", 15),
    Problem("LabelMe by 512 features, a person's answer", folder.labelme_features, answers, "default", 10),
    Problem(
        "1,600 sentences on global warming by embeddings",
        folder.global_warming_embeddings,
        programs,
        "default",
        50,
    ),
    Problem(
        "350 sentences on global warming by embeddings",
        folder.few_global_warming_embeddings,
        programs,
        "built-in linear",
        25,
    ),
    Problem("Hausa titles by embeddings, labels of rules", folder.hausa_embeddings, programs, "default", 30),
    Problem("LabelMe, majority of the answers", folder.labelme_majority, answers, "default", 12),
    Problem("CIFAR-10N worst labels", folder.cifar10n, answers, "MLP 64-64", 30),
    Problem("CIFAR-10N worst labels, linear", folder.cifar10n, answers, "linear", 10),
    Problem("CIFAR-10H, a person's label, Adam", folder.cifar10h, answers, "Adam", 30),
]  # fmt: skip


def of_half(half):
    """Return the problems of a half; "all" returns both halves."""
    return [problem for problem in PROBLEMS if half in (problem.half, "all")]


def named(name):
    """Return the problem of this name."""
    return next(problem for problem in PROBLEMS if problem.name == name)
