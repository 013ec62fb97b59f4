"""Noise models from the literature as transition matrices, and noisy labels drawn from them."""

from __future__ import annotations
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels._arrays import as_array, check_classes, encode, in_class_order, sorted_classes
from ._checks import check_count, check_rate, check_transition_matrix

RandomState = int | np.random.RandomState | np.random.Generator | None


def symmetric_noise(n_classes: int, rate: float) -> NDArray[np.float64]:
    """Symmetric (uniform) noise: a flip to each *other* class is equally likely.

    ``T = (1 - r) I + r / (c - 1) (J - I)``, J all ones. To draw among *all* classes with probability r, as GLC does,
    give ``r (c - 1) / c``.

    Parameters
    ----------
    n_classes : int
        Number c of classes, at least 2.
    rate : float in [0, 1]
        Probability r of a flip, the noise rate.

    Returns
    -------
    ndarray of shape (c, c), float64

    References
    ----------
    Shu, Zhao, Xu, Meng, "Meta Transition Adaptation for Robust Deep Learning with Noisy Labels", 2020.

    Examples
    --------
    >>> from noisytransition.transition import symmetric_noise
    >>> symmetric_noise(3, 0.5)
    array([[0.5 , 0.25, 0.25],
           [0.25, 0.5 , 0.25],
           [0.25, 0.25, 0.5 ]])
    """
    return superclass_noise(np.zeros(check_count(n_classes, 2, "n_classes")), rate)


def pair_noise(n_classes: int, rate: float) -> NDArray[np.float64]:
    """Pair noise: flips to the next class, ``T[i, i] = 1 - r``, ``T[i, (i + 1) mod c] = r``.

    Parameters
    ----------
    n_classes : int
        Number c of classes, at least 2.
    rate : float in [0, 1]
        Probability r of a flip.

    Returns
    -------
    ndarray of shape (c, c), float64
        Transition matrix. Singular for even c at a rate of 0.5.

    References
    ----------
    Yu et al., "How does Disagreement Help Generalization against Label Corruption?", ICML 2019.

    Examples
    --------
    >>> from noisytransition.transition import pair_noise
    >>> pair_noise(3, 0.25)
    array([[0.75, 0.25, 0.  ],
           [0.  , 0.75, 0.25],
           [0.25, 0.  , 0.75]])
    """
    clean = np.eye(check_count(n_classes, 2, "n_classes"))
    rate = check_rate(rate)
    return (1 - rate) * clean + rate * np.roll(clean, 1, axis=1)


def cifar10_noise(rate: float) -> NDArray[np.float64]:
    """Asymmetric noise of CIFAR-10: truck -> automobile, bird -> airplane, deer -> horse, cat -> dog.

    ``T[9, 1] = T[2, 0] = T[4, 7] = T[3, 5] = r``. The noise rate over balanced classes is 0.4 r.

    Parameters
    ----------
    rate : float in [0, 1]
        Probability r of a flip in these four classes.

    Returns
    -------
    ndarray of shape (10, 10), float64

    References
    ----------
    Yao, Wu, Zhang, Tsang, Sun, "Safeguarded Dynamic Label Regression for Noisy Supervision", AAAI 2019.

    Examples
    --------
    >>> from noisytransition.transition import cifar10_noise
    >>> float(cifar10_noise(0.4)[9, 1])
    0.4
    """
    return flip_noise(dict.fromkeys([(9, 1), (2, 0), (4, 7), (3, 5)], check_rate(rate)), 10)


def digits_noise(rate: float) -> NDArray[np.float64]:
    """Asymmetric noise of similar digits: 7 -> 1, 2 -> 7, 5 <-> 6, 3 -> 8, each with probability r.

    The noise rate over balanced classes is 0.5 r.

    Parameters
    ----------
    rate : float in [0, 1]
        Probability r of a flip in the five classes.

    Returns
    -------
    ndarray of shape (10, 10), float64

    References
    ----------
    Patrini et al., "Making Deep Neural Networks Robust to Label Noise: a Loss Correction Approach", CVPR 2017 (MNIST).

    Examples
    --------
    >>> from noisytransition.transition import digits_noise
    >>> float(digits_noise(0.4)[2, 7])
    0.4
    """
    return flip_noise(dict.fromkeys([(7, 1), (2, 7), (5, 6), (6, 5), (3, 8)], check_rate(rate)), 10)


def superclass_noise(superclasses: ArrayLike, rate: float) -> NDArray[np.float64]:
    """Superclass noise: flips to the other classes of the same superclass are equally likely (GLC's "hierarchical").

    ``T[i, i] = 1 - r`` and ``T[i, j] = r / (m - 1)`` for the other classes j of the superclass of i, of size m.
    A class that is alone in its superclass is not flipped.

    Parameters
    ----------
    superclasses : array-like of shape (c,)
        Superclass of each class; for CIFAR-100 ``CIFAR100_SUPERCLASSES`` of ``examples/cifar.py``.
    rate : float in [0, 1]
        Probability r of a flip.

    Returns
    -------
    ndarray of shape (c, c), float64
        Transition matrix. Singular at ``r = (m - 1) / m`` (0.8 for CIFAR-100).

    References
    ----------
    Hendrycks et al., "Using Trusted Data to Train Deep Networks on Labels Corrupted by Severe Noise", NeurIPS 2018.

    Examples
    --------
    >>> from noisytransition.transition import superclass_noise
    >>> superclass_noise(["cat", "dog", "cat"], 0.25)
    array([[0.75, 0.  , 0.25],
           [0.  , 1.  , 0.  ],
           [0.25, 0.  , 0.75]])
    """
    superclasses = as_array(superclasses, "superclasses")
    rate = check_rate(rate)
    if superclasses.ndim != 1 or not superclasses.size:
        raise ValueError(f"superclasses has shape {superclasses.shape}; pass a 1-d array, one superclass per class.")
    siblings = superclasses[:, None] == superclasses
    np.fill_diagonal(siblings, False)
    T = siblings * (rate / np.maximum(siblings.sum(axis=1, keepdims=True), 1))
    np.fill_diagonal(T, np.where(siblings.any(axis=1), 1 - rate, 1))
    return T


def flip_noise(flips: Mapping[tuple[int, int], float], n_classes: int) -> NDArray[np.float64]:
    """Noise with given probabilities of flips between pairs of classes.

    Parameters
    ----------
    flips : dict
        ``{(i, j): p}``: class i becomes class j with probability p.
    n_classes : int
        Number c of classes.

    Returns
    -------
    ndarray of shape (c, c), float64

    Examples
    --------
    >>> from noisytransition.transition import flip_noise
    >>> flip_noise({(0, 1): 0.25, (0, 2): 0.125}, 3)[0]
    array([0.625, 0.25 , 0.125])
    """
    T = np.eye(check_count(n_classes, 1, "n_classes"))
    for (i, j), p in flips.items():
        T[i, j] = check_rate(p, f"the probability of {i} -> {j}")
        T[i, i] -= p
    return check_transition_matrix(np.maximum(T, 0), name="the matrix of these flips")  # rounding may leave -1e-17


# ---------------------------------------------------------------------------- labels
def flip_labels(
    y: ArrayLike, T: ArrayLike, random_state: RandomState = None, classes: ArrayLike | None = None
) -> NDArray:
    """Draw a noisy label for each sample independently, from the row of `T` of its clean label.

    Parameters
    ----------
    y : array-like of shape (n,)
        Clean labels: class indices 0..c-1, or any labels.
    T : array-like of shape (c, c)
        Transition matrix. A data frame is matched by class name.
    random_state : int, RandomState, Generator or None
        Source of the draws; None is a new generator, not numpy's global one. An integer uses
        ``numpy.random.default_rng(random_state).random(n)``: do not draw a mask or the classes of the same samples with
        the same seed, since they would depend on the noise.
    classes : array-like of shape (c,), optional
        Labels in the order of the rows of `T` (sorted, for a classifier's matrix). Default: 0..c-1 if `y` only has
        integers in this range; otherwise the c sorted labels of `y`.

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
    c = len(check_transition_matrix(T, name="T"))
    y = as_array(y, "y")
    if y.ndim != 1:
        raise ValueError(f"y has shape {y.shape}; pass a 1-d array of labels.")
    names = _classes_of_rows(y, c) if classes is None else check_classes(classes, c)
    cumulated = check_transition_matrix(in_class_order(T, names), c, "T").cumsum(axis=1)
    cumulated /= cumulated[:, -1:]  # exactly 1 at the end: no draw exceeds the last class
    draws = as_generator(random_state).random(len(y))
    return names[(draws[:, None] >= cumulated[encode(y, names)]).sum(axis=1)]


def _classes_of_rows(y: NDArray, n_classes: int) -> NDArray:
    """Labels of the rows of T: 0..c-1, or the sorted labels of `y`."""
    whole = np.issubdtype(y.dtype, np.integer)
    if not y.size or (whole and y.min() >= 0 and y.max() < n_classes):
        return np.arange(n_classes, dtype=y.dtype if whole and n_classes - 1 <= np.iinfo(y.dtype).max else np.intp)
    return sorted_classes(y, n_classes)


def as_generator(random_state: RandomState) -> np.random.RandomState | np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return random_state
    return np.random.default_rng(random_state)
