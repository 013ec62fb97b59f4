"""Seconds of an epoch of EM's training beside plain cross-entropy, as ratios measured side by side.

    python examples/benchmarks/cost.py

Each net takes turns with itself: one epoch of plain training, one of EM's (clean batches of a quarter of the noisy
ones, T counted in every step), 15 times; the median of the ratios counts. One thread.
"""

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from shared import markdown, publish, versions
from torch import nn

from noisytransition.losses import EMLoss
from noisytransition.nets import MLP, CleanBatches, JointNet, NoisyLabelNet, Rows
from noisytransition.transition import pair_noise

TURNS = 15


def cnn(channels):
    """A small convolutional network for images of 3 x 32 x 32."""
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, stride=2, padding=1),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
        nn.BatchNorm2d(2 * channels),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2 * channels * 64, 10),
    )


# name: module, shape of a row, rows, batch size
CASES = {
    "MLP of 64 units, 64 features, batches of 64": (MLP(64, 10, hidden=64), (64,), 6400, 64),
    "MLP of 512 and 512 units, 64 features, batches of 128": (MLP(64, 10, hidden=(512, 512)), (64,), 6400, 128),
    "CNN of 16 and 32 channels, images of 32 x 32, batches of 128": (cnn(16), (3, 32, 32), 1280, 128),
}


def ratio(module, shape, n, batch_size):
    """Median and quartiles of the ratios, and milliseconds of a plain step."""
    rng = np.random.default_rng(0)
    noisy, clean = (
        Rows(rng.normal(size=(k, *shape)).astype(np.float32), rng.integers(10, size=k)) for k in (n, n // 20)
    )
    shared = {"classes": np.arange(10), "lr": 0.01, "batch_size": batch_size, "verbose": 0}
    joint = JointNet(
        module,
        criterion=EMLoss,
        criterion__transition_matrix=pair_noise(10, 0.3),
        criterion__rate=0.05,
        clean_batches=CleanBatches(clean, batch_size // 4),
        **shared,
    )
    nets = [NoisyLabelNet(module, **shared).initialize(), joint.initialize()]
    times = np.array([[seconds(net, noisy) for net in nets] for _ in range(TURNS + 1)])[1:]  # the first warms up
    quotients = times[:, 1] / times[:, 0]
    return np.median(quotients), np.percentile(quotients, [25, 75]), 1e3 * np.median(times[:, 0]) * batch_size / n


def seconds(net, rows):
    """Time of one epoch."""
    started = time.perf_counter()
    net.partial_fit(rows, rows.y, epochs=1)
    return time.perf_counter() - started


def main():
    """Measure, write and print."""
    torch.set_num_threads(1)
    lines = []
    for name, case in CASES.items():
        middle, (low, high), step = ratio(*case)
        lines.append((name, [f"{middle:.2f} [{low:.2f}, {high:.2f}]", f"{step:.2f}"]))
    parts = [
        "# Cost of EM's training",
        f"An epoch of EM as a multiple of a plain epoch; median [quartiles] of {TURNS} turns. See `cost.py`. "
        f"{versions()}, one thread.",
        markdown(["EM / plain", "milliseconds of a plain step"], lines),
    ]
    publish("cost.md", parts)


if __name__ == "__main__":
    main()
