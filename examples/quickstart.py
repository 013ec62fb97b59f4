"""Estimate a noise transition matrix from handwritten digits with noisy labels, in a minute on a CPU.

1,347 digits have noisy labels (7 -> 1, 2 -> 7, 5 <-> 6, 3 -> 8, each at a rate of 40 %); 100 of them are verified.

    python examples/quickstart.py [--device cuda] [--seed 0] [--plot quickstart.png]
"""

import argparse

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    flip_labels,
    sampling_limit,
    transition_error,
)
from noisytransition.transition import digits_noise

T = digits_noise(0.4)


def load(seed):
    """Load training samples with a table of noisy and verified labels, and test samples with true labels."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=450, stratify=y, random_state=seed)
    labels = pd.DataFrame({"label": flip_labels(y, T, random_state=seed)})
    checked = np.random.default_rng(seed).choice(len(y), 100, replace=False)
    labels.loc[checked, "verified"] = y[checked]
    return X, y, labels, X_test, y_test


def main():
    """Train three classifiers and print their accuracies, T and label issues."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", default="quickstart.png", help="file for the plot of T")
    args = parser.parse_args()
    X, y, labels, X_test, y_test = load(args.seed)
    print(f"{len(X)} samples with noisy labels ({labels.verified.count()} verified), {len(X_test)} test samples")

    shared = {"random_state": args.seed, "device": args.device, "verbose": 1}  # shows a progress bar in a terminal
    for clf in CrossEntropyClassifier(**shared), FineTuningClassifier(**shared), EMTransitionClassifier(**shared):
        clf.fit(X, labels)
        print(f"{type(clf).__name__}: test accuracy {clf.score(X_test, y_test):.3f}")

    print(f"\nflips, with 90 % intervals:\n{clf.transition_summary(top=5)}")
    print("\nerror of the estimated T, sum|T - T_hat| / sum|T|:")
    for name, error in {
        "EM": transition_error(T, clf.transition_matrix_),
        "identity": transition_error(T, np.eye(10)),
        "sampling limit": sampling_limit(T, np.bincount(y)),
    }.items():
        print(f"  {name:15s}{error:.3f}")
    issues = clf.find_label_issues()
    wrong = (labels.label != y)[issues.position]
    print(f"\n{len(issues)} labels are probably wrong; {wrong.mean():.0%} of these are wrong:\n{issues.head(3)}")
    figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="compressed")
    for ax, (title, matrix) in zip(axes, {"true": T, "learned": clf.transition_matrix_}.items(), strict=True):
        ConfusionMatrixDisplay(matrix).plot(cmap="Blues", values_format=".2f", ax=ax, colorbar=False)
        ax.set(title=title, xlabel="noisy label", ylabel="true label")
    figure.savefig(args.plot, dpi=120)
    print(f"\n{args.plot} shows the true and the estimated T")


if __name__ == "__main__":
    main()
