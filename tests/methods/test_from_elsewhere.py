"""Verified samples from another place or time than the others are warned of."""

import functools

import numpy as np
import pytest
from posteriors import verified_at
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from noisytransition import LabelNoiseModel


@functools.cache
def months(seed, n=2000):
    """In the first quarter of the samples, class 1 is more frequent."""
    rng = np.random.default_rng(seed)
    is_early = np.arange(n) < n // 4
    y = (rng.random(n) < np.where(is_early, 0.7, 0.2)).astype(int)
    X = rng.normal(size=(n, 4)) + 2 * y[:, None] * (np.arange(4) < 2)
    noisy = np.where(rng.random(n) < 0.2, 1 - y, y)
    return y, noisy, is_early, cross_val_predict(LogisticRegression(), X, noisy, method="predict_proba", cv=3)


def fitted(y, noisy, proba, rows, **given):
    return LabelNoiseModel().fit(proba, noisy, y_verified=verified_at(y, rows), **given)


def test_samples_of_the_first_months_differ_from_the_others():
    y, noisy, is_early, proba = months(0)
    rows = np.random.default_rng(0).choice(np.flatnonzero(is_early), 300, replace=False)
    with pytest.warns(UserWarning, match="verified samples differ from the others"):
        fitted(y, noisy, proba, rows)


@pytest.mark.parametrize("how", ["random", "by label", "by probability", "groups"])
def test_known_draws_give_no_alarm(how):
    rng = np.random.default_rng(1)
    for seed in range(3):
        y, noisy, _, proba = months(seed)
        rows = rng.choice(len(y), 200, replace=False)
        given = {}
        if how == "by label":
            rows = np.concatenate([rng.choice(np.flatnonzero(noisy == j), 100, replace=False) for j in (0, 1)])
        if how == "by probability":
            drawn = np.where(proba[:, 1] > 0.5, 3.0, 0.5)
            rows = np.flatnonzero(rng.random(len(y)) < 0.07 * drawn)
            given = {"verified_probability": drawn}
        if how == "groups":
            groups = np.argsort(np.argsort(proba[:, 1] + 0.3 * rng.normal(size=len(y)))) // 10  # of similar samples
            rows = np.flatnonzero(np.isin(groups, rng.choice(groups.max() + 1, 30, replace=False)))
            given = {"groups": groups}
        assert "from_elsewhere" not in fitted(y, noisy, proba, rows, **given).diagnostics_
