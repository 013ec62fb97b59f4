"""Compare methods on a part of CIFAR-10: 9,500 noisy and 500 clean images, a small CNN, 6 epochs.

    python examples/benchmarks/cifar10.py --data DIR            # DIR: X_train.npy, y_train.npy, X_test.npy, y_test.npy
    python examples/benchmarks/cifar10.py --data DIR --report   # only write the table

Images are uint8 of shape (n, 32, 32, 3). Noise: asymmetric 0.4 (the four flips of `cifar10_noise`) and symmetric 0.4;
3 seeds ("EM, 11 trainings", its first version: 2). Each seed and noise has one warm-up with cross-entropy. It is the
method "cross-entropy", and its gold estimate is the initial T of all methods. Nothing is tuned. "oracle EM" uses
out-of-fold posteriors of the same network trained on the true labels. Each result is written immediately; a second call
adds missing results. This takes less than an hour on two cores.
"""

import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from shared import (
    META_STEP,
    RESULTS,
    add_row,
    confident_joint,
    markdown,
    out_of_fold,
    publish,
    read_rows,
    run_on_images,
    versions,
)
from sklearn.model_selection import train_test_split
from torch import nn

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
    em_transition_matrix,
    flip_labels,
    gold_transition_matrix,
    sampling_limit,
    transition_error,
)
from noisytransition.transition import cifar10_noise, symmetric_noise

ROWS = RESULTS / "cifar10.jsonl"
SEEDS = range(3)
NOISES = {"asymmetric-0.4": cifar10_noise(0.4), "symmetric-0.4": symmetric_noise(10, 0.4)}
NET = {
    "lr": 0.05,
    "optimizer": "sgd",
    "optimizer__momentum": 0.9,
    "optimizer__weight_decay": 1e-3,
    "batch_size": 128,
    "max_epochs": 6,
}


class CNN(nn.Sequential):
    """Network of three convolutions with batch normalisation, for images (n, 32, 32, 3), 0 to 255."""

    def __init__(self):
        blocks = [
            layer
            for n_in, n_out in ((3, 16), (16, 32), (32, 64))
            for layer in (nn.Conv2d(n_in, n_out, 3, stride=2, padding=1), nn.BatchNorm2d(n_out), nn.ReLU())
        ]
        super().__init__(_Scale(), *blocks, nn.Flatten(), nn.Linear(64 * 16, 10))


class _Scale(nn.Module):
    def forward(self, x):
        """Scale pixels to about -2 to 2, channels first."""
        return x.permute(0, 3, 1, 2) / 64 - 2


def split(y, seed):
    """Draw 9,500 noisy and 500 clean images, stratified by class."""
    rows, _ = train_test_split(np.arange(len(y)), train_size=10_000, stratify=y, random_state=seed)
    return train_test_split(rows, test_size=500, stratify=y[rows], random_state=seed)


def arrays(folder):
    """Return training images and labels, test images and labels."""
    X, y, X_test, y_test = (np.load(Path(folder) / f"{n}.npy") for n in ("X_train", "y_train", "X_test", "y_test"))
    return X, y.astype(int), X_test, y_test.astype(int)


def load(folder, noise, seed):
    """Return noisy images, true labels, noisy labels, clean images and labels, test images and labels."""
    X, y, X_test, y_test = arrays(folder)
    noisy, clean = split(y, seed)
    return (
        X[noisy],
        y[noisy],
        flip_labels(y[noisy], NOISES[noise], random_state=seed),
        X[clean],
        y[clean],
        X_test,
        y_test,
    )


def run(folder, noise, seed):
    """Run all methods on one noise and seed; each result is written immediately."""
    X, y_true, y, X_clean, y_clean, X_test, y_test = load(folder, noise, seed)
    params, T = {"module": CNN, "random_state": seed, **NET}, NOISES[noise]
    done = {row["method"] for row in read_rows(ROWS) if (row["noise"], row["seed"]) == (noise, seed)}

    def write(method, matrix=None, clf=None, **more):
        row = {"noise": noise, "seed": seed, "method": method, **more}
        if matrix is not None:
            row["transition_error"] = transition_error(T, matrix)
        if clf is not None:
            row["accuracy"] = float(clf.score(X_test, y_test))
        add_row(ROWS, row)
        print(row, flush=True)

    started = time.perf_counter()
    warm_up = CrossEntropyClassifier(**params).fit(X, y)
    gold = gold_transition_matrix(warm_up.predict_proba(X_clean), y_clean)
    if "cross-entropy" not in done:
        write("cross-entropy", clf=warm_up, seconds=round(time.perf_counter() - started, 1))
        write("identity", np.eye(10))
        write("sampling limit", transition_error=sampling_limit(T, np.bincount(y_true)))
    if "confident joint" not in done:
        write("confident joint", confident_joint(out_of_fold(params, X, y), y))
    if "oracle EM" not in done:
        write("oracle EM", em_transition_matrix(out_of_fold(params, X, y_true), y))
    for name, clf in {
        "fine-tuning": FineTuningClassifier(fine_tuning_epochs=6, **params),
        "GLC": GLCClassifier(transition_init=gold, **params),
        "true T": GLCClassifier(transition_init=T, **params),
        "meta-gradient": MetaTransitionClassifier.as_published(transition_init=gold, **META_STEP, **params),
        "EM": EMTransitionClassifier(transition_init=gold, **params),
    }.items():
        if name not in done:
            started = time.perf_counter()
            clf.fit(X, y, meta=(X_clean, y_clean))
            seconds = round(time.perf_counter() - started, 1)
            write(name, getattr(clf, "transition_matrix_", None), clf, seconds=seconds)


def report():
    """Write and print the table."""
    rows = read_rows(ROWS)
    parts = [
        "# A part of CIFAR-10",
        f"Value of each seed, last epoch; seconds on a busy machine. {versions()}. See `cifar10.py`.",
    ]
    for noise in NOISES:
        lines = []
        for method in dict.fromkeys(row["method"] for row in rows):
            of_method = [row for row in rows if (row["noise"], row["method"]) == (noise, method)]
            columns = [[r[k] for r in of_method if k in r] for k in ("transition_error", "accuracy", "seconds")]
            shown = [", ".join(f"{v:.3f}" if k < 2 else f"{v:.0f}" for v in c) for k, c in enumerate(columns)]
            lines.append((method, shown))
        parts.append(f"## {noise}\n\n" + markdown(["error of T", "accuracy", "seconds"], lines))
    publish("cifar10.md", parts)


if __name__ == "__main__":
    run_on_images(__doc__, run, [(noise, seed) for seed in SEEDS for noise in NOISES], report)
