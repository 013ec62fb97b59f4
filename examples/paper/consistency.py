"""Consistency of T: its error as a function of the numbers of noisy and clean samples, with the sampling limit.

    python -m examples.paper.consistency --data-root DIR --features-dir DIR2 --jobs 2

Linear heads on frozen features of CIFAR-10, asymmetric noise of 0.4, the settings of scale `features`. The sampling
limit, the error of counting with true labels, decreases with the root of the sample size (slope -1/2 in the plot).
"""

import time
import warnings

import numpy as np
import torch

from examples.benchmarks.shared import markdown, read_rows, run_all, spread
from examples.paper.data import LOADERS, Places, folder_of, with_features
from examples.paper.run import RESULTS, fitted, matching, measures
from examples.paper.study import options, plot_errors, write_page
from examples.paper.tables import cells
from noisytransition.transition import cifar10_noise

N_NOISY, N_META, SEEDS = (1000, 3000, 10_000, 30_000), (100, 1000), range(3)
NAMES = ("GLC", "meta-transition", "EM")
LIMIT = "sampling limit"
OUT = RESULTS / "consistency.jsonl"


def run(n_noisy, n_meta, seed, name, data_root, features_dir):
    """Fit a method and return its result row, with the sampling limit."""
    torch.set_num_threads(1)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf, data = fitted_to_features(n_noisy, n_meta, seed, name, Places(data_root, features_dir))
    row = {"n_noisy": n_noisy, "n_meta": n_meta, "seed": seed, "method": name}
    return row | measures(clf, data, time.perf_counter() - started)


def fitted_to_features(n_noisy, n_meta, seed, name, places):
    """Fitted method and its data: frozen features of CIFAR-10 with asymmetric noise."""
    root = folder_of(places.data_root, "cifar10")
    data = LOADERS["cifar10"](root, noise=cifar10_noise(0.4), n_noisy=n_noisy, n_clean=n_meta, random_state=seed)
    data = with_features(data, "cifar10", places.features_dir)
    (cell,) = matching(cells("cifar10", "features", [seed], ["linear"], n_meta, [name]), ["asymmetric 0.4"])
    return fitted(cell, data, places), data


def main():
    """Run the missing fits, and write the tables and the plot."""
    args = options(__doc__)
    done = {tuple(row[k] for k in ("n_noisy", "n_meta", "seed", "method")) for row in read_rows(OUT)}
    cells = [(n, m, seed, name) for seed in SEEDS for n in N_NOISY for m in N_META for name in NAMES]
    todo = [(*cell, args.data_root, args.features_dir) for cell in cells if cell not in done]
    run_all(run, todo, OUT, args.jobs)
    report(read_rows(OUT))


def errors(rows, name, n_meta):
    """Return the errors of a method by number of noisy samples, a value for each seed."""
    column = "limit" if name == LIMIT else "transition_error"
    mine = [row for row in rows if row["n_meta"] == n_meta and row["method"] == ("EM" if name == LIMIT else name)]
    return {n: [row[column] for row in mine if row["n_noisy"] == n] for n in N_NOISY}


def slope(of_n):
    """Fit the slope of log mean error against log number of samples."""
    return np.polyfit(np.log(list(of_n)), np.log([np.mean(values) for values in of_n.values()]), 1)[0]


def report(rows):
    """Write a table for each number of clean samples, and the plot."""
    parts = [f"# Error of T against the number of samples\n\n{' '.join(__doc__.splitlines()[4:6])}"]
    for n_meta in N_META:
        found = {name: errors(rows, name, n_meta) for name in (LIMIT, *NAMES)}
        lines = [
            (name, [*(spread(values) for values in of_n.values()), f"{slope(of_n):.2f}"])
            for name, of_n in found.items()
        ]
        parts.append(f"## {n_meta:,} clean samples\n\n" + markdown([*(f"{n:,}" for n in N_NOISY), "slope"], lines))
    write_page(OUT, parts)
    plot(rows)


def plot(rows):
    """Plot the errors in a panel for each number of clean samples."""
    panels = {
        f"{n_meta:,} clean samples": {name: errors(rows, name, n_meta) for name in NAMES}
        | {f"{LIMIT}, slope -1/2": errors(rows, LIMIT, n_meta)}
        for n_meta in N_META
    }
    plot_errors(OUT, "noisy samples", panels)


if __name__ == "__main__":
    from examples.paper.consistency import main

    main()
