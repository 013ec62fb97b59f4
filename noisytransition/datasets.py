"""Noisy, clean and test samples from labelled data."""

from __future__ import annotations
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import Dataset, Subset

from .labels._arrays import check_label_indices, in_class_order
from .transition import flip_labels
from .transition._checks import check_count, check_transition_matrix
from .transition._noise import RandomState, as_generator

__all__ = ["ComparisonData", "make_noisy_data"]


class ComparisonData(NamedTuple):
    """Noisy, clean and test samples with their labels.

    Attributes
    ----------
    X, y, X_clean, y_clean, X_test, y_test
        Noisy training samples with their labels; clean training samples and test samples with their true labels.
    transition_matrix : array-like of shape (n_classes, n_classes), optional
        True noise transition matrix T, in sorted order of the labels.
    y_true, y_clean_noisy : array-like, optional
        True labels of the noisy samples, and noisy labels of the clean samples.
    classes : sequence of str, optional
        Class names, in sorted order of the labels.
    rows, rows_clean : array-like of int, optional
        Indices of `X` and `X_clean` in the original data, e.g. to select precomputed features.

    Examples
    --------
    >>> from noisytransition import ComparisonData
    >>> ComparisonData([[0.0], [1.0], [2.0]], [0, 1, 1], [[0.5]], [0], [[1.5]], [1]).y_clean
    [0]
    """

    X: Any
    y: Any
    X_clean: Any
    y_clean: Any
    X_test: Any
    y_test: Any
    transition_matrix: Any = None
    y_true: Any = None
    y_clean_noisy: Any = None
    classes: Any = None
    rows: Any = None
    rows_clean: Any = None


def make_noisy_data(
    X: ArrayLike | Dataset,
    y: ArrayLike,
    X_test: ArrayLike | Dataset,
    y_test: ArrayLike,
    *,
    noise: ArrayLike | None = None,
    n_clean: int = 1000,
    n_noisy: int | None = None,
    balanced: bool = True,
    random_state: RandomState = None,
    classes: Sequence[str] | None = None,
) -> ComparisonData:
    """Add label noise to labelled training data and draw clean samples from it.

    Parameters
    ----------
    X, X_test : array, sparse matrix or torch Dataset
        Training and test samples.
    y, y_test : array-like of int
        True labels in 0..c-1.
    noise : array-like of shape (c, c) or (n,), optional
        Transition matrix, such as ``symmetric_noise(10, 0.4)``, or a noisy label for each training sample. Default: no
        noise.
    n_clean : int, default=1000
        Number of clean samples. It does not affect the noisy labels.
    n_noisy : int, optional
        Number of noisy samples, drawn at random. Default: all samples that are not clean.
    balanced : bool, default=True
        Whether to draw the same number of clean samples from each class, up to a difference of one. False: draw them
        regardless of class.
    random_state : int, RandomState, Generator or None
        Source of all draws. The noisy labels are ``flip_labels(y, noise, random_state)``.
    classes : sequence of str, optional
        Class names. Default: no names; c is the largest label + 1.

    Returns
    -------
    ComparisonData
        ``transition_matrix`` is `noise` if it is a matrix, otherwise None.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from noisytransition.transition import pair_noise
    >>> from noisytransition.datasets import make_noisy_data
    >>> X, y = load_digits(return_X_y=True)
    >>> data = make_noisy_data(
    ...     X[:1500], y[:1500], X[1500:], y[1500:], noise=pair_noise(10, 0.4), n_clean=100, random_state=0
    ... )
    >>> data.X.shape, data.X_clean.shape, data.X_test.shape
    ((1400, 64), (100, 64), (297, 64))
    >>> float((data.y == data.y_true).mean().round(2))
    0.58
    """
    n_classes = None if classes is None else len(classes)
    X, y = _checked(X, y, n_classes, "y")
    X_test, y_test = _checked(X_test, y_test, n_classes, "y_test")
    if n_classes is None:
        n_classes = np.append(y, y_test).max(initial=-1) + 1
    rng = as_generator(random_state)
    y_noisy, T = _noisy_labels(y, noise, classes, n_classes, rng)
    clean = _draw_clean(y, n_clean, n_classes, balanced, rng)
    noisy = np.setdiff1d(np.arange(len(y)), clean)
    if not len(noisy):
        raise ValueError(f"n_clean={len(clean)} leaves no noisy sample. Pass a smaller n_clean.")
    if n_noisy is not None:
        noisy = _draw(noisy, n_noisy, rng)
    return ComparisonData(
        _take(X, noisy),
        y_noisy[noisy],
        _take(X, clean),
        y[clean],
        X_test,
        y_test,
        transition_matrix=T,
        y_true=y[noisy],
        y_clean_noisy=y_noisy[clean],
        classes=classes,
        rows=noisy,
        rows_clean=clean,
    )


def _checked(X: Any, y: Any, n_classes: int | None, name: str) -> tuple[Any, NDArray[np.intp]]:
    """Samples as an array, CSR matrix or Dataset, and one label for each."""
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    elif not isinstance(X, Dataset):
        X = np.asarray(X)
    return X, check_label_indices(y, n_classes, X.shape[0] if hasattr(X, "shape") else len(X), name)


def _take(X: Any, rows: NDArray[np.integer]) -> Any:
    return Subset(X, rows.tolist()) if isinstance(X, Dataset) else X[rows]


def _draw_clean(y: NDArray, n: int, n_classes: int, balanced: bool, rng: Any) -> NDArray[np.integer]:
    """Draw sorted indices of clean samples, balanced by class or regardless of class."""
    if not balanced:
        return _draw(np.arange(len(y)), n, rng)
    check_count(n, n_classes, "n_clean")
    sizes = np.full(n_classes, n // n_classes)
    sizes[rng.choice(n_classes, n % n_classes, replace=False)] += 1
    return np.sort(np.concatenate([_draw(np.flatnonzero(y == c), size, rng) for c, size in enumerate(sizes)]))


def _draw(rows: NDArray[np.integer], n: int, rng: Any) -> NDArray[np.integer]:
    """Draw n of these indices, sorted."""
    if check_count(n, 1, "n_clean and n_noisy") > len(rows):
        raise ValueError(f"cannot draw {n} of {len(rows)} samples (of a class). Pass a smaller n_clean or n_noisy.")
    return np.sort(rng.choice(rows, n, replace=False))


def _noisy_labels(y: NDArray, noise: Any, classes: Any, n_classes: int, rng: Any) -> tuple[NDArray, NDArray | None]:
    """Noisy labels of all samples, and their transition matrix if it is known."""
    if noise is None:
        return y, None
    if np.ndim(noise) != 1:
        T = check_transition_matrix(in_class_order(noise, classes), n_classes, name="noise")
        return flip_labels(y, T, rng), T
    return check_label_indices(noise, n_classes, len(y), name="noise"), None
