"""Noisy labels drawn from clean ones by a transition matrix."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import as_array, check_count, check_transition_matrix
from ._labels import check_classes, encode, in_class_order, sorted_classes

RandomState = int | np.random.RandomState | np.random.Generator | None


def flip_labels(
    y: ArrayLike, T: ArrayLike, random_state: RandomState = None, classes: ArrayLike | None = None
) -> NDArray:
    """Draw a noisy label for each sample, from the row of `T` of its clean label.

    One independent draw per sample.

    Parameters
    ----------
    y : array-like of shape (n,)
        Clean labels: class indices 0..c-1, or any labels.
    T : array-like of shape (c, c)
        Transition matrix. A data frame that names the classes is read by name.
    random_state : int, RandomState, Generator or None
        Source of the draws; None is a new generator, not numpy's global one. A number draws what
        ``numpy.random.default_rng(random_state).random(n)`` does: a mask or classes of the same rows, drawn by the same
        number, would depend on the noise.
    classes : array-like of shape (c,), optional
        The labels in the order of the rows of `T` (the sorted order, for a classifier's matrix). Default: 0..c-1 if `y`
        has integers in this range only; else the sorted labels of `y`, which must be c.

    Returns
    -------
    ndarray of shape (n,)
        Noisy labels, of the same kind as `y`.

    Examples
    --------
    >>> from noisytransition.transition import flip_labels
    >>> flip_labels([0, 1, 2, 2], [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    array([1, 2, 0, 0])
    >>> flip_labels(["b", "a"], [[0, 1], [0, 1]])
    array(['b', 'b'], dtype='<U1')
    """
    by_position, y = check_transition_matrix(T, name="T"), as_array(y, "y")
    if y.ndim != 1:
        raise ValueError(f"y has shape {y.shape}; give a 1-d array of labels.")
    c = len(by_position)
    named = _classes_of_rows(y, c) if classes is None else check_classes(classes, c)
    cumulated = check_transition_matrix(in_class_order(T, named), c, "T").cumsum(axis=1)
    cumulated /= cumulated[:, -1:]  # ends at exactly 1: no draw is beyond the last class
    draws = as_generator(random_state).random(len(y))
    return named[(draws[:, None] >= cumulated[encode(y, named)]).sum(axis=1)]


def _classes_of_rows(y: NDArray, n_classes: int) -> NDArray:
    """Labels of the rows of T: 0..c-1, or the sorted labels of `y`."""
    whole = np.issubdtype(y.dtype, np.integer)
    if not y.size or (whole and y.min() >= 0 and y.max() < n_classes):
        return np.arange(n_classes, dtype=y.dtype if whole and n_classes - 1 <= np.iinfo(y.dtype).max else np.intp)
    return sorted_classes(y, n_classes)


def as_generator(random_state: RandomState) -> np.random.RandomState | np.random.Generator:
    if isinstance(random_state, np.random.RandomState | np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_count(random_state, 0, "random_state"))
