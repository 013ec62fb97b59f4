"""Compare EM with and without folds on 10,000 and 20,000 images of CIFAR-10, with 500 clean images.

    python examples/benchmarks/cv_none.py --data DIR            # DIR as in cifar10.py
    python examples/benchmarks/cv_none.py --data DIR --report   # only write the table

Asymmetric noise 0.4, the CNN with batch normalisation of `cifar10.py`, 8 epochs with a cosine rate, 5 seeds. EM has the
parameters `PLAIN`: with folds it trains five networks, with ``cv=None`` three. The held-out parts (a third of the noisy
and half of the clean images) and the initial T were selected by errors of T on seeds 0 and 1 (not 2 to 4)
and on cells of `em_transition.py`. Each result is written immediately; a second call adds missing results.
"""

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from cifar10 import CNN, NET, arrays
from shared import PLAIN, RESULTS, add_row, markdown, publish, read_rows, run_on_images, spread, versions
from sklearn.model_selection import train_test_split
from skorch.callbacks import LRScheduler

from noisytransition import EMTransitionClassifier, FineTuningClassifier, flip_labels, sampling_limit, transition_error
from noisytransition.transition import cifar10_noise

ROWS = RESULTS / "cv_none.jsonl"
SEEDS, SIZES, N_CLEAN, T = range(5), (10_000, 20_000), 500, cifar10_noise(0.4)
METHODS = {
    "fine-tuning": FineTuningClassifier,
    "EM, folds": lambda **params: EMTransitionClassifier(**PLAIN, **params),
    "EM, cv=None": lambda **params: EMTransitionClassifier(cv=None, **PLAIN, **params),
}


def run(folder, n, seed):
    """Run all methods on one subset; each result is written immediately."""
    X, y, X_test, y_test = arrays(folder)
    rows, _ = train_test_split(np.arange(len(y)), train_size=n + N_CLEAN, stratify=y, random_state=seed)
    noisy, clean = train_test_split(rows, test_size=N_CLEAN, stratify=y[rows], random_state=seed)
    y_noisy = flip_labels(y[noisy], T, random_state=seed)
    schedule = LRScheduler("CosineAnnealingLR", T_max=8)
    params = {**NET, "module": CNN, "max_epochs": 8, "callbacks": [schedule], "random_state": seed}
    done = {row["method"] for row in read_rows(ROWS) if (row["n"], row["seed"]) == (n, seed)}
    for name, make in METHODS.items():
        if name in done:
            continue
        started = time.perf_counter()
        clf = make(**params).fit(X[noisy], y_noisy, meta=(X[clean], y[clean]))
        seconds = time.perf_counter() - started
        row = {"n": n, "seed": seed, "method": name, "trainings": len(clf.histories_), "seconds": round(seconds, 1)}
        row["accuracy"] = float(clf.score(X_test, y_test))
        if hasattr(clf, "transition_matrix_"):
            row["error"] = transition_error(T, clf.transition_matrix_)
        add_row(ROWS, row | {"limit": sampling_limit(T, np.bincount(y[noisy]))})
        print(row, flush=True)


def report():
    """Write and print the table."""
    rows = read_rows(ROWS)
    lines = []
    for n in SIZES:
        for method in METHODS:
            here = [row for row in rows if (row["n"], row["method"]) == (n, method)]
            error = spread([row["error"] for row in here]) if "error" in here[0] else ""
            limit, accuracy = here[0]["limit"], spread([row["accuracy"] for row in here])
            seconds = f"{np.mean([row['seconds'] for row in here]):.0f}"
            lines.append(
                (f"{n:,} images, {method}", [str(here[0]["trainings"]), error, f"{limit:.3f}", accuracy, seconds])
            )
    parts = [
        "# EM without folds",
        f"Mean ± standard deviation over {len({row['seed'] for row in rows})} seeds, last epoch; seconds on one "
        f"core of a busy machine. The error of the identity is {transition_error(T, np.eye(10)):.2f}. {versions()}. "
        "See `cv_none.py`.",
        markdown(["trainings", "error of T", "sampling limit", "accuracy", "seconds"], lines),
    ]
    publish("cv_none.md", parts)


if __name__ == "__main__":
    run_on_images(__doc__, run, [(n, seed) for seed in SEEDS for n in SIZES], report)
