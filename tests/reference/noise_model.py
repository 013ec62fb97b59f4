"""Likelihood of calibration and T, one sample at a time, and its maximum by a general optimiser, without shrinkage."""

import math

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

PRECISION = 10.0
SMALLEST_VARIANCE = 1e-6


def centred_log(p):
    """Logarithms of probabilities, less their mean."""
    logs = [math.log(v) for v in p]
    return [v - sum(logs) / len(logs) for v in logs]


def unpack(x, c):
    """Scale, bias, matrix and T."""
    rows = np.array(x[1 + c :]).reshape(2 * c, c).tolist()
    return math.exp(x[0]), list(x[1 : 1 + c]), rows[:c], [softmax(row) for row in rows[c:]]


def calibrated(p, scale, bias, matrix):
    """Probabilities of one sample."""
    u = centred_log(p)
    linear = [sum(m * v for m, v in zip(row, u, strict=True)) for row in matrix]
    return softmax([scale * v + more + b for v, more, b in zip(u, linear, bias, strict=True)])


def loss(x, proba, noisy, proba_clean, clean, pairs, weights, log_prior_ratio):
    """Negative log-likelihood of all labels, less the log-prior of the map; `weights` are of the clean samples.

    By Bayes' rule, a class that is drawn more often among the clean samples has more of their posterior.
    """
    c = len(pairs)
    scale, bias, matrix, T = unpack(x, c)
    total = 0.0
    for p, j in zip(proba, noisy, strict=True):
        q = calibrated(p, scale, bias, matrix)
        total -= math.log(sum(q[i] * T[i][j] for i in range(c)))
    for p, i, weight in zip(proba_clean, clean, weights, strict=True):
        drawn = [q * math.exp(m) for q, m in zip(calibrated(p, scale, bias, matrix), log_prior_ratio, strict=True)]
        total -= weight * math.log(drawn[i] / sum(drawn))
    for i in range(c):
        for j in range(c):
            total -= pairs[i][j] * math.log(T[i][j])
    logs = [centred_log(p) for p in [*proba, *proba_clean]]
    variance = max(sum(sum(v * v for v in u) / c for u in logs) / len(logs), SMALLEST_VARIANCE)
    of_matrix = sum(v * v for row in matrix for v in row)
    return total + (math.log(scale) ** 2 + sum(b * b for b in bias) + PRECISION * variance * of_matrix) / 2


def slow_noise_model(proba, noisy, proba_clean, clean, pairs, weight):
    """T, and a function that calibrates probabilities."""
    c = len(pairs)
    data = [np.asarray(a).tolist() for a in (proba, noisy, proba_clean, clean, pairs)]
    args = (*data, [weight] * len(clean), [0.0] * c)
    found = minimize(loss, np.zeros(1 + c + 2 * c * c), args=args, method="BFGS", options={"gtol": 1e-4})
    scale, bias, matrix, T = unpack(found.x, c)
    return np.array(T), lambda proba: np.array([calibrated(p, scale, bias, matrix) for p in proba.tolist()])
