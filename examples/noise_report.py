"""Noise report of handwritten digits: 1,297 noisy samples, 100 of them verified, and 400 held-out clean samples.

Digits 7 -> 1, 2 -> 7, 5 <-> 6 and 3 -> 8 are mislabelled at a rate of 40 %. No download, half a minute on a CPU.

    python examples/noise_report.py [noise_report.html]
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from noisytransition import EMTransitionClassifier, flip_labels
from noisytransition.transition import digits_noise


def make():
    """Fit EM and report on its training samples, which have out-of-fold probabilities."""
    X, y = load_digits(return_X_y=True)
    X, y_noisy = X / 16, flip_labels(y, digits_noise(0.4), random_state=0)
    rows, held_out = np.split(np.random.default_rng(0).permutation(len(y)), [1397])
    clf = EMTransitionClassifier(max_epochs=15, batch_size=64, random_state=0)
    clf.fit(X[rows], y_noisy[rows], y_verified=np.where(np.arange(len(rows)) < 1297, -1, y[rows]))
    return clf.noise_report(
        X_clean=X[held_out],
        y_clean=y[held_out],
        y_clean_noisy=y_noisy[held_out],
        display_samples=X[rows].reshape(-1, 8, 8),
        title="Noise report: handwritten digits",
    )


def write(folder):
    """Write the page into a folder, and return the folder's path."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    make().save(Path(folder) / "noise_report_example.html")
    return str(folder)


def main():
    """Print the summary and save the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", default="noise_report.html", help="output file, .html or .json")
    args = parser.parse_args()
    report = make()
    print(report)
    report.save(args.path)


if __name__ == "__main__":
    main()
