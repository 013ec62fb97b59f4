"""Noisy rows, clean meta set and test set from labelled rows."""

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import Dataset, Subset

from ..comparison import ComparisonData
from ..transition import (
    RandomState,
    as_generator,
    check_count,
    check_label_indices,
    check_transition_matrix,
    flip_labels,
    in_class_order,
)

# labels count as unrelated to the true ones if they agree by less than chance and this many standard deviations;
# a choice, not measured
_CLEARLY = 3.0


class Draws(TypedDict, total=False):
    """Parameters of `make_noisy_data` that the loaders pass on."""

    noise: ArrayLike | None
    n_meta: int
    n_noisy: int | None
    balanced: bool
    random_state: RandomState


def make_noisy_data(
    X: ArrayLike | Dataset,
    y: ArrayLike,
    X_test: ArrayLike | Dataset,
    y_test: ArrayLike,
    *,
    noise: ArrayLike | None = None,
    n_meta: int = 1000,
    n_noisy: int | None = None,
    balanced: bool = True,
    random_state: RandomState = None,
    classes: Sequence[str] | None = None,
) -> ComparisonData:
    """Draw noisy labels and a clean meta set for training rows.

    First a noisy label is drawn for each training row. Then the meta set is drawn; its rows are removed from the noisy
    rows. So the noisy label of a row is the same for every size of the meta set. Test rows are passed on.

    Parameters
    ----------
    X : array, sparse matrix or torch Dataset
        Training rows: images, or features that were computed from them.
    y : array-like of int, shape (n,)
        Their true labels 0..c-1.
    X_test : array, sparse matrix or torch Dataset
        Test rows.
    y_test : array-like of int
        Their true labels.
    noise : array-like of shape (c, c) or (n,), optional
        A transition matrix, such as ``symmetric_noise(10, 0.4)`` or a data frame with the names of the `classes`, or a
        noisy label for each training row, such as ``load_cifar10n(path, "worse")``. Default: the labels stay as they
        are.
    n_meta : int, default=1000
        Number of clean rows.
    n_noisy : int, optional
        Number of noisy rows, drawn at random; default: all rows that are not in the meta set.
    balanced : bool, default=True
        Whether the meta set has equally many rows of each class. If `n_meta` is not a multiple of c, randomly drawn
        classes have one row more. Otherwise the rows are drawn regardless of class.
    random_state : int, RandomState, Generator or None
        Source of all draws. The noisy labels are ``flip_labels(y, noise, random_state)``.
    classes : sequence of str, optional
        Names of the classes; default: none, and c is the highest label + 1.

    Returns
    -------
    ComparisonData
        With ``y_true``, ``y_meta_noisy``, ``rows`` and ``rows_meta``. ``transition_matrix`` is the matrix that was
        given as `noise`, and None otherwise: no single T made the labels of people.
        ``count_transition_matrix(y, y_noisy)`` of the whole training set is their average T.

    Raises
    ------
    ValueError
        If lengths or labels do not fit, there are not enough rows, or given noisy labels agree with the true ones no
        more than by chance.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from noisytransition.transition import pair_noise
    >>> from noisytransition.datasets import make_noisy_data
    >>> X, y = load_digits(return_X_y=True)
    >>> data = make_noisy_data(
    ...     X[:1500], y[:1500], X[1500:], y[1500:], noise=pair_noise(10, 0.4), n_meta=100, random_state=0
    ... )
    >>> data.X.shape, data.X_meta.shape, data.X_test.shape
    ((1400, 64), (100, 64), (297, 64))
    >>> float((data.y == data.y_true).mean().round(2))
    0.58
    """
    rng = as_generator(random_state)
    y, y_test = check_label_indices(y, name="y"), check_label_indices(y_test, name="y_test")
    n_classes = max(y.max(initial=-1), y_test.max(initial=-1)) + 1 if classes is None else len(classes)
    X, X_test = _checked_rows(X, y, n_classes, "X"), _checked_rows(X_test, y_test, n_classes, "X_test")
    y_noisy, T = _noisy_labels(y, in_class_order(noise, classes), n_classes, rng)
    clean = draw_rows(y, n_meta, n_classes, balanced, rng)
    noisy = np.setdiff1d(np.arange(len(y)), clean)
    if n_noisy is not None:
        noisy = draw_rows(y, n_noisy, n_classes, False, rng, among=noisy)
    if not len(noisy):
        raise ValueError(f"n_meta={n_meta} of {len(y)} training rows leaves no noisy row; give less.")
    return ComparisonData(
        take(X, noisy),
        y_noisy[noisy],
        take(X, clean),
        y[clean],
        X_test,
        y_test,
        transition_matrix=T,
        y_true=y[noisy],
        y_meta_noisy=y_noisy[clean],
        classes=None if classes is None else tuple(classes),
        rows=noisy,
        rows_meta=clean,
    )


def take(X: Any, rows: NDArray[np.integer]) -> Any:
    """Some rows of an array or Dataset."""
    return Subset(X, rows.tolist()) if isinstance(X, Dataset) else X[rows]


def draw_rows(
    y: NDArray,
    n: int,
    n_classes: int,
    balanced: bool,
    rng: np.random.RandomState | np.random.Generator,
    among: NDArray[np.integer] | None = None,
) -> NDArray[np.integer]:
    """Draw rows without replacement, in equal numbers of each class or regardless of class; sorted."""
    rows = np.arange(len(y)) if among is None else among
    n = check_count(n, max(n_classes, 1) if balanced else 1, "the number of rows to draw (n_meta, n_noisy)")
    if n > len(rows):
        raise ValueError(f"{n} rows were to be drawn of {len(rows)}; give a smaller n_meta or n_noisy.")
    if not balanced:
        return np.sort(rng.choice(rows, n, replace=False))
    sizes = np.full(n_classes, n // n_classes)
    sizes[rng.choice(n_classes, n % n_classes, replace=False)] += 1
    available = np.bincount(y[rows], minlength=n_classes)
    if (short := available < sizes).any():
        c = int(short.argmax())
        raise ValueError(
            f"class {c} has {available[c]} training rows and the balanced meta set needs {sizes[c]} of them; give a "
            "smaller n_meta, or balanced=False."
        )
    drawn = [rng.choice(rows[y[rows] == c], size, replace=False) for c, size in enumerate(sizes)]
    return np.sort(np.concatenate(drawn))


def _checked_rows(X: Any, y: NDArray, n_classes: int, name: str) -> Any:
    """Check rows against their labels; return an array, a sparse matrix in rows, or a Dataset."""
    if hasattr(X, "tocsr"):  # a sparse matrix of scipy
        X = X.tocsr()
    elif not isinstance(X, Dataset | np.ndarray):
        X = np.asarray(X)
    if (n := X.shape[0] if hasattr(X, "shape") else len(X)) != len(y):
        raise ValueError(f"{name} has {n} rows for {len(y)} labels; give one label per row.")
    check_label_indices(y, n_classes, name=name.replace("X", "y"))
    return X


def _noisy_labels(
    y: NDArray, noise: ArrayLike | None, n_classes: int, rng: np.random.RandomState | np.random.Generator
) -> tuple[NDArray, NDArray | None]:
    """Noisy labels of all rows, and the transition matrix that made them."""
    if noise is None:
        return y, None
    if np.ndim(noise) == 2:
        T = check_transition_matrix(noise, n_classes, name="noise")
        return flip_labels(y, T, rng), T
    if np.ndim(noise) != 1:
        raise ValueError(
            f"noise={noise!r}; give a transition matrix, such as symmetric_noise({n_classes}, 0.4), or a noisy label "
            "for each training row."
        )
    given = check_label_indices(noise, n_classes, len(y), name="noise")
    _check_agreement(y, given, n_classes)
    return given, None


def _check_agreement(y: NDArray, given: NDArray, n_classes: int) -> None:
    """Raise for noisy labels that say nothing about the true ones, as in another order of the rows."""
    shares = [np.bincount(labels, minlength=n_classes) / len(y) for labels in (y, given)]
    chance, agreement = shares[0] @ shares[1], (y == given).mean()
    if chance < 1 and agreement <= chance + _CLEARLY * np.sqrt(chance * (1 - chance) / len(y)):
        raise ValueError(
            f"the labels given as noise agree with the true ones on {agreement:.1%} of the rows, as many as by chance "
            f"({chance:.1%}): are they in the order of the training rows?"
        )
