"""Generalisation bounds of the loss through T, over networks of bounded weights, and of the clean posterior."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ._checks import check_count, check_transition_matrix, is_number


def risk_bound(
    n_samples: int,
    norms: Sequence[float],
    radius: float,
    n_classes: int,
    *,
    transition_matrix: ArrayLike | None = None,
    transition_norm: float | None = None,
    delta: float = 0.05,
) -> float:
    r"""Bound how far the risk is above the training loss, for all networks of bounded weights at once.

    With probability at least ``1 - delta`` over the training rows, every network
    ``h(x) = W_d relu(W_{d-1} ... relu(W_1 x))`` with ``||W_k||_F <= norms[k]`` has::

        E loss(h(x), y)  <=  mean over the training rows of loss(h(x_i), y_i)  +  the bound

    for ``loss(z, y) = -log sum_i softmax(z)_i T[i, y]``, the corrected cross-entropy. It falls with
    ``1 / sqrt(n_samples)``, and rises with the product of the norms and with the square roots of depth and classes.

    Parameters
    ----------
    n_samples : int
        Training rows, drawn independently.
    norms : sequence of float
        Largest Frobenius norm of each weight matrix. Chosen before the training rows are seen.
    radius : float
        Largest Euclidean norm of a row of X. A bias of the first layer is one more column of X.
    n_classes : int
        Outputs of the network.
    transition_matrix : array-like of shape (n_classes, n_classes), optional
        T, if it is known. Default: the identity, for clean labels.
    transition_norm : float, optional
        If T is learned from the same rows: largest Frobenius norm of the logits of T. The bound then holds for all
        these T at once.
    delta : float, default=0.05
        Probability with which the bound may fail.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a number is out of its range, T is not a transition matrix or has an empty column, or both T and
        `transition_norm` are given.

    Notes
    -----
    The bound is ``2 sqrt(2) L R + b sqrt(log(1 / delta) / (2 n))`` (Mohri, Theorem 3.3; Maurer, Corollary 1).

    * The gradient of the loss in z is ``f - q``, with f the softmax and q the posterior given y: ``L = sqrt(2)``. With
      the logits of T beside it, ``L = 2``.
    * The Rademacher complexity of the networks is at most
      ``sqrt(c) B prod_k M_k sqrt((sqrt(2 log(2) d) + 1)^2 + 1) / sqrt(n)``, with B the radius and M the norms.
      Theorem 1 of Golowich bounds the mean of the supremum for one output; the inequality of Efron and Stein bounds its
      variance; the squares of c outputs add up. The logits of T add ``c transition_norm / sqrt(n)``.
    * b is the largest loss: at most ``-log`` of the smallest entry of T.

    Such bounds hold for the worst network and are loose: for most networks in use, above the largest loss.

    References
    ----------
    * Golowich, Rakhlin, Shamir, "Size-Independent Sample Complexity of Neural Networks", COLT 2018.
    * Maurer, "A Vector-Contraction Inequality for Rademacher Complexities", ALT 2016.
    * Mohri, Rostamizadeh, Talwalkar, "Foundations of Machine Learning", 2nd edition, 2018.

    Examples
    --------
    >>> from noisytransition.transition import pair_noise, risk_bound
    >>> T = pair_noise(10, 0.4)
    >>> small, large = (risk_bound(n, [2, 2], 1, 10, transition_matrix=T) for n in (1000, 4000))
    >>> round(small / large, 6)
    2.0
    """
    _check(n_samples, norms, radius, n_classes, delta, transition_norm)
    if transition_matrix is not None and transition_norm is not None:
        raise ValueError("give transition_matrix if T is known, or transition_norm if it is learned, not both.")
    size = radius * float(np.prod(norms))  # of the logits
    complexity = n_classes**0.5 * size * np.hypot((2 * np.log(2) * len(norms)) ** 0.5 + 1, 1)
    lipschitz, largest = 2**0.5, _largest_loss(size, n_classes, transition_matrix)
    if transition_norm is not None:
        lipschitz, complexity = 2.0, complexity + n_classes * transition_norm
        largest = np.log(n_classes) + 2**0.5 * transition_norm  # that of the smallest entry of T
    bound = 2 * 2**0.5 * lipschitz * complexity + largest * (np.log(1 / delta) / 2) ** 0.5
    return float(bound / n_samples**0.5)


def _largest_loss(size: float, n_classes: int, transition_matrix: ArrayLike | None) -> float:
    """Largest loss of logits of norm `size` through a T that is known."""
    of_network = np.log(n_classes) + 2**0.5 * size
    if transition_matrix is None:
        return float(of_network)
    T = check_transition_matrix(transition_matrix, n_classes)
    highest = T.max(axis=0)
    if not highest.all():
        raise ValueError("a column of transition_matrix is 0: the loss of that label is infinite; give T without it.")
    with np.errstate(divide="ignore"):
        return float(min(-np.log(T.min()), of_network - np.log(highest.min())))


def _check(
    n_samples: int,
    norms: Sequence[float],
    radius: float,
    n_classes: int,
    delta: float,
    transition_norm: float | None,
) -> None:
    """Raise for numbers out of their range."""
    check_count(n_samples, 1, "n_samples")
    check_count(n_classes, 2, "n_classes")
    numbers = {"radius": [radius], "norms": norms, "transition_norm": [transition_norm or 0.0]}
    for name, values in numbers.items():
        if not len(values) or not all(is_number(value) and 0 <= value < np.inf for value in values):
            raise ValueError(f"{name}={values!r}; give finite numbers of at least 0, and norms for one layer or more.")
    if not is_number(delta) or not 0 < delta < 1:
        raise ValueError(f"delta={delta!r}; give a probability between 0 and 1.")


def posterior_error_bound(excess_risk: float, transition_matrix: ArrayLike) -> float:
    r"""Bound the error of the clean posterior by the excess risk on noisy labels: why the corrected loss is consistent.

    With f the network's posterior and p the true one, of a sample x::

        E ||f(x) - p(x)||^2  <=  2 (risk of f - risk of p) / s^2

    where s is the smallest singular value of T. A risk that falls to the smallest possible one brings the posterior
    of the true classes with it, if T is right and can be inverted.

    Parameters
    ----------
    excess_risk : float
        Mean corrected loss of the network on noisy labels minus that of the true posterior, at least 0. For the
        network of the smallest training loss, if one of the networks is the true posterior, it is at most twice
        `risk_bound` at ``delta / 2``, with probability ``1 - delta``.
    transition_matrix : array-like of shape (n_classes, n_classes)
        The true T.

    Returns
    -------
    float
        Infinite if T cannot be inverted.

    Raises
    ------
    ValueError
        If the risk is negative or T is not a transition matrix.

    Notes
    -----
    The excess risk is the mean Kullback-Leibler divergence of ``T' f`` from ``T' p``, which is at least half the square
    of their distance (Pinsker's inequality), and ``||T' v|| >= s ||v||``.

    Examples
    --------
    >>> from noisytransition.transition import posterior_error_bound
    >>> posterior_error_bound(0.01, [[0.8, 0.2], [0.2, 0.8]])
    0.0555...
    """
    T = check_transition_matrix(transition_matrix)
    if not is_number(excess_risk) or not excess_risk >= 0:
        raise ValueError(f"excess_risk={excess_risk!r}; give a number of at least 0.")
    smallest = np.linalg.svd(T, compute_uv=False)[-1]
    return float(2 * excess_risk / smallest**2) if smallest > np.finfo(float).eps * len(T) else float("inf")
