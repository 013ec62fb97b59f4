"""Train one network in several processes; each process gets a part of every batch.

    torchrun --nproc-per-node 2 examples/distributed_training.py
    torchrun --nproc-per-node 4 examples/distributed_training.py --device cuda

With ``--device cuda`` each process uses its own GPU. To train on several hosts, start the script on each of them with
``torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint host:29400``.

Data: scikit-learn's digits; 40 % of the samples of some classes are mislabelled; 100 samples have verified labels.
"""

import argparse
import os

import numpy as np
import torch
import torch.distributed as dist
from data_parallel import data_parallel
from sklearn.datasets import load_digits
from torch import nn

from noisytransition import MetaTransitionClassifier, flip_labels, transition_error
from noisytransition.transition import digits_noise


class SmallNet(nn.Sequential):
    """A convolution and two linear layers, with GroupNorm: batch normalisation would use only a part of the batch."""

    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.GroupNorm(4, 16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(256, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )


def load():
    """Load all samples; every process loads the same samples with the same noise."""
    X, y = load_digits(return_X_y=True)
    X, T, test = (X / 16).astype(np.float32).reshape(-1, 1, 8, 8), digits_noise(0.4), np.arange(len(y)) % 4 == 0
    verified = np.arange((~test).sum()) < 100
    y_noisy = flip_labels(y[~test], T, random_state=0)
    return (X[~test], y_noisy), {"y_verified": np.where(verified, y[~test], -1)}, (X[test], y[test]), T


def main():
    """Train in all processes, then in one process, and compare the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--epochs", type=int, default=15)
    args = parser.parse_args()
    if not dist.is_torchelastic_launched():
        parser.error("start this script with: torchrun --nproc-per-node 2 examples/distributed_training.py")
    device = "cpu"
    if args.device == "cuda":
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if args.device == "cuda" else "gloo")

    rows, clean, (X_test, y_test), T = load()
    params = {"max_epochs": args.epochs, "device": device, "random_state": 0, "verbose": 1}
    clf = MetaTransitionClassifier(SmallNet, **params)
    with data_parallel():
        clf.fit(*rows, **clean)  # in every process
    rank, size = dist.get_rank(), dist.get_world_size()
    dist.destroy_process_group()
    if rank == 0:  # all processes have the same classifier
        print(f"{size} processes: accuracy {clf.score(X_test, y_test):.3f}", end=", ")
        print(f"error of T {transition_error(T, clf.transition_matrix_):.3f}")
        together = clf.transition_matrix_
        alone = clf.fit(*rows, **clean)
        print(f"largest difference of T from one process: {np.abs(together - alone.transition_matrix_).max():.1e}")


if __name__ == "__main__":
    main()
