"""Noise models as transition matrices, with the papers that they are from."""

import operator
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import as_array, check_count, check_rate


def symmetric_noise(n_classes: int, rate: float) -> NDArray[np.float64]:
    """Flip to one of the *other* classes with equal probability: ``T = (1 - r) I + r / (c - 1) (J - I)``, J all ones.

    The noise rate is `rate`. (`uniform_noise` draws among all classes instead.)

    Parameters
    ----------
    n_classes : int
        The number c of classes, at least 2.
    rate : float in [0, 1]
        Probability r of a flip.

    Returns
    -------
    ndarray of shape (c, c), float64
        Transition matrix.

    Raises
    ------
    ValueError
        If `n_classes` or `rate` is out of range.

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
    n_classes, rate = check_count(n_classes, 2, "n_classes"), check_rate(rate)
    T = np.full((n_classes, n_classes), rate / (n_classes - 1))
    np.fill_diagonal(T, 1 - rate)
    return T


def uniform_noise(n_classes: int, rate: float) -> NDArray[np.float64]:
    """Replace by one of *all* classes, the true one included: ``T = (1 - r) I + r / c J``, J all ones.

    Labels are wrong with probability ``r (c - 1) / c`` only. (`symmetric_noise` leaves the true class out.)

    Parameters
    ----------
    n_classes : int
        The number c of classes, at least 2.
    rate : float in [0, 1]
        Probability r of a replacement.

    Returns
    -------
    ndarray of shape (c, c), float64
        Transition matrix.

    Raises
    ------
    ValueError
        If `n_classes` or `rate` is out of range.

    References
    ----------
    Hendrycks, Mazeika, Wilson, Gimpel, "Using Trusted Data to Train Deep Networks on Labels Corrupted by Severe
    Noise", NeurIPS 2018 ("uniform").

    Examples
    --------
    >>> from noisytransition.transition import uniform_noise
    >>> uniform_noise(2, 0.5)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    n_classes, rate = check_count(n_classes, 2, "n_classes"), check_rate(rate)
    return (1 - rate) * np.eye(n_classes) + rate / n_classes


def pair_noise(n_classes: int, rate: float) -> NDArray[np.float64]:
    """Flip to the next class, in a circle: ``T[i, i] = 1 - r``, ``T[i, (i + 1) mod c] = r``.

    Parameters
    ----------
    n_classes : int
        The number c of classes, at least 2.
    rate : float in [0, 1]
        Probability r of a flip.

    Returns
    -------
    ndarray of shape (c, c), float64
        Transition matrix. Singular for even c at a rate of 0.5.

    Raises
    ------
    ValueError
        If `n_classes` or `rate` is out of range.

    References
    ----------
    Yu, Han, Yao, Niu, Tsang, Sugiyama, "How does Disagreement Help Generalization against Label Corruption?"
    (Co-teaching+), ICML 2019.

    Examples
    --------
    >>> from noisytransition.transition import pair_noise
    >>> pair_noise(3, 0.25)
    array([[0.75, 0.25, 0.  ],
           [0.  , 0.75, 0.25],
           [0.25, 0.  , 0.75]])
    """
    n_classes, rate = check_count(n_classes, 2, "n_classes"), check_rate(rate)
    clean = np.eye(n_classes)
    return (1 - rate) * clean + rate * np.roll(clean, 1, axis=1)


def cifar10_noise(rate: float, *, two_way: bool = False) -> NDArray[np.float64]:
    """CIFAR-10's four one-way flips: truck -> automobile, bird -> airplane, deer -> horse, cat -> dog.

    ``T[9, 1] = T[2, 0] = T[4, 7] = T[3, 5] = r``. The noise rate over balanced classes is 0.4 r.

    Parameters
    ----------
    rate : float in [0, 1]
        Probability r of a flip in the classes that are flipped.
    two_way : bool, default=False
        Whether dogs are flipped to cats, too: ``T[5, 3] = r``. The noise rate is then 0.5 r.

    Returns
    -------
    ndarray of shape (10, 10), float64
        Transition matrix.

    Raises
    ------
    ValueError
        If `rate` is out of range.

    References
    ----------
    Yao, Wu, Zhang, Tsang, Sun, "Safeguarded Dynamic Label Regression for Noisy Supervision", AAAI 2019.
    Two-way: Patrini, Rozza, Menon, Nock, Qu, "Making Deep Neural Networks Robust to Label Noise: a Loss Correction
    Approach", CVPR 2017.

    Examples
    --------
    >>> from noisytransition.transition import cifar10_noise
    >>> float(cifar10_noise(0.4)[9, 1])
    0.4
    >>> cifar10_noise(0.25, two_way=True)[[3, 5]][:, [3, 5]]
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    flips = {9: 1, 2: 0, 4: 7, 3: 5}
    return flip_noise(flips | {5: 3} if two_way else flips, 10, rate)


def digits_noise(rate: float) -> NDArray[np.float64]:
    """Flips between similar digits: 7 -> 1, 2 -> 7, 5 <-> 6, 3 -> 8, each with probability r.

    The noise rate over balanced classes is 0.5 r.

    Parameters
    ----------
    rate : float in [0, 1]
        Probability r of a flip in the five classes.

    Returns
    -------
    ndarray of shape (10, 10), float64
        Transition matrix.

    Raises
    ------
    ValueError
        If `rate` is out of range.

    References
    ----------
    Patrini, Rozza, Menon, Nock, Qu, "Making Deep Neural Networks Robust to Label Noise: a Loss Correction
    Approach", CVPR 2017 (MNIST).

    Examples
    --------
    >>> from noisytransition.transition import digits_noise
    >>> float(digits_noise(0.4)[2, 7])
    0.4
    """
    return flip_noise({7: 1, 2: 7, 5: 6, 6: 5, 3: 8}, 10, rate)


def superclass_noise(superclasses: ArrayLike, rate: float, *, circle: bool = False) -> NDArray[np.float64]:
    """Flip to one of the other classes of the same superclass with equal probability (GLC's "hierarchical" noise).

    ``T[i, i] = 1 - r`` and ``T[i, j] = r / (m - 1)`` for the other classes j of the superclass of i, of size m.
    A class that is alone in its superclass is not flipped.

    Parameters
    ----------
    superclasses : array-like of shape (c,)
        The superclass of each class; for CIFAR-100 `noisytransition.datasets.CIFAR100_SUPERCLASSES`.
    rate : float in [0, 1]
        Probability r of a flip.
    circle : bool, default=False
        Flip to the next class of the superclass alone, from its last class to its first.

    Returns
    -------
    ndarray of shape (c, c), float64
        Transition matrix. Singular at ``r = (m - 1) / m`` (0.8 for CIFAR-100); with `circle` and even m at 0.5.

    Raises
    ------
    ValueError
        If `superclasses` is not 1-d or empty, or `rate` is out of range.

    References
    ----------
    Hendrycks, Mazeika, Wilson, Gimpel, "Using Trusted Data to Train Deep Networks on Labels Corrupted by Severe
    Noise", NeurIPS 2018 (CIFAR-100).
    Circle: Patrini, Rozza, Menon, Nock, Qu, "Making Deep Neural Networks Robust to Label Noise: a Loss Correction
    Approach", CVPR 2017 (CIFAR-100).

    Examples
    --------
    >>> from noisytransition.transition import superclass_noise
    >>> superclass_noise(["cat", "dog", "cat"], 0.25)
    array([[0.75, 0.  , 0.25],
           [0.  , 1.  , 0.  ],
           [0.25, 0.  , 0.75]])
    >>> superclass_noise([0, 0, 0], 0.25, circle=True)
    array([[0.75, 0.25, 0.  ],
           [0.  , 0.75, 0.25],
           [0.25, 0.  , 0.75]])
    """
    superclasses, rate = as_array(superclasses, "superclasses"), check_rate(rate)
    if superclasses.ndim != 1 or not superclasses.size:
        raise ValueError(f"superclasses has shape {superclasses.shape}; give one superclass per class, 1-d.")
    siblings = _next_in_circle(superclasses) if circle else superclasses[:, None] == superclasses
    np.fill_diagonal(siblings, False)
    T = siblings * (rate / np.maximum(siblings.sum(axis=1, keepdims=True), 1))
    np.fill_diagonal(T, np.where(siblings.any(axis=1), 1 - rate, 1))
    return T


def _next_in_circle(superclasses: NDArray) -> NDArray[np.bool_]:
    """For each class the next one of its superclass."""
    following = np.zeros((len(superclasses), len(superclasses)), dtype=bool)
    for name in np.unique(superclasses):
        members = np.flatnonzero(superclasses == name)
        following[members, np.roll(members, -1)] = True
    return following


def flip_noise(
    flips: Mapping[int, int] | Mapping[tuple[int, int], float],
    n_classes: int | None = None,
    rate: float | None = None,
) -> NDArray[np.float64]:
    """Flips between given pairs of classes; all other labels are correct.

    ``T[i, j] = probability of i -> j`` for the given flips, ``T[i, i] = 1 - the flips of row i``.

    Parameters
    ----------
    flips : dict
        ``{i: j}`` flips class i to class j with probability `rate`; ``{(i, j): p}`` has a probability for each flip.
    n_classes : int, optional
        The number c of classes; default: the highest index + 1.
    rate : float in [0, 1], optional
        Probability of each flip ``{i: j}``; leave it out for ``{(i, j): p}``.

    Returns
    -------
    ndarray of shape (c, c), float64
        Transition matrix.

    Raises
    ------
    ValueError
        If a flip leads from a class to itself or out of 0..c-1, a probability is out of range, the flips of a
        class add up to more than 1, or `rate` is missing or not wanted.

    Examples
    --------
    >>> from noisytransition.transition import flip_noise
    >>> flip_noise({0: 1}, rate=0.25)
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    >>> flip_noise({(0, 1): 0.25, (0, 2): 0.125}, 3)[0]
    array([0.625, 0.25 , 0.125])
    """
    if not isinstance(flips, Mapping):
        raise ValueError(f"flips={flips!r}; give a dict, as {{i: j}} or {{(i, j): p}}.")
    named = _name_probabilities(flips, rate)
    indices = [index for pair in named for index in pair]
    n_classes = check_count(max(indices, default=-1) + 1 if n_classes is None else n_classes, 1, "n_classes")
    T = np.zeros((n_classes, n_classes))
    for (i, j), p in named.items():
        if i == j or min(i, j) < 0 or max(i, j) >= n_classes:
            raise ValueError(f"flips has {i} -> {j}; give two different classes of 0..{n_classes - 1}.")
        T[i, j] = check_rate(p, f"the probability of {i} -> {j}")
    flipped = T.sum(axis=1)
    if (flipped > 1 + 1e-9).any():
        i = int(flipped.argmax())
        raise ValueError(f"the flips of class {i} add up to {flipped[i]:.6g}; give at most 1.")
    T[np.diag_indices(n_classes)] = np.maximum(1 - flipped, 0)
    return T


def _name_probabilities(flips: Mapping, rate: float | None) -> dict[tuple[int, int], float]:
    by_pair = [isinstance(key, tuple) for key in flips]
    if any(by_pair) and not all(by_pair):
        raise ValueError("flips mixes {i: j} and {(i, j): p}; give one form.")
    if any(by_pair) != (rate is None):
        raise ValueError(f"rate={rate!r} for flips={flips!r}; give rate with {{i: j}} only, not with {{(i, j): p}}.")
    items = flips.items() if rate is None else [(pair, check_rate(rate)) for pair in flips.items()]
    try:
        return {(operator.index(i), operator.index(j)): p for (i, j), p in items}
    except (TypeError, ValueError):
        raise ValueError(f"flips={flips!r}; give integer class indices, as {{i: j}} or {{(i, j): p}}.") from None
