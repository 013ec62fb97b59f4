"""Compare random clean samples with stratified ones (equally many of each class), for unequal class priors.

    python examples/benchmarks/clean_shares.py
    python examples/benchmarks/clean_shares.py --report   # only write the tables

The same number of clean samples is drawn at random, or equally many of each class. Data sets are from the zoo; all
methods have default parameters, and nothing is tuned. In the last column, methods with `verified_sampling` get
`verified_sampling="stratified"`. Each result is written immediately; a second call adds missing results.
"""

import argparse
import os
import sys
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import torch
from shared import RESULTS, add_row, markdown, paired_difference, publish, read_rows, spread, versions
from zoo.bundled import affairs
from zoo.generated import gaussians, rare
from zoo.methods import CLASSIFIERS, fitted
from zoo.noise import flips, pair, symmetric
from zoo.rows import Data, some_of_each

from noisytransition import transition_error

ROWS = RESULTS / "clean_shares.jsonl"
# data set, noise, and number of clean samples for each class
PROBLEMS = {
    "two classes, 5 % of one": (rare, flips({(0, 1): 0.05, (1, 0): 0.3}), 50),
    "three classes, 5 % of one": (gaussians(3, 2.0, shares=[0.6, 0.35, 0.05]), symmetric(0.2), 40),
    "four classes, 10 % of two": (gaussians(4, 2.0, shares=[0.5, 0.3, 0.1, 0.1]), pair(0.3), 20),
    "affairs, a third of one": (affairs, flips({(0, 1): 0.1, (1, 0): 0.4}), 50),
}
METHODS = ("fine-tuning", "GLC", "meta-transition", "EM", "EM, pairs")
TOLD = "equally many, as told"
HOW = ("as they are", "equally many", TOLD)
SEEDS = range(5)


def draw(name, seed, how):
    """Draw the data of a seed, with clean samples drawn in one of the two ways."""
    make, noise, per_class = PROBLEMS[name]
    rows, rng = make(seed), np.random.default_rng([seed, 1])
    y, T = noise(rows, seed + 2000)
    order = rng.permutation(len(rows.y))
    equally = some_of_each(rows.y, order, per_class)
    clean = order[: len(equally)] if how == "as they are" else equally
    noisy = np.setdiff1d(order, clean)
    X, X_test = (np.ascontiguousarray(a, dtype=np.float32) for a in (rows.X, rows.X_test))
    return Data(X[noisy], y[noisy], X[clean], rows.y[clean], y[clean], X_test, rows.y_test, T, rows.y[noisy])


def run(name, seed, how, method):
    """Fit a method; return its accuracy and its error of T."""
    data = draw(name, seed, how)
    told = {"verified_sampling": "stratified"} if how == TOLD else {}
    found = fitted(data, {"random_state": seed} | told, method)
    row = {"problem": name, "seed": seed, "how": how, "method": method, "accuracy": found["accuracy"]}
    if "transition_error" in found:
        row["error"] = found["transition_error"]
    return row | {"identity": transition_error(data.transition_matrix, np.eye(len(data.transition_matrix)))}


def table(rows, measure):
    """Return a table: all ways to draw clean samples, and the paired difference of the first two."""
    lines = []
    for name, method in product(PROBLEMS, METHODS):
        ways = [[r for r in rows if (r["problem"], r["method"], r["how"]) == (name, method, how)] for how in HOW]
        if not all(ways[:2]) or measure not in ways[0][0]:
            continue
        values = [[r[measure] for r in sorted(of, key=lambda r: r["seed"])] for of in ways]
        mean, low, high, _ = paired_difference(values[1], values[0])
        cells = [f"{ways[0][0]['identity']:.3f}"] if measure == "error" else []
        cells += [spread(values[0]), spread(values[1]), f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"]
        lines.append((f"{name}: {method}", [*cells, spread(values[2]) if values[2] else ""]))
    heads = ["random", "stratified", "difference", "stratified, with `verified_sampling`"]
    return markdown([*(["identity"] if measure == "error" else []), *heads], lines)


def report():
    """Write and print both tables."""
    rows = read_rows(ROWS)
    seeds = len({row["seed"] for row in rows})
    parts = [
        "# Random and stratified clean samples",
        f"Mean ± standard deviation over {seeds} seeds; paired differences with 95 % intervals. "
        f'"stratified": the same number of clean samples of each class. {versions()}. See `clean_shares.py`.',
        "## Error of T\n\n" + table(rows, "error"),
        "## Test accuracy\n\n" + table(rows, "accuracy"),
    ]
    publish("clean_shares.md", parts)


def main():
    """Add missing results and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", action="store_true", help="only write the page of the existing results")
    args = parser.parse_args()
    torch.set_num_threads(1)
    done = {tuple(row[key] for key in ("problem", "seed", "how", "method")) for row in read_rows(ROWS)}
    for name, seed, how, method in product(PROBLEMS, SEEDS, HOW, METHODS):
        can_be_told = how != TOLD or "verified_sampling" in CLASSIFIERS[method]().get_params()
        if not args.report and can_be_told and (name, seed, how, method) not in done:
            add_row(ROWS, row := run(name, seed, how, method))
            print(row, flush=True)
    report()


if __name__ == "__main__":
    main()
