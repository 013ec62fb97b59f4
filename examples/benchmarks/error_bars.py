"""Measure the coverage of 90 % intervals of T, with new samples and a new fit in each repeat.

    python examples/benchmarks/error_bars.py             # all cells; each result is written immediately
    python examples/benchmarks/error_bars.py --report    # only write the page

Each repeat draws noisy samples, clean samples and noise from the same population, fits `EMTransitionClassifier` with
default parameters (but SGD with momentum 0.9, learning rate 0.2, 15 epochs, batches of 256) and computes 90 %
intervals, which should contain the T of the population. Cells:

* Gaussians: three overlapping classes in six dimensions, 2,000 noisy and 99 or 30 clean samples, a linear classifier or
  an MLP of 16 units, a T with zeros or a symmetric T; two such classes with unequal rates and 50 clean samples.
* table: four classes, numeric and categorical columns, 2,000 noisy and 100 clean samples, a linear classifier, although
  the classes are not linear in the columns.
* digits: the same 1,797 images in each repeat; only splits and noise are new.

The error bars were developed on repeats 0 to 99 of the linear Gaussian cells with zeros in T, so repeats start at 1000
here. Each cell has 100 repeats by default; a second call adds missing repeats.
"""

import argparse
import os
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from problems import digits, table
from shared import RESULTS, markdown, publish, read_rows, run_all, versions
from torch import nn

from noisytransition import (
    ComparisonData,
    EMTransitionClassifier,
)
from noisytransition.transition import flip_labels, symmetric_noise

ROWS = RESULTS / "error_bars.jsonl"
FAST = {"lr": 0.2, "optimizer": "sgd", "optimizer__momentum": 0.9, "batch_size": 256, "max_epochs": 15}
WITH_ZEROS = np.array([[0.7, 0.3, 0.0], [0.0, 0.8, 0.2], [0.1, 0.1, 0.8]])
MEANS = np.random.default_rng(7).normal(size=(3, 6))
MEANS *= 2 / np.linalg.norm(MEANS, axis=1, keepdims=True)


def gaussians(T, n_clean, seed, n=2000):
    """Draw two or three overlapping classes of a fixed population."""
    rng = np.random.default_rng(seed)
    y = rng.integers(len(T), size=n + n_clean)
    y[n:] = np.arange(n_clean) % len(T)
    X = MEANS[y] + rng.normal(size=(len(y), 6))
    y_noisy = flip_labels(y[:n], T, random_state=seed)
    return ComparisonData(X[:n], y_noisy, X[n:], y[n:], None, None, T, y[:n])


def part_of_table(seed):
    """Draw samples of one generated table, a fixed population."""
    whole = table("pair-0.3", 0, n=20_000, n_clean=4000, n_test=1)
    rng = np.random.default_rng(seed)
    rows, clean = rng.choice(20_000, 2000, replace=False), rng.choice(4000, 100, replace=False)
    y = whole.y_true[rows]
    y_noisy = flip_labels(y, whole.transition_matrix, random_state=seed)
    return ComparisonData(
        whole.X[rows], y_noisy, whole.X_clean[clean], whole.y_clean[clean], None, None, whole.transition_matrix, y
    )


MLP = {"module__hidden": 16}
LINEAR = {"module": nn.Linear, "module__in_features": 6, "module__out_features": 3}
# data of a repeat, and parameters of the network
CELLS = {
    "Gaussians, linear, 99 clean": (partial(gaussians, WITH_ZEROS, 99), LINEAR),
    "Gaussians, MLP, 99 clean": (partial(gaussians, WITH_ZEROS, 99), MLP),
    "Gaussians, linear, 30 clean": (partial(gaussians, WITH_ZEROS, 30), LINEAR),
    "table, linear, 100 clean": (part_of_table, LINEAR | {"module__in_features": 72, "module__out_features": 4}),
    "two Gaussians, linear, 50 clean": (
        partial(gaussians, np.array([[0.65, 0.35], [0.1, 0.9]]), 50),
        LINEAR | {"module__out_features": 2},
    ),
    "Gaussians, symmetric, linear, 99 clean": (partial(gaussians, symmetric_noise(3, 0.4), 99), LINEAR),
    "digits, MLP, 100 clean": (partial(digits, "asymmetric-0.4"), {"module__hidden": 64, "max_epochs": 40}),
}


def run(cell, seed):
    """Return T, its bounds and the mean of its standard errors in one repeat."""
    load, net = CELLS[cell]
    data = load(seed)
    params = FAST | net | {"random_state": seed}
    clf = EMTransitionClassifier(**params).fit(data.X, data.y, meta=(data.X_clean, data.y_clean))
    low, high = clf.transition_interval(0.9)
    found = {"T": clf.transition_matrix_, "low": low, "high": high}
    rounded = {name: np.round(a, 4).tolist() for name, a in found.items()}
    std = clf.transition_std_[flips(data.transition_matrix)].mean()
    return {"cell": cell, "seed": seed, **rounded, "std": round(float(std), 5)}


def flips(T):
    """Return a mask of the entries between 0 and 1."""
    return (T > 0) & (T < 1)


def line(cell, rows):
    """Return the coverage by type of entry and by row of T, and standard errors and bias relative to the spread."""
    T = CELLS[cell][0](0).transition_matrix
    found, low, high, std = (np.array([row[name] for row in rows]) for name in ("T", "low", "high", "std"))
    covered = (low <= T + 1e-4) & (high >= T - 1e-4)  # results are rounded to four decimals
    between, zeros, diagonal = flips(T), T == 0, np.eye(len(T), dtype=bool)
    groups = [between, between & diagonal, between & ~diagonal, zeros]
    shares = [rate(covered[:, group]) if group.any() else "" for group in groups]
    by_row = ", ".join(f"{share:.2f}" for share in covered.mean(axis=(0, 2)))
    spread = found.std(axis=0, ddof=1)[between].mean()
    bias = np.abs(found.mean(axis=0) - T)[between].mean()
    width = f"{high[:, zeros].mean():.3f}" if zeros.any() else ""
    return cell, [
        str(len(rows)),
        *shares,
        by_row,
        f"{std.mean() / spread:.2f}",
        f"{bias / spread:.2f}",
        width,
    ]


def rate(covered):
    """Format the coverage and its standard error over repeats."""
    of_repeat = covered.mean(axis=1)
    return f"{of_repeat.mean():.3f} ± {of_repeat.std(ddof=1) / np.sqrt(len(of_repeat)):.3f}"


def report():
    """Write and print the page."""
    heads = [
        "repeats",
        "0 < T < 1",
        "diagonal",
        "off-diagonal, T > 0",
        "T = 0",
        "by row of T",
        "std / spread",
        "bias / spread",
    ]
    rows = {}
    for row in read_rows(ROWS):
        rows.setdefault(row["cell"], []).append(row)
    parts = [
        "# Coverage of 90 % intervals",
        "Goals: coverage of 0.85 to 0.95 where 0 < T < 1, and of at least 0.90 (upper bounds) where T = 0. "
        f"{versions()}. See `error_bars.py`.",
    ]
    found = [line(cell, rows[cell]) for cell in CELLS if rows.get(cell, [])[1:]]
    parts.append(markdown([*heads, "upper bound where T = 0"], found))
    parts.append(
        '"std / spread": ratio of the mean standard error to the standard deviation of T over repeats. "bias / '
        'spread": ratio of the mean distance between the mean T and the true T to the same standard deviation.'
    )
    publish("error_bars.md", parts)


def main():
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", nargs="*", help=f"cells of {list(CELLS)}; default: all")
    parser.add_argument("--repeats", type=int, default=100, help="number of repeats of each cell")
    parser.add_argument("--processes", type=int, default=2, help="number of processes")
    parser.add_argument("--report", action="store_true", help="only write the page of the existing results")
    args = parser.parse_args()
    if not args.report:
        done = {(row["cell"], row["seed"]) for row in read_rows(ROWS)}
        all_of_it = [(c, s) for s in range(1000, 1000 + args.repeats) for c in args.cells or CELLS]
        run_all(run, [job for job in all_of_it if job not in done], ROWS, args.processes)
    report()


if __name__ == "__main__":
    main()
