"""Draw the tables of docs/benchmarks.rst, docs/real_labels.rst and docs/reproduce.rst, from their result files.

python examples/benchmarks/pictures.py
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import NullFormatter
from PIL import Image
from shared import RESULTS
from zoo.report import PLAIN, WRAPPED, read

EXAMPLES = RESULTS.parents[1]
OURS, OTHERS = "tab:blue", "0.55"
WIDTH = 5.2


# ---------------------------------------------------------------------------- tables
def table(path):
    """Read a table of cells "mean ± standard deviation": means, and standard deviations."""
    cells = pd.read_csv(path, index_col=0, dtype=str)
    parts = [cells[name].str.split(" ± ", expand=True) for name in cells]
    mean, std = (pd.concat([part[k] for part in parts], axis=1, keys=cells.columns) for k in (0, 1))
    return mean.astype(float), std.astype(float)


def dots(ax, mean, std, names, ours):
    """Draw a mean and its spread for each name, from top to bottom; `ours` in colour."""
    y = np.arange(len(names))[::-1]
    colors = [OURS if name in ours else OTHERS for name in names]
    ax.hlines(y, mean[names] - std[names], mean[names] + std[names], colors=colors)
    ax.scatter(mean[names], y, color=colors, s=22, zorder=3)
    ax.set_yticks(y, [name.replace(", logistic", ",\nlogistic") for name in names], linespacing=0.9)
    ax.grid(axis="x", color="0.9")
    ax.spines[["top", "right"]].set_visible(False)


def save(figure, path):
    """Write a picture of few colours, since its file is small."""
    figure.savefig(path, dpi=150)
    plt.close(figure)
    Image.open(path).convert("RGB").quantize(32).save(path, optimize=True)


# ---------------------------------------------------------------------------- one picture for each table
def nine_methods():
    """Accuracy of the paper's nine methods on six problems."""
    mean, std = table(RESULTS / "compare_methods_accuracy.csv")
    figure, axes = plt.subplots(3, 2, figsize=(WIDTH, 9.6), sharey=True, layout="constrained")
    for ax, problem in zip(axes.flat, mean, strict=True):
        dots(ax, 100 * mean[problem], 100 * std[problem], list(mean.index), ["meta-transition"])
        ax.set_title(problem.replace(", ", "\n", 1))
    figure.supxlabel("test accuracy, %")
    save(figure, RESULTS / "nine_methods.png")


def error_of_T():
    """Error of T against the sampling limit, in twenty cells."""
    mean, _ = table(RESULTS / "em_transition.csv")
    figure, ax = plt.subplots(figsize=(WIDTH, 6.4), layout="constrained")
    y = np.arange(len(mean))[::-1]
    shown = {"GLC": ("o", OTHERS), "cleanlab": ("s", "tab:orange"), "EM": ("o", OURS)}
    for name, (marker, color) in shown.items():
        ax.scatter(mean[f"T: {name}"], y, marker=marker, color=color, label=name)
    ax.scatter(mean["T: sampling limit"], y, marker="|", s=110, color="k", label="sampling limit")
    ax.set_xscale("log")
    ax.set_xticks([0.01, 0.03, 0.1, 0.3], labels=["0.01", "0.03", "0.1", "0.3"])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_yticks(y, mean.index)
    ax.set_xlabel("error of T")
    ax.grid(axis="y", color="0.92")
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, columnspacing=0.8, handletextpad=0.1)
    save(figure, RESULTS / "error_of_T.png")


def zoo():
    """Accuracy on each small problem, relative to the best simple method."""
    problems = read("check", RESULTS / "zoo_check_present.jsonl").values()
    kinds = ["class-conditional", "feature-dependent", "rule or model", "human"]
    methods = ["EM", "EM, pairs", WRAPPED]
    figure, axes = plt.subplots(3, 1, figsize=(WIDTH, 6.6), sharex=True, layout="constrained")
    jitter = np.random.default_rng(0)
    for ax, method in zip(axes, methods, strict=True):
        for y, kind in enumerate(reversed(kinds)):
            found = [gain(results, method) for results in problems if results.problem.kind == kind]
            ax.scatter(found, y + jitter.uniform(-0.2, 0.2, len(found)), color=OURS, s=14, alpha=0.6, linewidths=0)
            ax.plot([np.mean(found)] * 2, [y - 0.35, y + 0.35], color="k")
        ax.set_yticks(range(len(kinds)), kinds[::-1])
        ax.set_title(method)
        ax.axvline(0, color="0.5", lw=0.8)
        ax.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel("accuracy minus the best simple method, points")
    save(figure, RESULTS / "zoo.png")


def gain(results, method):
    """Return the difference of accuracy to the best of the simple methods, in points."""
    ours, best = results.values("accuracy", method, results.best("accuracy", PLAIN))
    return 100 * (ours - best).mean()


def real_labels():
    """Accuracy on four data sets with real noisy labels."""
    folder = EXAMPLES / "real_labels" / "results"
    files = {"labels of rules": "hausa", "labels of GPT": "global_warming", "labels of a crowd": "labelme"}
    files["labels of people, photos"] = "cifar10n"
    figure, axes = plt.subplots(4, 1, figsize=(WIDTH, 15), layout="constrained")
    for ax, (title, file) in zip(axes, files.items(), strict=True):
        cells = pd.read_csv(folder / f"{file}.csv", index_col=0)["accuracy"].dropna()
        cells = cells.rename(lambda name: name.replace("logistic regression", "LR"))
        mean, std = (100 * part.astype(float) for _, part in cells.str.split(" ± ", expand=True).items())
        dots(ax, mean, std, list(cells.index), ["EM", "EM, pairs", WRAPPED])
        ax.set_title(title)
    axes[-1].set_xlabel("test accuracy, %")
    save(figure, folder / "accuracy.png")


def paper():
    """Accuracy against the noise rate, for the two tables of the paper."""
    folder = EXAMPLES / "paper" / "results"
    rates = [0, 0.2, 0.4, 0.6, 0.8]
    colors = {"cross-entropy": OTHERS, "GCE": "tab:purple", "GLC": "tab:orange"}
    colors |= {"meta-transition": "tab:green", "EM": OURS}
    figure, axes = plt.subplots(2, 2, figsize=(WIDTH, 5.4), sharex=True, sharey="row", layout="constrained")
    for row, data in zip(axes, ("CIFAR-10", "CIFAR-100"), strict=True):
        mean, _ = table(folder / f"{data.lower().replace('-', '')}_features_linear_1000_accuracy.csv")
        for ax, noise in zip(row, ("symmetric", "asymmetric"), strict=True):
            columns = ["none", *(name for name in mean if name.startswith(noise))]
            for name, color in colors.items():
                ax.plot(rates, 100 * mean.loc[name, columns], "o-", ms=4, color=color, label=name)
            ax.set_xticks(rates)
            ax.set_title(f"{data}, {noise}")
            ax.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("noise rate")
    figure.supylabel("test accuracy, %")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    save(figure, folder / "accuracy.png")


def main():
    """Write all pictures."""
    plt.rcParams.update({"font.size": 11, "axes.titlesize": 11})
    for draw in (error_of_T, zoo, nine_methods, real_labels, paper):
        draw()


if __name__ == "__main__":
    main()
