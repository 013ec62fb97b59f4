"""Long trainings: accuracy of a small network after 10 and 90 epochs, with and without loss correction.

    python -m examples.paper.long_training --data-root DIR --jobs 2

3,000 images of CIFAR-10 with asymmetric noise 0.4 or human labels ("worse" of CIFAR-10N), 500 clean images, the small
CNN with SGD, a learning rate that decreases linearly, and no augmentation. "EM" selects the number of epochs by
out-of-fold samples.
"""

import time
import warnings

import numpy as np
import torch
from skorch.callbacks import Callback, LRScheduler
from torch.optim.lr_scheduler import PolynomialLR

from examples.benchmarks.shared import markdown, read_rows, run_all, spread
from examples.paper.data import LOADERS, folder_of, people_s_labels
from examples.paper.networks import SmallCNN
from examples.paper.run import RESULTS
from examples.paper.study import options, write_page
from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    GLCClassifier,
    count_transition_matrix,
    transition_error,
)
from noisytransition.transition import cifar10_noise

EPOCHS, SEEDS, WATCHED = (10, 90), range(3), (5, 10, 20, 30, 60)
OUT = RESULTS / "long_training.jsonl"
LABELS = ("asymmetric 0.4", "human")
SGD = {"lr": 0.05, "batch_size": 64, "optimizer": "sgd", "optimizer__momentum": 0.9, "optimizer__weight_decay": 5e-4}
# fine-tuning has the learning rate of the paper's last epochs, as in the other tables
METHODS = {
    "cross-entropy": lambda T, **p: CrossEntropyClassifier(**p),
    "fine-tuning": lambda T, **p: FineTuningClassifier(fine_tuning_lr=1e-3, **p),
    "GLC": lambda T, **p: GLCClassifier(**p),
    "true T": lambda T, **p: GLCClassifier(transition_init=T, **p),
    "EM": lambda T, **p: EMTransitionClassifier(**p),
}


class Watch(Callback):
    """Record test accuracies after the `WATCHED` epochs."""

    def __init__(self, data):
        self.data, self.seen = data, {}

    def on_epoch_end(self, net, **kwargs):
        """Predict the test images."""
        if len(net.history) in WATCHED:
            predicted = net.predict_proba(self.data.X_test).argmax(axis=1)
            self.seen[len(net.history)] = float((predicted == self.data.y_test).mean())


def load(labels, seed, root):
    """Load 3,000 noisy and 500 clean images."""
    noise = people_s_labels(root, "worse") if labels == "human" else cifar10_noise(0.4)
    folder = folder_of(root, "cifar10")
    data = LOADERS["cifar10"](folder, noise=noise, n_noisy=3000, n_clean=500, random_state=seed)
    if data.transition_matrix is None:
        data = data._replace(transition_matrix=count_transition_matrix(data.y_true, data.y, 10))
    return data


def run(labels, seed, epochs, name, root):
    """Fit a method and return its result row."""
    torch.set_num_threads(1)
    data, watch, started = load(labels, seed, root), None, time.perf_counter()
    callbacks = [("decay", LRScheduler(PolynomialLR, total_iters=epochs))]
    if name == "true T" and epochs == max(EPOCHS):
        watch = Watch(data)
        callbacks.append(("watch", watch))
    params = SGD | {"max_epochs": epochs, "callbacks": callbacks, "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = METHODS[name](data.transition_matrix, module=SmallCNN, module__n_classes=10, **params)
        clf.fit(data.X, data.y, meta=(data.X_clean, data.y_clean))
    row = {"labels": labels, "seed": seed, "epochs": epochs, "method": name}
    row |= {"accuracy": float(clf.score(data.X_test, data.y_test)), "seconds": round(time.perf_counter() - started, 1)}
    if hasattr(clf, "transition_matrix_"):
        row["transition_error"] = transition_error(data.transition_matrix, clf.transition_matrix_)
        row["identity"] = transition_error(data.transition_matrix, np.eye(10))
    if hasattr(clf, "n_epochs_"):
        row |= {"selected": clf.n_epochs_}
    return row | ({"during": watch.seen} if watch else {})


def main():
    """Run the missing fits and write the tables."""
    args = options(__doc__, features=False)
    done = {tuple(row[k] for k in ("labels", "seed", "epochs", "method")) for row in read_rows(OUT)}
    cells = [(labels, seed, n, name) for seed in SEEDS for labels in LABELS for n in EPOCHS for name in METHODS]
    run_all(run, [(*cell, args.data_root) for cell in cells if cell not in done], OUT, args.jobs)
    report(read_rows(OUT))


def report(rows):
    """Write a table of accuracies and errors of T for both kinds of labels."""
    parts = [f"# Long trainings\n\n{' '.join(__doc__.splitlines()[4:8])} Mean ± standard deviation over three seeds."]
    for labels in LABELS:
        lines = []
        for name in METHODS:
            mine = [row for row in rows if (row["labels"], row["method"]) == (labels, name)]
            of_epochs = [[row for row in mine if row["epochs"] == n] for n in EPOCHS]
            cells = [spread([row["accuracy"] for row in found]) for found in of_epochs]
            last = of_epochs[-1]
            cells.append(spread([row["transition_error"] for row in last]) if "transition_error" in last[0] else "")
            cells.append(", ".join(str(row["selected"]) for row in last) if "selected" in last[0] else "")
            lines.append((name, cells))
        heads = [*(f"{n} epochs" for n in EPOCHS), "error of T, 90 epochs", "selected epochs of 90"]
        identity = np.mean([row["identity"] for row in rows if row["labels"] == labels and "identity" in row])
        watched = [row["during"] for row in rows if row["labels"] == labels and "during" in row]
        during = "; ".join(f"{n} epochs {spread([seen[str(n)] for seen in watched])}" for n in WATCHED)
        text = f"True T during the training of 90 epochs: {during}. Error of the identity: {identity:.3f}."
        parts.append(f"## {labels[0].upper()}{labels[1:]} labels\n\n{markdown(heads, lines)}\n\n{text}")
    write_page(OUT, parts)


if __name__ == "__main__":
    from examples.paper.long_training import main

    main()
