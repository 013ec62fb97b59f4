"""Folds and seeds on the workers of a Dask cluster, with the result of one process to the bit.

    pip install "noisytransition[distributed]"
    python examples/dask_cluster.py [--workers 2] [--scheduler tcp://host:8786]

Without --scheduler, the workers are processes of this machine. On several machines, start ``dask scheduler`` on one and
``dask worker tcp://host:8786 --nthreads 1`` on each; they need the same versions of the libraries and, for the same
bits, processors of one kind.
"""

import argparse
from contextlib import nullcontext

import joblib
import numpy as np
from distributed import Client, LocalCluster
from sklearn.datasets import load_digits

from noisytransition import EMTransitionClassifier, flip_labels, transition_error
from noisytransition.transition import pair_noise


def learned(X, y, T, seed):
    """T from labels whose noise is drawn with this seed."""
    verified = np.arange(len(y)) < 60
    clf = EMTransitionClassifier(max_epochs=8, select_classifier=False, random_state=seed)
    clf.fit(X, flip_labels(y, T, random_state=seed), trusted=verified, y_meta=y[verified])
    return clf.transition_matrix_


def main():
    """Learn T here and on the cluster."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scheduler", help="address of a cluster that runs")
    args = parser.parse_args()
    X, y = load_digits(n_class=4, return_X_y=True)
    X, T = X / 16, pair_noise(4, 0.4)
    here = learned(X, y, T, seed=0)
    local = {"n_workers": args.workers, "threads_per_worker": 1, "dashboard_address": None}
    cluster = nullcontext(args.scheduler) if args.scheduler else LocalCluster(**local)
    with cluster as address, Client(address), joblib.parallel_config("dask"):
        there = learned(X, y, T, seed=0)  # the folds
        seeds = joblib.Parallel()(joblib.delayed(learned)(X, y, T, seed) for seed in range(4))  # whole fits
    print(f"folds: error of T {transition_error(T, there):.3f}, largest difference {np.abs(here - there).max()}")
    for seed, found in enumerate(seeds):
        print(f"seed {seed}: error of T {transition_error(T, found):.3f}")


if __name__ == "__main__":
    main()
