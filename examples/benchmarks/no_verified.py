"""Compare methods on labels that nobody verified: the small problems of the zoo without their clean samples.

    pip install ".[benchmarks,features]"
    python examples/benchmarks/no_verified.py                  # the design half
    python examples/benchmarks/no_verified.py --report         # only write the page

Networks are those of each problem, at the library's defaults. "CV" is `TransitionClassifierCV` of scikit-learn's
logistic regression; it is compared with logistic regression on the noisy labels and with cleanlab's `CleanLearning` of
it. "fifty verified": 50 samples drawn at random keep their label and have a true one, too; logistic regression is also
trained on these alone. "ranking" is the average precision of wrong labels among samples without a true label, by
out-of-fold label quality (Forward: not out-of-fold; cleanlab: its own), three seeds.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import torch
from shared import RESULTS, markdown, publish, read_rows, run_all, spread, versions, write_csv
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from zoo.catalogue import of_half
from zoo.run import available

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    ForwardClassifier,
    GCEClassifier,
    TransitionClassifierCV,
    transition_error,
)

ROWS = RESULTS / "no_verified.jsonl"
SEEDS = range(3)
NETWORKS = {
    "cross-entropy": CrossEntropyClassifier,
    "GCE": GCEClassifier,
    "Forward": ForwardClassifier,
    "EM": EMTransitionClassifier,
}
MEASURES = ("accuracy", "error of T", "ranking")


def logistic_regression(seed):
    """Return scikit-learn's classifier."""
    return LogisticRegression(max_iter=1000)


def cleanlab(seed):
    """Return cleanlab's meta-estimator."""
    from cleanlab.classification import CleanLearning

    serial = {"n_jobs": 1}  # its processes fail within joblib's
    return CleanLearning(LogisticRegression(max_iter=1000), seed=seed, find_label_issues_kwargs=serial)


FIFTY = ", fifty verified"
TABULAR = {
    "CV": lambda seed: TransitionClassifierCV(LogisticRegression(max_iter=1000), random_state=seed),
    "CleanLearning": cleanlab,
    "LogisticRegression": logistic_regression,
}


def run(problem, seed):
    """Return the measures of each method on one problem."""
    torch.set_num_threads(1)
    data, row = problem.make(seed), {"problem": problem.name, "kind": problem.kind, "seed": seed}
    flat = [X if hasattr(X, "tocsr") else X.reshape(len(X), -1) for X in (data.X, data.X_test)]
    verified = np.random.default_rng(seed).permutation(len(data.y)) < 50
    true = np.where(verified, data.y_true, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, cls in NETWORKS.items():
            clf = cls(**problem.params(data), random_state=seed)
            row[name] = measures(clf.fit(data.X, data.y), data, data.X, data.X_test, ~verified)
        for name, make in TABULAR.items():
            row[name] = measures(make(seed).fit(flat[0], data.y), data, *flat, ~verified)
        clf = EMTransitionClassifier(**problem.params(data), random_state=seed)
        clf.fit(data.X, data.y, y_verified=true)
        row["EM" + FIFTY] = measures(clf, data, data.X, data.X_test, ~verified)
        clf = TABULAR["CV"](seed).fit(flat[0], data.y, y_verified=true)
        row["CV" + FIFTY] = measures(clf, data, *flat, ~verified)
        clf = logistic_regression(seed).fit(flat[0][verified], data.y_true[verified])
        row["LogisticRegression" + FIFTY] = measures(clf, data, *flat, ~verified)
    return row


def measures(clf, data, X, X_test, judged):
    """Return the accuracy, error of T and ranking of wrong labels of a fitted classifier, where it has them."""
    found = {"accuracy": float((clf.predict(X_test) == data.y_test).mean())}
    wrong = data.y != data.y_true
    quality = None
    if hasattr(clf, "oof_proba_"):
        quality = clf.label_quality()
    elif hasattr(clf, "transition_matrix_"):
        quality = clf.label_quality(X, data.y)
    elif hasattr(clf, "get_label_issues"):
        quality = clf.get_label_issues().label_quality.to_numpy()
    if hasattr(clf, "transition_matrix_"):
        found["error of T"] = transition_error(data.transition_matrix, clf.transition_matrix_)
    if quality is not None and wrong[judged].any():
        found["ranking"] = float(average_precision_score(wrong[judged], 1 - np.asarray(quality)[judged]))
    return found


def report(rows):
    """Write the page: means over problems of each kind of noise."""
    parts = [f"# No verified samples, design half of the zoo\n\n{' '.join(__doc__.split(chr(10) * 2)[2].split())}"]
    parts.append(f"Mean ± standard deviation over seeds of the mean over problems. {versions()}.")
    for kind in ("all", *dict.fromkeys(row["kind"] for row in rows)):
        here = [row for row in rows if kind in ("all", row["kind"])]
        n = len({row["problem"] for row in here})
        methods = [*NETWORKS, *TABULAR, *(name + FIFTY for name in ("EM", "CV", "LogisticRegression"))]
        lines = [(name, [_mean(here, name, m) for m in MEASURES]) for name in methods]
        parts += [f"## {kind.capitalize()}: {n} problems", markdown(MEASURES, lines)]
        if kind == "all":
            write_csv(RESULTS / "no_verified.csv", MEASURES, lines, corner="method")
    publish("no_verified.md", parts)


def _mean(rows, name, measure):
    seeds = sorted({row["seed"] for row in rows})
    values = [[r[name][measure] for r in rows if r["seed"] == seed and measure in r[name]] for seed in seeds]
    return spread([np.mean(of_seed) for of_seed in values if of_seed]) if any(values) else ""


def main():
    """Run the missing fits, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="only write the page")
    args = parser.parse_args()
    done = {(row["problem"], row["seed"]) for row in read_rows(ROWS)}
    if not args.report:
        problems = available(of_half("design"), folder=None)
        run_all(run, [(p, s) for s in SEEDS for p in problems if (p.name, s) not in done], ROWS, args.jobs)
    report(read_rows(ROWS))


if __name__ == "__main__":
    main()
