"""Figures 1 and 2 of the paper for human labels (CIFAR-10N "worse"): suggested labels, and a graph of T.

    python -m examples.paper.figures --data-root DIR --features-dir DIR2

EM with pairs, a linear head on frozen features, the settings of scale `features`, seed 0. ``figure_1.md`` has the share
of correct suggestions.
"""

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

from examples.cifar import CIFAR10_CLASSES
from examples.paper.data import Places, load
from examples.paper.run import RESULTS, data_of, fitted, matching
from examples.paper.tables import cells

# smallest flip with an arrow
LEAST = 0.05
N_IMAGES = 24


def draw_images(images, given, proposed, true):
    """Plot images with their noisy label and the suggested label, which is green if it is correct."""
    figure, axes = plt.subplots(3, 8, figsize=(11, 5.2), layout="constrained")
    for ax, image, *labels in zip(axes.flat, images, given, proposed, true, strict=True):
        was, new, right = (CIFAR10_CLASSES[label] for label in labels)
        ax.imshow(image)
        ax.axis("off")
        ax.set_title(f"{was}\n→ {new}", fontsize=9, color="tab:green" if new == right else "tab:red")
    return figure


def draw_graph(T, names):
    """Plot T as a graph; arrow widths are flip probabilities, sizes of the dots the probabilities of correct labels."""
    figure, ax = plt.subplots(figsize=(7, 7), layout="constrained")
    angle = np.linspace(0, 2 * np.pi, len(T), endpoint=False) + np.pi / 2
    x, y = np.cos(angle), np.sin(angle)
    for i, j in np.argwhere((T > LEAST) & ~np.eye(len(T), dtype=bool)):
        style = {"arrowstyle": "-|>", "connectionstyle": "arc3,rad=0.15", "shrinkA": 16, "shrinkB": 16}
        arrow = {"lw": 12 * T[i, j], "color": "tab:red", "alpha": 0.3 + 0.7 * T[i, j] / T.max(), **style}
        ax.annotate("", (x[j], y[j]), (x[i], y[i]), arrowprops=arrow)
    ax.scatter(x, y, s=900 * T.diagonal(), color="tab:blue", zorder=3)
    for i, name in enumerate(names):
        ax.text(1.17 * x[i], 1.17 * y[i], f"{name}\n{T[i, i]:.2f}", ha="center", va="center", fontsize=10)
    ax.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal")
    ax.axis("off")
    return figure


def main():
    """Fit EM, and write both figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--features-dir", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    places = Places(args.data_root, args.features_dir)
    (cell,) = matching(cells("cifar10n", "features", [0], ["linear"], methods=["EM, pairs"]), ["worse"])
    images = load(*data_of(cell._replace(scale="full")), places).X
    data = load(*data_of(cell), places)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = fitted(cell, data, places)
    posterior = clf.noise_model_.label_posterior(clf.predict_proba(data.X), data.y, calibrated=True)
    proposed, sure = posterior.argmax(axis=1), posterior.max(axis=1)
    changed = np.flatnonzero((proposed != data.y) & (sure > 0.9))
    shown = np.random.default_rng(0).choice(changed, N_IMAGES, replace=False)
    right = (proposed[changed] == data.y_true[changed]).mean()
    text = (
        f"{len(changed):,} of {len(data.y):,} samples have a suggested label with a posterior above 0.9; "
        f"{right:.1%} of the suggestions are correct."
    )
    (RESULTS / "figure_1.md").write_text(f"# Suggested labels\n\n{text}\n")
    print(text)
    draw_images(images[shown], data.y[shown], proposed[shown], data.y_true[shown]).savefig(
        RESULTS / "figure_1.png", dpi=110
    )
    draw_graph(clf.transition_matrix_, CIFAR10_CLASSES).savefig(RESULTS / "figure_2.png", dpi=110)


if __name__ == "__main__":
    main()
