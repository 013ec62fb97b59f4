"""Compare EM with two and three folds on 10,000 and 20,000 images of CIFAR-10, with 500 clean images.

    python examples/benchmarks/folds.py --data DIR            # DIR as in cifar10.py, with cifar10n_worse.npy
    python examples/benchmarks/folds.py --data DIR --report   # only write the table

Asymmetric noise 0.4, the CNN with batch normalisation of `cifar10.py`, 8 epochs with a cosine rate, 5 seeds. Nothing
was selected here, except for the initial T, by errors of T on seeds 0 and 1 (not 2 to 4).
"people": labels "worse" of CIFAR-10N instead, also GLC; T of seeds 0 to 2 was used to select the weight of clean
samples, so seeds are 3 to 7. Each result is written immediately; a second call adds missing results.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from cifar10 import CNN, NET, arrays
from shared import RESULTS, add_row, markdown, publish, read_rows, run_on_images, spread, versions
from sklearn.model_selection import train_test_split
from skorch.callbacks import LRScheduler

from noisytransition import (
    EMTransitionClassifier,
    FineTuningClassifier,
    GLCClassifier,
    count_transition_matrix,
    flip_labels,
    sampling_limit,
    transition_error,
)
from noisytransition.transition import cifar10_noise

ROWS = RESULTS / "folds.jsonl"
N_CLEAN, SIMULATED, PEOPLE = 500, "asymmetric 0.4", "people"
SEEDS = {(SIMULATED, 10_000): range(5), (SIMULATED, 20_000): range(5), (PEOPLE, 10_000): range(3, 8)}
METHODS = {
    "fine-tuning": FineTuningClassifier,
    "EM, two folds": lambda **params: EMTransitionClassifier(cv=2, **params),
    "EM": EMTransitionClassifier,
}
ALSO = {PEOPLE: {"GLC": GLCClassifier}}


def run(folder, labels, n, seed):
    """Run all methods on one subset; each result is written immediately."""
    X, y, X_test, y_test = arrays(folder)
    rows, _ = train_test_split(np.arange(len(y)), train_size=n + N_CLEAN, stratify=y, random_state=seed)
    noisy, clean = train_test_split(rows, test_size=N_CLEAN, stratify=y[rows], random_state=seed)
    if labels == PEOPLE:
        given = np.load(folder / "cifar10n_worse.npy")
        T, y_noisy = count_transition_matrix(y, given), given[noisy]
    else:
        T = cifar10_noise(0.4)
        y_noisy = flip_labels(y[noisy], T, random_state=seed)
    schedule = LRScheduler("CosineAnnealingLR", T_max=8)
    params = {**NET, "module": CNN, "max_epochs": 8, "callbacks": [schedule], "random_state": seed}
    key = {"labels": labels, "n": n, "seed": seed}
    done = {row["method"] for row in read_rows(ROWS) if key.items() <= row.items()}
    for name, make in (METHODS | ALSO.get(labels, {})).items():
        if name in done:
            continue
        clf = make(**params).fit(X[noisy], y_noisy, meta=(X[clean], y[clean]))
        row = key | {"method": name, "trainings": len(clf.histories_)}
        row["identity"] = transition_error(T, np.eye(10))
        row["accuracy"] = float(clf.score(X_test, y_test))
        if hasattr(clf, "transition_matrix_"):
            row["error"] = transition_error(T, clf.transition_matrix_)
        add_row(ROWS, row | {"limit": sampling_limit(T, np.bincount(y[noisy]))})
        print(row, flush=True)


def report():
    """Write and print the table."""
    rows = read_rows(ROWS)
    lines = []
    for labels, n in SEEDS:
        for method in METHODS | ALSO.get(labels, {}):
            here = [row for row in rows if (row["labels"], row["n"], row["method"]) == (labels, n, method)]
            error = spread([row["error"] for row in here]) if "error" in here[0] else ""
            limit, accuracy = here[0]["limit"], spread([row["accuracy"] for row in here])
            trainings, identity = str(here[0]["trainings"]), f"{here[0]['identity']:.2f}"
            cells = [trainings, error, identity, f"{limit:.3f}", accuracy]
            lines.append((f"{n:,} images, {labels}, {method}", cells))
    parts = [
        "# EM with two and three folds",
        f"Mean ± standard deviation over 5 seeds, last epoch. {versions()}. See `folds.py`.",
        markdown(["trainings", "error of T", "identity", "sampling limit", "accuracy"], lines),
    ]
    publish("folds.md", parts)


if __name__ == "__main__":
    run_on_images(__doc__, run, [(*cell, seed) for cell, seeds in SEEDS.items() for seed in seeds], report)
