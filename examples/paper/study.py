"""Options, result pages and plots of the error of T, for the scripts with a study of their own."""

import argparse
from pathlib import Path

import numpy as np


def options(doc, *, features=True):
    """Parse the command line; `features` adds the option of the folder of features."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--data-root", type=Path, required=True)
    if features:
        parser.add_argument("--features-dir", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def write_page(out, parts):
    """Write the page next to the file of results, and print it."""
    text = "\n\n".join(parts) + "\n"
    out.with_suffix(".md").write_text(text)
    print(text)


def plot_errors(out, xlabel, panels):
    """Plot errors of T, with mean and standard deviation over seeds, on logarithmic axes.

    `panels` maps titles to curves. A curve maps values of x to the errors of all seeds. The last curve is the sampling
    limit, dashed and without standard deviation.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(panels), figsize=(9, 3.6), sharey=True, layout="constrained")
    for ax, (title, curves) in zip(axes, panels.items(), strict=True):
        *methods, (limit, of_limit) = curves.items()
        for label, of_x in methods:
            values = list(of_x.values())
            spread = np.std(values, axis=1, ddof=1)
            ax.errorbar(list(of_x), np.mean(values, axis=1), spread, marker="o", capsize=3, label=label)
        ax.plot(list(of_limit), [np.mean(values) for values in of_limit.values()], "k--", label=limit)
        ax.set(xscale="log", yscale="log", xlabel=xlabel, title=title)
        ax.grid(which="both", alpha=0.2)
    axes[0].set_ylabel("error of T")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    figure.savefig(out.with_suffix(".png"), dpi=120)
