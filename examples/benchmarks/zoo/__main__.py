"""Compare classifiers for noisy labels with a verified set: your own, those of this package, and those of others.

    pip install ".[benchmarks]" biquality-learn crowd-kit           # methods without their package are skipped
    python -m examples.benchmarks.zoo                               # bundled data: 18 minutes of CPU time
    python -m examples.benchmarks.zoo --method my_module:MyClassifier --method sklearn.svm:SVC
    python -m examples.benchmarks.zoo --part design --data DIR      # all problems of the design half

A method is a class or function that returns a classifier without arguments. If its `fit` has a parameter `labels` or
`y_verified`, the second argument is a table with the columns "label" (noisy) and "verified" (missing values for most
samples); otherwise, an array of the true labels of verified samples and the noisy labels of the others. It may have
`transition_matrix_`, `label_quality(X, labels)` and `class_shares()`, which are then measured. `random_state` is set to
the seed. Each result is a line of JSON; a second call adds missing results. docs/benchmark_your_method.rst says more.
"""

import argparse
import os
import sys
import time
import warnings
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pandas as pd
import torch
from scipy.sparse import issparse, vstack
from shared import RESULTS, markdown, paired_difference, publish, read_rows, versions, write_csv
from sklearn.metrics import average_precision_score

from noisytransition import transition_error
from zoo.catalogue import named, of_half
from zoo.run import available, fill

HERE = "examples.benchmarks.zoo.peers"
LINEAR, OURS = f"{HERE}:linear", "noisytransition:EMTransitionClassifier"
# methods, and the packages that they need
METHODS = {
    LINEAR: None,
    f"{HERE}:VerifiedOnly": None,
    OURS: None,
    f"{HERE}:transition_cv": None,
    f"{HERE}:CleanLearning": "cleanlab",
    f"{HERE}:IRBL": "bqlearn",
    f"{HERE}:DawidSkene": "crowdkit",
}
SHOWN = {"linear": "logistic regression", "VerifiedOnly": "the same, verified only"}
SHOWN |= {"transition_cv": "TransitionClassifierCV", "DawidSkene": "crowd-kit's Dawid-Skene"}
SHOWN |= {"CleanLearning": "cleanlab's CleanLearning", "IRBL": "biquality-learn's IRBL"}
MEASURES = ["error of T", "wrong labels found", "error of shares"]
KINDS = ["class-conditional", "feature-dependent", "rule or model", "human"]


# ---------------------------------------------------------------------------- one fit
def made(name, seed):
    """Return the classifier of a name `module:attribute`, with the seed as `random_state`."""
    module, _, attribute = name.partition(":")
    clf = getattr(import_module(module), attribute)()
    seeds = [key for key in clf.get_params() if key.split("__")[-1] == "random_state"]
    return clf.set_params(**dict.fromkeys(seeds, seed))


def training_data(data):
    """Return samples and their table of labels: noisy labels, and true labels of the verified samples at the end."""
    X = _joined(data.X, data.X_clean)
    label = np.concatenate([data.y, data.y_clean_noisy])
    verified = pd.array([*[None] * len(data.y), *data.y_clean], dtype="Int64")
    return X, pd.DataFrame({"label": label, "verified": verified})


def _joined(X, X_clean):
    return vstack([X, X_clean], format="csr") if issparse(X) else _flat(np.concatenate([X, X_clean]))


def _flat(X):
    return X if issparse(X) else X.reshape(len(X), -1)


def fit(clf, X, labels):
    """Fit the table if `fit` takes one, else one label for each sample; return the CPU time in seconds."""
    table = {"labels", "y_verified"} & signature(clf.fit).parameters.keys()
    y = labels if table else labels["verified"].fillna(labels["label"]).to_numpy(int)
    started = time.process_time()
    clf.fit(X, y)
    return time.process_time() - started


def measures(clf, data, X, labels):
    """Return the accuracy on test samples, and the other measures that the classifier has."""
    row = {"accuracy": float((np.asarray(clf.predict(_flat(data.X_test))) == data.y_test).mean())}
    T = getattr(clf, "transition_matrix_", None)
    if np.shape(T) == data.transition_matrix.shape:
        row["error of T"] = transition_error(data.transition_matrix, T)
    wrong = data.y != data.y_true
    if hasattr(clf, "label_quality") and wrong.any():
        quality = np.asarray(clf.label_quality(X, labels))[: len(wrong)]
        row["wrong labels found"] = float(average_precision_score(wrong, -quality))
    if hasattr(clf, "class_shares"):
        true = np.bincount([*data.y_true, *data.y_clean]) / len(labels)
        row["error of shares"] = float(np.abs(clf.class_shares()["share"] - true).sum() / 2)
    return row


def run(name, seed, methods, folder):
    """Return the results of these methods on one problem and seed, and the run time in seconds."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    started = time.perf_counter()
    data = named(name).make(seed, folder)
    X, labels = training_data(data)
    unit = float(np.median([fit(made(LINEAR, seed), X, labels) for _ in range(3)]))
    rows = []
    for method in methods:
        row = {"problem": name, "seed": seed, "method": method}
        try:
            clf = made(method, seed)
            row["seconds"] = round(fit(clf, X, labels), 4)
            row |= measures(clf, data, X, labels)
        except Exception as error:  # an error is a result, too
            row["error"] = f"{type(error).__name__}: {error}"[:300]
        rows.append(row | {"seconds of logistic regression": round(unit, 4)})
    return rows, time.perf_counter() - started


# ---------------------------------------------------------------------------- the table
def values(rows, method, column):
    """Return a measure of a method as a table of problems and seeds."""
    own = [row for row in rows if row["method"] == method and column in row]
    frame = pd.DataFrame(own, columns=["problem", "seed", column])
    return frame.pivot(index="problem", columns="seed", values=column)


def with_interval(differences):
    """Format a mean difference of accuracy in points, and its 95 % interval."""
    mean, low, high, _ = paired_difference(differences, 0)
    return f"{100 * mean:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]" if len(differences) > 1 else f"{100 * mean:+.1f}"


def line(rows, method):
    """Return the cells of a method."""
    accuracy = values(rows, method, "accuracy")
    to_ours = (accuracy - values(rows, OURS, "accuracy")).mean(axis=1).dropna()
    mean, low, high, _ = paired_difference(accuracy.dropna().mean(), 0)  # problems without a failed seed
    means = [values(rows, method, name).mean(axis=1) for name in MEASURES]
    own = [row for row in rows if row["method"] == method]
    times = [(row["seconds"], row["seconds of logistic regression"]) for row in own if "seconds" in row]
    seconds, unit = np.sum(times, axis=0) if times else (np.nan, np.nan)
    return [
        f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}]",
        "" if method == OURS else with_interval(to_ours),
        *("" if found.empty else f"{found.mean():.3f}" for found in means),
        f"{seconds / unit:.1f}",
        str(sum("error" in row for row in own) or ""),
    ]


def report(path, part):
    """Write and print the tables."""
    rows = read_rows(path)
    names = {row["method"]: None for row in rows}
    methods = [m for m in dict.fromkeys([*METHODS, *names]) if m in names]
    shown = {m: SHOWN.get(m.partition(":")[2], m.partition(":")[2]) for m in methods}
    kind_of = {p.name: p.kind for p in of_half("all")}
    kinds = [kind for kind in KINDS if any(kind_of[row["problem"]] == kind for row in rows)]
    heads = ["accuracy", "difference to EM", *MEASURES, "time", "failed"]
    lines = [(shown[m], line(rows, m)) for m in methods]
    of_kind = {kind: [row for row in rows if kind_of[row["problem"]] == kind] for kind in kinds}
    by_kind = [(shown[m], [line(of_kind[kind], m)[1] for kind in kinds]) for m in methods if m != OURS]
    n_problems, n_seeds = (len({row[key] for row in rows}) for key in ("problem", "seed"))
    write_csv(path.with_suffix(".csv"), heads, lines, corner="method")
    text = [
        f"# Benchmark: {part} part",
        f"{n_problems} problems, {n_seeds} seeds. {versions()}. See `zoo/__main__.py`.",
        "Accuracy in percent, with a 95 % interval over seeds. Difference: paired, in points, with a 95 % interval "
        "over problems. Wrong labels found: average precision. Time: CPU time / time of logistic regression.",
        markdown(heads, lines),
        "## Difference to EM by kind of noise\n\n" + markdown(kinds, by_kind),
        *sorted({f"* {shown[r['method']]}, {r['problem']}: {r['error']}" for r in rows if "error" in r}),
    ]
    publish(path.resolve().with_suffix(".md"), text)


def main():
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", action="append", default=[], metavar="module:Class", help="may be repeated")
    parser.add_argument("--part", choices=["small", "design", "check"], default="small")
    parser.add_argument("--data", type=Path, help="folder of the data sets with real noisy labels")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--n-jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--out", type=Path, help="file of results; default: results/zoo_small.jsonl")
    args = parser.parse_args()
    problems = of_half("check" if args.part == "check" else "design")
    if args.part == "small":
        problems = [p for p in problems if not (p.needs_folder or p.package)]
    for name, package in METHODS.items():
        if package and find_spec(package) is None:
            print(f"skipped ({package} is not installed): {name}")
    usable = [name for name, package in METHODS.items() if package is None or find_spec(package)]
    out = args.out or (RESULTS if args.part == "small" else Path()) / f"zoo_{args.part}.jsonl"
    fill(run, available(problems, args.data), args.seeds, [*usable, *args.method], args.data, out, args.n_jobs)
    report(out, args.part)


if __name__ == "__main__":
    main()
