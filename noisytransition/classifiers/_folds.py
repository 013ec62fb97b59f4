"""Folds of rows."""

import numpy as np
from numpy.typing import NDArray

#: folds of noisy and of clean rows; a choice: each fold is one more training
N_FOLDS = 3


def fold_of_rows(y: NDArray, n: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Draw the fold of each row, with the classes dealt out evenly.

    As scikit-learn's `StratifiedKFold`, which refuses labels where every class has fewer rows than there are folds, as
    a few clean rows have.
    """
    order = random.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    folds = np.empty(len(y), dtype=np.intp)
    folds[order] = np.arange(len(y)) % n
    return folds
