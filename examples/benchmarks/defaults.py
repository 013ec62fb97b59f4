"""Cross-entropy and scikit-learn's classifiers on clean labels, all at their defaults.

    pip install ".[benchmarks]"
    python examples/benchmarks/defaults.py                       # the zoo's design half
    python examples/benchmarks/defaults.py --half check          # the check half, at the end
    python examples/benchmarks/defaults.py --data DIR            # and the problems with labels of people
    python examples/benchmarks/defaults.py --report              # the page of what is there

The rows are those of the zoo's problems, scaled or not, dense or sparse, with their true labels; a problem's own
network and noise are not used. The goal: `CrossEntropyClassifier()` is in the mean within a point of the better of
LogisticRegression and MLPClassifier, and in no problem more than three points below it.
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
    """Accuracy and seconds of each classifier on one problem and seed."""
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
    """Write the page: each half's problems with means over seeds, and how far below the better of theirs."""
    parts = [
        "# Defaults on clean labels",
        "Mean accuracy on test rows of classifiers at their defaults, trained on the true labels of the zoo's "
        "problems; differences are in points. The better of scikit-learn's two is taken by its mean over the seeds. "
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
        f"mlp less the better of theirs: {np.mean(apart['mlp']):+.2f} in the mean, {min(apart['mlp']):+.1f} at worst, "
        f"below -3 in {sum(d < -3 for d in apart['mlp'])}. linear less LogisticRegression: {np.mean(linear):+.2f}, "
        f"{min(linear):+.1f} at worst. Seconds a fit: {', '.join(f'{k} {s:.1f}' for k, s in seconds.items())}.",
        markdown([*OURS, *THEIRS, "mlp - better", "linear - better"], lines),
    ]


def _means(rows):
    return {
        method: {key: np.mean([row[method][key] for row in rows]) for key in ("accuracy", "seconds")}
        for method in OURS | THEIRS
    }


def main():
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=["design", "check", "all"], default="design")
    parser.add_argument("--data", type=Path, help="folder of the data with labels of people, rules and models")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="only write the page of what is there")
    args = parser.parse_args()
    if not args.report:
        done = {(row["problem"], row["seed"]) for row in read_rows(ROWS)}
        problems = available(of_half(args.half), args.data)
        todo = [(p.name, seed, args.data) for seed in range(args.seeds) for p in problems]
        run_all(run, [job for job in todo if job[:2] not in done], ROWS, args.n_jobs)
    report()


if __name__ == "__main__":
    main()
