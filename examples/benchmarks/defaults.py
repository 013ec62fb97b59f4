"""Compare CrossEntropyClassifier with scikit-learn's classifiers on clean labels, all with default parameters.

    pip install ".[benchmarks,features]"
    python examples/benchmarks/defaults.py                       # the zoo's design half
    python examples/benchmarks/defaults.py --half check          # the check half, at the end
    python examples/benchmarks/defaults.py --data DIR            # also the problems with real noisy labels
    python examples/benchmarks/defaults.py --report              # only write the page

Samples and true labels are from the problems of the zoo, scaled or not, dense or sparse; their networks and noise are
not used. Goal: compared with the better of LogisticRegression and MLPClassifier, `CrossEntropyClassifier()` is at most
one point less accurate on average, and at most three points in each problem.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from shared import RESULTS, markdown, publish, read_rows, run_all, versions
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from zoo.catalogue import PROBLEMS, of_half
from zoo.run import available

from noisytransition import CrossEntropyClassifier

ROWS = RESULTS / "defaults.jsonl"
OURS = {
    "mlp": lambda seed: CrossEntropyClassifier(random_state=seed),
    "linear": lambda seed: CrossEntropyClassifier("linear", random_state=seed),
}
THEIRS = {
    "LogisticRegression": lambda seed: LogisticRegression(),
    "MLPClassifier": lambda seed: MLPClassifier(random_state=seed),
}


def run(name, seed, folder):
    """Return the accuracy and seconds of each classifier on one problem and seed."""
    torch.set_num_threads(1)
    (problem,) = (p for p in PROBLEMS if p.name == name)
    data, row = problem.make(seed, folder), {"problem": name, "seed": seed}
    X, X_test = (rows.reshape(rows.shape[0], -1) for rows in (data.X, data.X_test))
    for method, make in (OURS | THEIRS).items():
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf = make(seed).fit(X, data.y_true)
        seconds = time.process_time() - started
        row[method] = {"accuracy": float(clf.score(X_test, data.y_test)), "seconds": round(seconds, 2)}
    return row


def report():
    """Write the page: means over seeds of each problem, and differences to the better of scikit-learn's classifiers."""
    parts = [
        "# Defaults on clean labels",
        "Mean test accuracy of classifiers with default parameters, trained on the true labels of the "
        "problems of the zoo; differences in points. The better of LogisticRegression and MLPClassifier has the higher "
        "mean over seeds. "
        f"{versions()}. See `defaults.py`.",
    ]
    for half in ("design", "check"):
        names = {problem.name for problem in of_half(half)}
        rows = [row for row in read_rows(ROWS) if row["problem"] in names]
        if rows:
            parts += _of_half(half, rows)
    publish("defaults.md", parts)


def _of_half(half, rows):
    means = {
        name: _means([r for r in rows if r["problem"] == name]) for name in dict.fromkeys(r["problem"] for r in rows)
    }
    best = {name: max(of[k]["accuracy"] for k in THEIRS) for name, of in means.items()}
    apart = {k: [100 * (of[k]["accuracy"] - best[name]) for name, of in means.items()] for k in OURS}
    linear = [100 * (of["linear"]["accuracy"] - of["LogisticRegression"]["accuracy"]) for of in means.values()]
    seconds = {k: np.mean([of[k]["seconds"] for of in means.values()]) for k in OURS | THEIRS}
    lines = [
        (name, [f"{of[k]['accuracy']:.3f}" for k in OURS | THEIRS] + [f"{apart[k][i]:+.1f}" for k in OURS])
        for i, (name, of) in enumerate(means.items())
    ]
    return [
        f"## {half.capitalize()} half: {len(means)} problems, {len({r['seed'] for r in rows})} seeds",
        f"mlp - better: mean {np.mean(apart['mlp']):+.2f}, minimum {min(apart['mlp']):+.1f}, below -3 in "
        f"{sum(d < -3 for d in apart['mlp'])} problems. linear - LogisticRegression: mean {np.mean(linear):+.2f}, "
        f"minimum {min(linear):+.1f}. Seconds per fit: {', '.join(f'{k} {s:.1f}' for k, s in seconds.items())}.",
        markdown([*OURS, *THEIRS, "mlp - better", "linear - better"], lines),
    ]


def _means(rows):
    return {
        method: {key: np.mean([row[method][key] for row in rows]) for key in ("accuracy", "seconds")}
        for method in OURS | THEIRS
    }


def main():
    """Add missing results and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=["design", "check", "all"], default="design", help="half of the zoo")
    parser.add_argument("--data", type=Path, help="folder of the data sets with real noisy labels")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--n-jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--report", action="store_true", help="only write the page of the existing results")
    args = parser.parse_args()
    if not args.report:
        done = {(row["problem"], row["seed"]) for row in read_rows(ROWS)}
        problems = available(of_half(args.half), args.data)
        todo = [(p.name, seed, args.data) for seed in range(args.seeds) for p in problems]
        run_all(run, [job for job in todo if job[:2] not in done], ROWS, args.n_jobs)
    report()


if __name__ == "__main__":
    main()
