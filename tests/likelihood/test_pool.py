"""Pools of views of the true label: laws, and the weights of views that are right, too certain, or without use."""

import numpy as np
import pytest
from scipy.special import softmax

from noisytransition.likelihood._pool import Views, pool_weights, pooled, shares_of_views

T = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.0, 0.2, 0.8]])


def problem(seed=0, n=2000, power=1.0, by_features=False):
    """Views of samples whose labels have one T, or depend on the features; probabilities are `power` times as sure."""
    rng = np.random.default_rng(seed)
    proba = softmax(1.5 * rng.normal(size=(n, 3)), axis=1)
    y = (proba.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
    noisy = proba.argmax(axis=1) if by_features else (T[y].cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
    features = softmax(power * np.log(proba), axis=1)
    return Views(features, T.T[noisy], rng.dirichlet(np.ones(3), n)), y


@pytest.mark.parametrize(
    ("params", "expected"),
    [({}, [1, 1, 0]), ({"power": 2.0}, [0.5, 1, 0]), ({"by_features": True}, [1, 0, 0])],
    ids=["right", "too certain", "label repeats the features"],
)
def test_weights_of_many_samples(params, expected):
    np.testing.assert_allclose(list(pool_weights(*problem(**params)).values()), expected, atol=0.15)


def test_the_weights_maximise_the_log_posterior():
    """Slow twin: no other weights on a grid are more probable."""
    views, y = problem(n=60)
    rows = np.arange(len(y))

    def value(w):
        of_views = dict(zip(Views._fields, w, strict=True))
        return np.log(pooled(views, of_views)[rows, y]).sum() - ((w - np.array([1, 1, 0])) ** 2).sum() / 2

    found = np.array(list(pool_weights(views, y).values()))
    for step in 0.05 * np.random.default_rng(0).normal(size=(200, 3)):
        assert value(np.maximum(found + step, 0)) <= value(found) + 1e-9


def test_samples_of_another_class_prior():
    views, y = problem(n=4000)
    offset = np.log([3.0, 1.0, 1.0])
    kept = np.random.default_rng(1).random(len(y)) < np.exp(offset[y]) / 3
    some = Views(*(of[kept] for of in views))
    np.testing.assert_allclose(list(pool_weights(some, y[kept], offset).values()), [1, 1, 0], atol=0.15)


def test_shares_of_views():
    views, _ = problem()
    certain, half = views._replace(clean=views.features), views._replace(label=np.ones_like(views.label))
    of_equal = shares_of_views(certain, {"features": 1.0, "label": 0.0, "clean": 1.0})
    assert of_equal == {"features": 0.5, "label": 0.0, "clean": 0.5}
    assert shares_of_views(half, {"features": 0.5, "label": 1.0, "clean": 0.0})["features"] == 1.0
