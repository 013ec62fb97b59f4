"""How long EM trains its last network under a schedule: what evidence says of it, and what held-out labels do.

    PYTHONPATH=. python examples/benchmarks/last_training.py --data DIR            # DIR as in cifar10.py
    PYTHONPATH=. python examples/benchmarks/last_training.py --data DIR --report   # the table of what is there

10,000 images of CIFAR-10 with symmetric noise 0.4, 200 clean ones, a ResNet-9 of a quarter of the width that is trained
for 30 epochs as in the scale `gpu` of examples/paper/run.py: the step falls linearly to zero. It is the training of
``EMTransitionClassifier(cv=None)`` without a third of the noisy images, which are predicted after eight numbers of
epochs; the last training is left out. Their true labels are used to measure alone. Results are written as they come.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from cifar10 import arrays
from shared import (
    RESULTS,
    add_row,
    crop_flip_and_cut_out,
    markdown,
    publish,
    read_rows,
    run_on_images,
    spread,
    versions,
    write_csv,
)
from skorch.callbacks import LRScheduler
from torch.optim.lr_scheduler import PolynomialLR

from examples.paper.networks import NarrowResNet9
from examples.paper.tables import SGD
from noisytransition import EMTransitionClassifier, em_transition_matrix, flip_labels
from noisytransition.classifiers._cross_fitting import right
from noisytransition.transition import symmetric_noise

ROWS = RESULTS / "last_training.jsonl"
SEEDS, N, N_CLEAN, EPOCHS = range(3), 10_000, 200, 30


class Found(Exception):
    """T is found, and the last training would begin."""


class Watched(EMTransitionClassifier):
    """EM that ends before its last training, with the posteriors behind T."""

    def _keep(self, run, start, T, candidates):
        raise Found(run, T, candidates)


def run(folder, seed):
    """Train once, unless the line of this seed is there."""
    if any(row["seed"] == seed for row in read_rows(ROWS)):
        return
    X, y, _, _ = arrays(folder)
    rows = np.random.default_rng(seed).permutation(len(y))
    clean, noisy = rows[:N_CLEAN], rows[N_CLEAN : N_CLEAN + N]
    y_noisy = flip_labels(y[noisy], symmetric_noise(10, 0.4), random_state=seed)
    schedule = LRScheduler(PolynomialLR, total_iters=EPOCHS)
    params = SGD | {"module__n_classes": 10, "max_epochs": EPOCHS, "callbacks": [schedule]}
    clf = Watched(NarrowResNet9, cv=None, batch_transform=crop_flip_and_cut_out, random_state=seed, **params)
    try:
        clf.fit(X[noisy], y_noisy, meta=(X[clean], y[clean]))
    except Found as found:
        row = {"seed": seed} | measures(*found.args, y[noisy])
    add_row(ROWS, row)
    print(row, flush=True)


def measures(run, T, found, y):
    """Of each number of epochs: evidence, how many held-out rows the network is right on, calibrated too, and gain."""
    true = y[found[-1].rows[0]]
    rights = right(found, T.transition_matrix, run)
    gains = [rights[-1] - of for of in rights]
    return {
        "epochs": [c.epochs for c in found],
        "log_evidence": T.evidence["log_evidence"].tolist(),
        "right": [float((c.posteriors[0].argmax(axis=1) == true).mean()) for c in found],
        "calibrated": [float((calibrated(c, run).argmax(axis=1) == true).mean()) for c in found],
        "gain": [float(gain.mean()) for gain in gains],
        "standard_error": [float(gain.std() / len(gain) ** 0.5) for gain in gains],
    }


def calibrated(candidate, run):
    """Posteriors of the noisy rows, calibrated as for T."""
    (proba, proba_meta), (y, y_meta) = candidate.posteriors, candidate.labels(run)
    found = em_transition_matrix(proba, y, proba_meta=proba_meta, y_meta=y_meta, full_output=True)
    return found.calibration(proba)


def report():
    """Write and print the table."""
    rows = read_rows(ROWS)
    columns = ("log_evidence", "right", "calibrated", "gain", "standard_error")
    at = {name: np.array([row[name] for row in rows]) for name in columns}
    lines = []
    for i, epochs in enumerate(rows[0]["epochs"]):
        gain = at["right"][:, -1] - at["right"][:, i]
        evidence = at["log_evidence"][:, i] - at["log_evidence"][:, -1]
        values = at["right"][:, i], at["calibrated"][:, i], gain, at["gain"][:, i]
        error = f"{at['standard_error'][:, i].mean():.3f}"
        lines.append((f"{epochs} epochs", [f"{evidence.mean():.0f}", *map(spread, values), error]))
    heads = [
        "log evidence beside the last",
        "accuracy",
        "calibrated",
        "gain of the last",
        "estimated",
        "standard error",
    ]
    write_csv(RESULTS / "last_training.csv", heads, lines)
    publish(
        "last_training.md",
        [
            "# The end of a schedule",
            f"Held-out images, mean ± standard deviation over {len(rows)} seeds. Accuracy of the network, of its "
            "calibrated posteriors, gain in accuracy after the last epoch, what noisy labels and T make of it, and its "
            f"standard error. {versions()}. See `last_training.py`.",
            markdown(heads, lines),
        ],
    )


if __name__ == "__main__":
    run_on_images(__doc__, run, [(seed,) for seed in SEEDS], report)
