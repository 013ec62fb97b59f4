"""Photos of CIFAR-10 with labels from people.

    python -m examples.real_labels.cifar10n --data DIR

DIR has features.npy and features_test.npy, which ``examples/paper/features.py`` computes of the first 12,000 training
and 4,000 test photos; y.npy and y_test.npy, their classes; and y_noisy.npy, the labels "worse" of CIFAR-10N (Wei et
al., ICLR 2022). Each photo was labelled by three people; "worse" is a wrong one of these labels, if there is any.
"""

from functools import lru_cache

import numpy as np

from examples.real_labels.common import main, split

N_VERIFIED = 300


@lru_cache
def read(folder):
    """Read features, true and noisy labels of the training photos; features and labels of the test ones."""
    return [np.load(folder / f"{name}.npy") for name in ("features", "y", "y_noisy", "features_test", "y_test")]


def load(seed, folder):
    """Load the samples of a split."""
    X, y, y_noisy, X_test, y_test = read(folder)
    return split(X, y, y_noisy, X_test, y_test, seed, N_VERIFIED)


if __name__ == "__main__":
    from examples.real_labels.cifar10n import load

    main("cifar10n", __doc__, load, n_splits=3, n_verified=N_VERIFIED)
