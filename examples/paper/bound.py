"""Bound of the corrected loss and its measured gap, by number of samples, depth and norms of the network.

    python -m examples.paper.bound --data-root DIR --features-dir DIR2

Networks of width 64 without biases on frozen features of CIFAR-10, scaled to norm 1. Asymmetric noise of 0.4, true T.
Every step rescales the layers to the largest Frobenius norm, so that the bounds hold. The gap is the mean corrected
loss of the test samples, with noisy labels, minus that of the training samples. "bound" is `risk_bound`. "Theorem 1"
and "corollary" are the paper's, as printed, with M the largest loss of these networks (`largest_loss`).
"""

import argparse
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import torch
from skorch.callbacks import Callback
from torch import nn

from examples.benchmarks.shared import add_row, markdown, read_rows, spread
from examples.paper.data import LOADERS, folder_of, with_features
from examples.paper.run import RESULTS
from noisytransition import ForwardClassifier, flip_labels
from noisytransition.transition import cifar10_noise

N_NOISY, DEPTHS, NORMS, SEEDS = (1000, 4000, 16_000, 40_000), (1, 2, 3), (3.0, 10.0), range(3)
WIDTH, T = 64, cifar10_noise(0.4)
OUT = RESULTS / "bound.jsonl"


class Bounded(Callback):
    """Rescale weight matrices to the largest norm after each step."""

    def __init__(self, norm):
        self.norm = norm

    @torch.no_grad()
    def on_batch_end(self, net, training, **kwargs):
        """Rescale the weight matrices that exceed the largest norm."""
        for weight in net.module_.parameters() if training else ():
            weight.mul_(min(1.0, self.norm / float(weight.norm())))


def network(depth):
    """Create a ReLU network without biases."""
    widths = [1280, *[WIDTH] * (depth - 1), 10]
    layers = [nn.Linear(a, b, bias=False) for a, b in pairwise(widths)]
    return nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())][:-1])


def on_the_sphere(X):
    """Scale samples to norm 1."""
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def run(data, n_noisy, depth, norm, seed):
    """Train a network; return its training loss, gap, bound and accuracy."""
    X, y, X_test = on_the_sphere(data.X[:n_noisy]), data.y[:n_noisy], on_the_sphere(data.X_test)
    y_test = flip_labels(data.y_test, T, random_state=seed)
    torch.manual_seed(seed)
    settings = {
        "lr": 1.0,
        "optimizer": "sgd",
        "optimizer__momentum": 0.9,
        "batch_size": 128,
        "max_epochs": max(10, 40_000 // n_noisy),
    }
    clf = ForwardClassifier(
        network(depth), transition_init=T, callbacks=[Bounded(norm)], random_state=seed, **settings
    ).fit(X, y)
    train, test = (corrected_loss(clf.predict_proba(x), labels) for x, labels in ((X, y), (X_test, y_test)))
    norms = [float(weight.detach().norm()) for weight in clf.module_.parameters()]
    assert max(norms) <= norm * 1.0001, "a weight matrix exceeds the largest norm"
    bound = risk_bound(n_noisy, [norm] * depth)
    return {"training": train, "gap": test - train, "bound": bound, "accuracy": float(clf.score(X_test, data.y_test))}


def largest_loss(norms):
    """Bound the corrected loss of all ReLU networks of these norms, for samples of norm 1."""
    return np.log(len(T)) + 2**0.5 * float(np.prod(norms)) - np.log(T.max(axis=0).min())  # T has a 0


def risk_bound(n, norms, delta=0.05):
    """Bound the risk minus the training loss, with probability 1 - delta for all ReLU networks of these norms at once.

    The bound is ``2 sqrt(2) L R + b sqrt(log(1 / delta) / (2 n))`` for samples of norm 1 (Mohri, Rostamizadeh,
    Talwalkar, "Foundations of Machine Learning", 2nd edition, Theorem 3.3; Maurer, ALT 2016, Corollary 1). The gradient
    of the loss with respect to the logits is f - q, so L = sqrt(2). R is at most
    ``sqrt(c) prod_k M_k sqrt((sqrt(2 log(2) d) + 1)^2 + 1) / sqrt(n)`` (Golowich, Rakhlin, Shamir, COLT 2018, Theorem
    1, and the inequality of Efron and Stein). b is the largest loss of these networks.
    """
    complexity = len(T) ** 0.5 * float(np.prod(norms)) * np.hypot((2 * np.log(2) * len(norms)) ** 0.5 + 1, 1)
    return float((4 * complexity + largest_loss(norms) * (np.log(1 / delta) / 2) ** 0.5) / n**0.5)


def theorem_1(n, norms, *, largest, radius=1.0, delta=0.05):
    """Compute the bound of Theorem 1 as printed, of the noisy risk R(f) minus the training loss R_n(f).

    ``2 c M B (sqrt(2 log(2) d) + 1) prod_i M_i / sqrt(n) + 3 M sqrt(log(2 / delta) / (2 n))``

    Parameters
    ----------
    n : int
        Number of noisy samples.
    norms : sequence of float
        M_i, the largest Frobenius norm of the weight matrix of each of the d layers.
    largest : float
        M, the largest loss.
    radius : float
        B, the largest norm of a sample.
    delta : float
        Probability that the bound does not hold.
    """
    complexity = 2 * len(T) * largest * radius * ((2 * np.log(2) * len(norms)) ** 0.5 + 1) * float(np.prod(norms))
    return float((complexity + 3 * largest * (np.log(2 / delta) / 2) ** 0.5) / n**0.5)


def corollary(n, norms, **of_bound):
    """Compute the bound of the corollary as printed, of R(f) - R(f*): twice `theorem_1`.

    f minimises the training loss, and f* is the best classifier of clean data.
    """
    return 2 * theorem_1(n, norms, **of_bound)


def corrected_loss(proba, y):
    """Compute the mean corrected loss."""
    return float(-np.log((proba @ T)[np.arange(len(y)), y]).mean())


def main():
    """Run the missing fits, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--features-dir", type=Path, required=True)
    args = parser.parse_args()
    names = ("n_noisy", "depth", "norm", "seed")
    done = {tuple(row[name] for name in names) for row in read_rows(OUT)}
    for seed in SEEDS:
        todo = [cell for cell in product(N_NOISY, DEPTHS, NORMS, [seed]) if cell not in done]
        data = todo and loaded(args, seed)
        for cell in todo:
            row = dict(zip(names, cell, strict=True)) | run(data, *cell)
            add_row(OUT, row)
            print(row, flush=True)
    report(read_rows(OUT))


def loaded(args, seed):
    """Load features with noisy labels."""
    root = folder_of(args.data_root, "cifar10")
    data = LOADERS["cifar10"](root, noise=T, n_noisy=max(N_NOISY), n_clean=100, random_state=seed)
    return with_features(data, "cifar10", args.features_dir)


def report(rows):
    """Write the table."""
    text = f"# Bounds and gap of the corrected loss\n\n{' '.join(__doc__.splitlines()[4:])}\n\n"
    lines = []
    for depth, norm in product(DEPTHS, NORMS):
        mine = [
            [row for row in rows if (row["depth"], row["norm"], row["n_noisy"]) == (depth, norm, n)] for n in N_NOISY
        ]
        name = f"{depth} layer{'s' * (depth > 1)}, norms {norm:g}"
        lines.append((f"{name}: bound", [f"{of_n[0]['bound']:.3g}" for of_n in mine]))
        printed = {"largest": largest_loss([norm] * depth)}
        lines += [
            (f"{name}: {title}", [f"{bound(n, [norm] * depth, **printed):.3g}" for n in N_NOISY])
            for title, bound in (("Theorem 1", theorem_1), ("corollary", corollary))
        ]
        for column in ("gap", "training", "accuracy"):
            lines.append((f"{name}: {column}", [spread([row[column] for row in of_n]) for of_n in mine]))
    text += markdown([f"{n:,} samples" for n in N_NOISY], lines) + "\n"
    OUT.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    from examples.paper.bound import main

    main()
