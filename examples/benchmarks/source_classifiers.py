"""Compare classifiers trained on the labels of all sources and on the majority label.

    python examples/benchmarks/source_classifiers.py [--data DIR]        # a second call adds missing results
    python examples/benchmarks/source_classifiers.py --report            # only write the page

The measure is test accuracy. "frequent" is trained on the most frequent label of each sample, "all" on a table with one
column for each source; both use the same 90 or 100 random verified samples. "verified" is the estimator on these
samples only. Problems: digits, labelled by one, two or three of six people with accuracies of 0.94 to 0.46; with
--data, LabelMe (59 people, `labelme_*` of fmenat/PyLearningCrowds).
"""

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from shared import (
    RESULTS,
    markdown,
    paired_difference,
    points,
    publish,
    read_rows,
    run_all,
    spread,
    versions,
    write_csv,
)
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, TransitionClassifierCV, flip_labels
from noisytransition.transition import symmetric_noise

OUT = RESULTS / "source_classifiers.jsonl"
SEEDS = 5
WRONG = {"Ann": 0.07, "Ben": 0.2, "Eve": 0.3, "Joe": 0.4, "Kim": 0.5, "Pat": 0.6}


def digits(rng, data, asked):
    """Return 1,200 digits with labels of `asked` of six people, and 597 test samples."""
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(y))
    X, y = X[order] / 16, y[order]
    train = y[:1200]
    noise = {who: symmetric_noise(10, share) for who, share in WRONG.items()}
    table = pd.DataFrame({who: flip_labels(train, T, random_state=rng) for who, T in noise.items()})
    return X[:1200], train, table.where(rng.random(table.shape).argsort(axis=1) < asked), X[1200:], y[1200:]


def labelme(rng, data):
    """Return 1,000 photographs with labels of 59 people, and 1,188 test photographs."""
    X, X_test = (np.load(data / f"labelme_LabelMe_VGG_avg_{part}.npy") for part in ("train", "test"))
    y, y_test = (np.loadtxt(data / f"labelme_LabelMe_Z_{part}.txt", dtype=int) for part in ("train", "test"))
    answers = np.loadtxt(data / "labelme_answers.txt", dtype=int)
    table = pd.DataFrame(np.where(answers >= 0, answers, np.nan)).add_prefix("person ")
    return X.reshape(len(X), -1), y, table, X_test.reshape(len(X_test), -1), y_test


PROBLEMS = {
    "digits, one of six people": (lambda rng, data: digits(rng, data, 1), 90, "mlp"),
    "digits, two of six people": (lambda rng, data: digits(rng, data, 2), 90, "mlp"),
    "digits, three of six people": (lambda rng, data: digits(rng, data, 3), 90, "mlp"),
    "LabelMe, 59 people": (labelme, 100, "linear"),
}
ESTIMATORS = {
    "logistic regression": LogisticRegression(C=0.1, max_iter=1000),
    "forest": RandomForestClassifier(200, random_state=0),
}


def run(problem, name, seed, data):
    """Return the accuracies of one estimator in one split."""
    warnings.simplefilter("ignore")
    make, n_verified, module = PROBLEMS[problem]
    rng = np.random.default_rng(seed)
    X, y, table, X_test, y_test = make(rng, data)
    verified = rng.choice(len(y), n_verified, replace=False)
    frequent = pd.DataFrame({"label": table.mode(axis=1)[0]})
    for labels in (table, frequent):
        labels["verified"] = pd.Series(y[verified], index=verified)
    if name == "EM's network":
        plain = CrossEntropyClassifier(module, random_state=seed)
        ours = EMTransitionClassifier(module, random_state=seed)
    else:
        plain = ESTIMATORS[name]
        ours = TransitionClassifierCV(plain, random_state=seed)
    rest = np.setdiff1d(np.arange(len(y)), verified)
    row = {"problem": problem, "estimator": name, "seed": seed}
    row["verified"] = plain.fit(X[verified], y[verified]).score(X_test, y_test)
    row["frequent"] = ours.fit(X, frequent).score(X_test, y_test)
    row["frequent_labels"] = float(np.mean(frequent["label"].to_numpy()[rest] == y[rest]))
    model = ours.fit(X, table).noise_model_
    row["all"] = ours.score(X_test, y_test)
    row["labels"] = float(np.mean(model.classes_[model.posterior_of_fit().argmax(axis=1)] == y[rest]))
    return row


def report(rows):
    """Write the page: mean accuracies, and gains over the most frequent label with 95 % intervals."""
    lines = []
    for problem in PROBLEMS:
        for name in ["EM's network", *ESTIMATORS]:
            own = [row for row in rows if (row["problem"], row["estimator"]) == (problem, name)]
            values = {key: [row[key] for row in own] for key in ("verified", "frequent", "all")}
            if own:
                mean, low, high, _ = paired_difference(values["all"], values["frequent"])
                gain = points({"mean": mean, "low": low, "high": high})
                labels = [f"{np.mean([row[key] for row in own]):.3f}" for key in ("frequent_labels", "labels")]
                lines.append((f"{problem}; {name}", [*map(spread, values.values()), gain, *labels]))
    heads = ["verified only", "most frequent label", "all labels", "gain, points"]
    heads += ["correct labels: most frequent", "correct labels: posterior"]
    about = f"Test accuracy, mean ± standard deviation over {SEEDS} seeds. Gains of all labels over the most frequent "
    about += "label have paired 95 % intervals."
    write_csv(RESULTS / "source_classifiers.csv", heads, lines, corner="data; classifier")
    publish(
        "source_classifiers.md", ["# Classifiers trained on labels of several sources", about, markdown(heads, lines)]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with labelme_*")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--report", action="store_true", help="only write the table of the existing results")
    args = parser.parse_args()
    done = {(row["problem"], row["estimator"], row["seed"]) for row in read_rows(OUT)}
    todo = [
        (problem, name, seed, args.data)
        for seed in range(SEEDS)
        for problem in PROBLEMS
        for name in ["EM's network", *ESTIMATORS]
        if (problem, name, seed) not in done and not args.report and (args.data or not problem.startswith("LabelMe"))
    ]
    print(versions())
    run_all(run, todo, OUT, args.jobs)
    report(read_rows(OUT))
