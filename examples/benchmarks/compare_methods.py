"""Compare the paper's nine methods on the same data, network and seeds, after a search of the same size for each.

    pip install ".[benchmarks]"
    python examples/benchmarks/compare_methods.py --search    # hyperparameters: 6 settings for each method
    python examples/benchmarks/compare_methods.py             # the tables, from existing results where possible
    python examples/benchmarks/compare_methods.py --defaults  # default parameters, on further data sets

Data: scikit-learn's digits (100 clean, 1,247 noisy and 450 test samples) with four noise types, and its breast cancer
table (10 clean samples for each class, 406 noisy and 143 test samples) with two; 10 seeds, each with its own split and
noise. All methods have the same network and optimiser: an MLP of 64 units, SGD with momentum 0.9 and weight decay 1e-3,
batches of 64, 40 epochs of the final stage. The search selects one of 6 settings of each method by the accuracy on
held-out clean samples, on digits with asymmetric noise and seeds that are not in the table; all cells use the same
setting. (The held-out samples are from the same 1,797 digits, with another split.) cleanlab gets the same data, with
logistic regression and with the same MLP.

Each fit is written immediately and reused by the next call. With two processes on two cores the search takes 3.5
minutes, the tables 14 and the defaults 5.
"""

import argparse
import json
import os
import time
from functools import partial
from itertools import product

os.environ.setdefault("OMP_NUM_THREADS", "1")

import joblib
import numpy as np
from problems import breast_cancer, digits, gaussians, wine
from shared import RESULTS as PAGES
from shared import (
    Results,
    add_row,
    fit_cleanlab,
    markdown,
    overview,
    paired,
    points,
    publish,
    read_rows,
    spread,
    versions,
    write_csv,
)
from sklearn.linear_model import LogisticRegression

from noisytransition import CrossEntropyClassifier, compare, transition_error
from noisytransition.methods import METHODS as ALL_METHODS

RESULTS = PAGES / "compare_methods"
SHARED = {
    "module__hidden": 64,
    "optimizer": "sgd",
    "lr": 0.1,
    "optimizer__momentum": 0.9,
    "optimizer__weight_decay": 1e-3,
    "batch_size": 64,
    "max_epochs": 40,
}
SEEDS, SEARCH_SEEDS = range(10), range(101, 104)
CELLS = {f"digits, {n}": partial(digits, n) for n in ("asymmetric-0.4", "pair-0.4", "symmetric-0.4", "symmetric-0.6")}
CELLS |= {f"breast cancer, {r}": partial(breast_cancer, r) for r in ((0.2, 0.1), (0.4, 0.2))}
# six settings for each method except MW-Net
SEARCH = {
    "cross-entropy": {"lr": [0.03, 0.1, 0.3], "max_epochs": [15, 40]},
    "fine-tuning": {"fine_tuning_lr": [0.01, 0.03, 0.1], "fine_tuning_epochs": [30, 100]},
    "GCE": {"q": [0.5, 0.7, 0.9], "lr": [0.1, 0.3]},
    "forward": {"warm_up_epochs": [8, 15, 40], "lr": [0.03, 0.1]},
    "GLC": {"warm_up_epochs": [8, 15, 40], "lr": [0.03, 0.1]},
    "S-Model": {"transition_lr": [0.01, 0.1, 1.0], "warm_up_epochs": [8, 40]},
    "T-Revision": {"revision_lr": [5e-7, 1e-5, 1e-4], "warm_up_epochs": [8, 40]},
    "MW-Net": {"lr": [0.01, 0.03, 0.1]},
    "meta-transition": {"transition_lr": [1.0, 10.0, 100.0], "from_warm_up": [False, True]},
}
METHODS = {name: ALL_METHODS[name] for name in SEARCH}
# data sets of the methods at their defaults; nothing is tuned
UNTUNED = {
    "digits, pair-0.4": partial(digits, "pair-0.4"),
    "digits, symmetric-0.6": partial(digits, "symmetric-0.6"),
    "Gaussians, pair-0.4": partial(gaussians, "pair-0.4", n=2000, n_clean=200),
    "wine, symmetric-0.4": partial(wine, "symmetric-0.4"),
}
REFERENCES = ("identity", "sampling limit")
CLEANLAB = ("cleanlab, logistic regression", "cleanlab, MLP")


# ---------------------------------------------------------------------------- the search
def settings(method):
    """Return the settings of a method as keyword arguments."""
    grid = SEARCH[method]
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def of(method, **own):
    """Return a method as published, with the shared and its own parameters."""
    return METHODS[method].as_published(**(SHARED | own))


def search_data(seed):
    """Return the asymmetric cell without its true T; its test samples are held-out clean samples."""
    return digits("asymmetric-0.4", seed)._replace(transition_matrix=None, y_true=None)


def filled(load, methods, seeds, path):
    """Add missing results to a file, seed by seed; return references (not in the file) and all results."""
    done = {(row["method"], row["seed"]) for row in read_rows(path)}
    for seed in seeds:
        missing = {name: clf for name, clf in methods.items() if (name, seed) not in done}
        if missing:
            found = compare(load, missing, seeds=[seed], n_jobs=2)
            for row in found[found["method"].isin(list(missing))].to_dict("records"):
                add_row(path, {name: value for name, value in row.items() if value == value})  # without NaN
    references = compare(load, {}, seeds=seeds).dropna(axis="columns").to_dict("records")
    return references + read_rows(path)


def search():
    """Run all settings of all methods."""
    trials = {f"{name} {json.dumps(own)}": of(name, **own) for name in METHODS for own in settings(name)}
    filled(search_data, trials, SEARCH_SEEDS, RESULTS / "search.jsonl")


def chosen():
    """Return the setting of each method with the best mean accuracy on held-out clean samples (ties: the first)."""
    found = Results(read_rows(RESULTS / "search.jsonl"))
    score = {name: np.mean(list(found.values(name, "accuracy").values())) for name in found.methods}
    return {name: max(settings(name), key=lambda own: score[f"{name} {json.dumps(own)}"]) for name in METHODS}


# ---------------------------------------------------------------------------- cleanlab
def run_cleanlab(name, load, seed):
    """Return the result of cleanlab with one base classifier."""
    data, started = load(seed), time.perf_counter()
    base = LogisticRegression(C=0.1, max_iter=1000)
    if name == "cleanlab, MLP":
        base = CrossEntropyClassifier(**(SHARED | {"max_epochs": 15}), random_state=seed)
    clf, T = fit_cleanlab(base, data, seed)
    return {
        "method": name,
        "seed": seed,
        "accuracy": float(np.mean(clf.predict(data.X_test) == data.y_test)),
        "transition_error": transition_error(data.transition_matrix, T),
        "seconds": round(time.perf_counter() - started, 3),
    }


def cleanlab_rows(cell):
    """Return cleanlab's results in a cell, from the file or from new fits."""
    path = RESULTS / f"{file_name(cell)}_cleanlab.jsonl"
    if not path.exists():
        jobs = (joblib.delayed(run_cleanlab)(name, CELLS[cell], seed) for name in CLEANLAB for seed in SEEDS)
        path.write_text("".join(json.dumps(row) + "\n" for row in joblib.Parallel(2)(jobs)))
    return read_rows(path)


# ---------------------------------------------------------------------------- the tables
def file_name(cell):
    return cell.translate({ord(c): None for c in "(),"}).replace(" ", "_")


def run(cell):
    """Return all results of a cell, including cleanlab's."""
    own = chosen()
    methods = {name: of(name, **own[name]) for name in METHODS}
    ours = filled(CELLS[cell], methods, SEEDS, RESULTS / f"{file_name(cell)}.jsonl")
    return Results(ours + cleanlab_rows(cell), [*REFERENCES, *METHODS])


def goals(tables):
    """List the cells where GLC and fine-tuning are above cross-entropy."""
    lines = []
    for cell, table in tables.items():
        found = table.differences("cross-entropy")
        for name in ("GLC", "fine-tuning"):
            d = found[name]
            verdict = "met" if d["low"] > 0 else "met only on average" if d["mean"] > 0 else "MISSED"
            lines.append(f"* {cell}: {name} above cross-entropy: {points(d)}: {verdict}")
    return "\n".join(lines)


def report(tables):
    """Write and print all tables."""
    settings_of = chosen()
    own = "\n".join(f"* {name}: {', '.join(f'{k}={v:g}' for k, v in p.items())}" for name, p in settings_of.items())
    parts = [
        "# Comparison of nine methods",
        f"Mean ± standard deviation over {len(SEEDS)} seeds, last epoch. {versions()}, 2 processes. See "
        "`compare_methods.py`.",
        f"## Selected hyperparameters\n\nShared: {', '.join(f'{k}={v}' for k, v in SHARED.items())}.\n\n{own}",
        "## Test accuracy\n\n" + markdown(tables, overview(tables, "accuracy")),
        "## Error of T\n\n" + markdown(tables, overview(tables, "transition_error")),
        "## Difference of accuracy to cross-entropy, in points\n\n" + markdown(tables, paired(tables, "cross-entropy")),
        "## Difference of accuracy to fine-tuning, in points\n\n" + markdown(tables, paired(tables, "fine-tuning")),
        "## Goals\n\n" + goals(tables),
        "## Cost\n\n"
        + "\n\n".join(f"{cell}\n\n{costs(table)}" for cell, table in tables.items() if "asymmetric" in cell),
    ]
    publish("compare_methods.md", parts)


def costs(table):
    """Return a table of all measures of each method."""
    columns, lines = ("accuracy", "transition_error", "steps", "seconds"), []
    for method in table.methods[len(REFERENCES) :]:
        values = [list(table.values(method, column).values()) for column in columns]
        accuracy, error, steps, seconds = values
        spreads = [spread(v) if v else "" for v in (accuracy, error)]
        lines.append((method, [*spreads, f"{np.mean(steps):.0f}" if steps else "", f"{np.mean(seconds):.1f}"]))
    return markdown(["accuracy", "error of T", "gradient steps", "seconds"], lines)


def report_defaults():
    """Run the methods at their defaults; write and print the tables."""
    tables = {
        cell: Results(
            filled(
                load,
                {name: cls.as_published() for name, cls in METHODS.items()},
                range(5),
                RESULTS / f"defaults_{file_name(cell)}.jsonl",
            ),
            [*REFERENCES, *METHODS],
        )
        for cell, load in UNTUNED.items()
    }
    parts = [
        "# Nine methods with default parameters",
        f"Mean ± standard deviation over 5 seeds. {versions()}, 2 processes. See `compare_methods.py --defaults`.",
        "## Test accuracy\n\n" + markdown(tables, overview(tables, "accuracy")),
        "## Error of T\n\n" + markdown(tables, overview(tables, "transition_error")),
    ]
    publish("compare_methods_defaults.md", parts)


def write_tables(tables):
    """Write the tables of the docs."""
    for column in ("accuracy", "transition_error"):
        write_csv(PAGES / f"compare_methods_{column}.csv", tables, overview(tables, column))


def main():
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--search", action="store_true", help="run the search for hyperparameters")
    parser.add_argument("--defaults", action="store_true", help="run all methods at their defaults")
    args = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    if args.search:
        search()
        print(*chosen().items(), sep="\n")
    elif args.defaults:
        report_defaults()
    else:
        tables = {cell: run(cell) for cell in CELLS}
        report(tables)
        write_tables(tables)


if __name__ == "__main__":
    main()
