"""Learn a noise transition matrix from handwritten digits with noisy labels; takes a minute on a CPU.

1,247 digits have noisy labels (7 -> 1, 2 -> 7, 5 <-> 6, 3 -> 8, each at a rate of 40 %); 100 more have verified labels.

    python examples/quickstart.py [--device cuda] [--seed 0] [--plot quickstart.png]
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    MetaTransitionClassifier,
    TransitionMatrixDisplay,
    flip_labels,
    sampling_limit,
    transition_error,
)
from noisytransition.transition import digits_noise


def load(seed):
    """Noisy rows, clean rows, test rows, and the true T."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=450, stratify=y, random_state=seed)
    X, X_meta, y, y_meta = train_test_split(X, y, test_size=100, stratify=y, random_state=seed)
    T = digits_noise(0.4)
    limit = sampling_limit(T, np.bincount(y))
    return X, flip_labels(y, T, random_state=seed), X_meta, y_meta, X_test, y_test, T, limit


def main():
    """Train four classifiers and print what they learned."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", default="quickstart.png", help="file for the picture of T")
    args = parser.parse_args()
    X, y_noisy, X_meta, y_meta, X_test, y_test, T, limit = load(args.seed)
    print(f"{len(X)} rows with noisy labels, {len(X_meta)} with clean ones, {len(X_test)} to test on")

    shared = {"random_state": args.seed, "device": args.device, "verbose": 1}  # on a terminal, a bar
    for clf in (
        CrossEntropyClassifier(**shared),
        FineTuningClassifier(**shared),
        MetaTransitionClassifier(**shared),  # T by the gradient of the clean loss
        EMTransitionClassifier(**shared),  # maximum likelihood
    ):
        clf.fit(X, y_noisy, meta=(X_meta, y_meta))
        learned = getattr(clf, "transition_matrix_", None)
        error = "" if learned is None else f", error of T {transition_error(T, learned):.3f}"
        print(f"{type(clf).__name__}: test accuracy {clf.score(X_test, y_test):.3f}{error}")

    with np.printoptions(precision=2, suppress=True):
        print(f"\nlearned T (row: true digit, column: noisy label)\n{clf.transition_matrix_}")
    print("\nerror of T, sum|T - T_hat| / sum|T|:")
    for name, error in {
        "learned": transition_error(T, clf.transition_matrix_),
        "its start": transition_error(T, clf.transition_init_),
        "identity": transition_error(T, np.eye(10)),
        "sampling limit": limit,
    }.items():
        print(f"  {name:15s}{error:.3f}")
    display = TransitionMatrixDisplay.from_estimator(clf, true_matrix=T)
    display.figure_.savefig(args.plot, dpi=120)
    print(f"\n{args.plot} shows T: true, learned, and the difference")


if __name__ == "__main__":
    main()
