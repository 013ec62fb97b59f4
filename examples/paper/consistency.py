"""Is T consistent? Its error against the number of noisy rows and of clean rows, beside the sampling limit.

    python -m examples.paper.consistency --data-root DIR --features-dir DIR2 --jobs 2

CIFAR-10 by frozen features with asymmetric noise 0.4, linear heads, the settings of scale `features`. The sampling
limit, the error of counting with true labels, falls with the root of the number of rows: a slope of -1/2 in the plot.
"""

import argparse
import time
import warnings
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import torch

from examples.benchmarks.shared import add_row, markdown, read_rows, spread
from examples.paper.data import Places, folder_of, with_features
from examples.paper.run import RESULTS, fitted, matching
from examples.paper.tables import cells
from noisytransition import sampling_limit, transition_error
from noisytransition.datasets import load_cifar10
from noisytransition.transition import cifar10_noise

N_NOISY, N_META, SEEDS = (1000, 3000, 10_000, 30_000), (100, 1000), range(3)
NAMES = ("GLC", "meta-transition", "EM")
LIMIT = "sampling limit"
OUT = RESULTS / "consistency.jsonl"


def run(n_noisy, n_meta, seed, name, data_root, features_dir):
    """Fit a method; return its row, with the sampling limit."""
    torch.set_num_threads(1)
    started, T = time.perf_counter(), cifar10_noise(0.4)
    data = load_cifar10(folder_of(data_root, "cifar10"), noise=T, n_noisy=n_noisy, n_meta=n_meta, random_state=seed)
    data = with_features(data, "cifar10", features_dir)
    (cell,) = matching(cells("cifar10", "features", [seed], ["linear"], n_meta, [name]), ["asymmetric 0.4"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = fitted(cell, data, Places(data_root, features_dir))
    return {
        "n_noisy": n_noisy,
        "n_meta": n_meta,
        "seed": seed,
        "method": name,
        "transition_error": transition_error(T, clf.transition_matrix_),
        "limit": sampling_limit(T, np.bincount(data.y_true)),
        "accuracy": float(clf.score(data.X_test, data.y_test)),
        "seconds": round(time.perf_counter() - started, 1),
    }


def main():
    """Run what is missing; write the table and the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--features-dir", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    done = {tuple(row[k] for k in ("n_noisy", "n_meta", "seed", "method")) for row in read_rows(OUT)}
    cells = [(n, m, seed, name) for seed in SEEDS for n in N_NOISY for m in N_META for name in NAMES]
    todo = [(*cell, args.data_root, args.features_dir) for cell in cells if cell not in done]
    tasks = (joblib.delayed(run)(*cell) for cell in todo)
    for i, row in enumerate(joblib.Parallel(args.jobs, return_as="generator_unordered")(tasks), 1):
        add_row(OUT, row)
        print(f"[{i}/{len(todo)}] {row}", flush=True)
    report(read_rows(OUT))


def errors(rows, name, n_meta):
    """Errors of a method by the number of noisy rows, an entry for each seed."""
    column = "limit" if name == LIMIT else "transition_error"
    mine = [row for row in rows if row["n_meta"] == n_meta and row["method"] == ("EM" if name == LIMIT else name)]
    return {n: [row[column] for row in mine if row["n_noisy"] == n] for n in N_NOISY}


def slope(of_n):
    """Of the logarithm of the mean error in that of the number of rows."""
    return np.polyfit(np.log(list(of_n)), np.log([np.mean(values) for values in of_n.values()]), 1)[0]


def report(rows):
    """Write a table for each number of clean rows, and the plot."""
    parts = [f"# Error of T against the number of rows\n\n{' '.join(__doc__.splitlines()[4:6])}"]
    for n_meta in N_META:
        found = {name: errors(rows, name, n_meta) for name in (LIMIT, *NAMES)}
        lines = [
            (name, [*(spread(values) for values in of_n.values()), f"{slope(of_n):.2f}"])
            for name, of_n in found.items()
        ]
        parts.append(f"## {n_meta:,} clean rows\n\n" + markdown([*(f"{n:,}" for n in N_NOISY), "slope"], lines))
    text = "\n\n".join(parts) + "\n"
    OUT.with_suffix(".md").write_text(text)
    print(text)
    plot(rows)


def plot(rows):
    """Draw the errors, a panel for each number of clean rows."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(N_META), figsize=(9, 3.6), sharey=True, layout="constrained")
    for ax, n_meta in zip(axes, N_META, strict=True):
        for name in NAMES:
            of_n = errors(rows, name, n_meta)
            mean, std = (np.array([f(v) for v in of_n.values()]) for f in (np.mean, partial(np.std, ddof=1)))
            ax.errorbar(N_NOISY, mean, std, marker="o", capsize=3, label=name)
        limit = [np.mean(v) for v in errors(rows, LIMIT, n_meta).values()]
        ax.plot(N_NOISY, limit, "k--", label=f"{LIMIT}, slope -1/2")
        ax.set(xscale="log", yscale="log", xlabel="noisy rows", title=f"{n_meta:,} clean rows")
        ax.grid(which="both", alpha=0.2)
    axes[0].set_ylabel("error of T")
    axes[0].legend(fontsize=8)
    figure.savefig(OUT.with_suffix(".png"), dpi=120)


if __name__ == "__main__":
    from examples.paper.consistency import main

    main()
