"""Hypothesis strategies that the tests share: they shrink to small and round examples."""

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

n_classes = st.integers(2, 5)


def floats(low, high):
    """Finite numbers without subnormal ones."""
    return st.floats(low, high, allow_nan=False, allow_infinity=False, allow_subnormal=False)


def labels(n, c):
    """Class indices of n rows."""
    return hnp.arrays(np.int64, n, elements=st.integers(0, c - 1))


def row_stochastic(n, c, least=0.0):
    """n rows of c probabilities; with `least` > 0 none is below about least / c."""
    weights = hnp.arrays(np.float64, (n, c), elements=floats(least, 1.0))

    def normalised(w):
        w = w + np.where(w.sum(axis=1, keepdims=True) < 1e-6, 1.0, 0.0)  # a row of zeros becomes uniform
        return w / w.sum(axis=1, keepdims=True)

    return weights.map(normalised)


def transition_matrices(c, least=0.0):
    """Transition matrices of c classes."""
    return row_stochastic(c, c, least)


def permutations(c):
    """Orders of c classes, as an array."""
    return st.permutations(range(c)).map(np.array)


@st.composite
def rows_with_labels(draw, c=None, max_samples=30, least=0.0):
    """Probabilities of some rows and a label for each."""
    c = draw(n_classes) if c is None else c
    n = draw(st.integers(1, max_samples))
    return draw(row_stochastic(n, c, least)), draw(labels(n, c))


@st.composite
def probabilities(draw, min_rows=1, max_samples=30, classes=n_classes):
    """Probabilities of some rows."""
    return draw(row_stochastic(draw(st.integers(min_rows, max_samples)), draw(classes)))


def rows_without_tiny(n, c):
    """n rows of c probabilities, none between 0 and 1e-9: no product of a few of them is lost."""

    def cleared(p):
        p = np.where(p < 1e-9, 0.0, p)
        return p / p.sum(axis=1, keepdims=True)

    return row_stochastic(n, c).map(cleared)


def binary_fractions(n, c):
    """n rows of c probabilities that are multiples of 1/64: their sums and products are free of rounding."""
    cuts = hnp.arrays(np.int64, (n, c - 1), elements=st.integers(0, 64))
    return cuts.map(lambda x: np.diff(np.sort(x, axis=1), axis=1, prepend=0, append=64) / 64)


@st.composite
def noisy_rows(draw, c=None, max_samples=12, rows=row_stochastic):
    """Probabilities of some rows, a label for each, and a transition matrix, both made of `rows`."""
    c = draw(n_classes) if c is None else c
    n = draw(st.integers(1, max_samples))
    return draw(rows(n, c)), draw(labels(n, c)), draw(rows(c, c))


def labels_of_every_class(n, c):
    """Class indices of n rows, each of the c classes among them."""
    return labels(n - c, c).flatmap(lambda y: st.permutations([*range(c), *y.tolist()])).map(np.array)


@st.composite
def batches(draw, c=4, max_samples=8, scale=8.0):
    """Logits of some rows in double precision, and their labels, as tensors."""
    n = draw(st.integers(1, max_samples))
    logits = draw(hnp.arrays(np.float64, (n, c), elements=floats(-scale, scale)))
    return torch.tensor(logits), torch.tensor(draw(labels(n, c)))
