"""Sample weights: how often a sample is drawn."""

import numpy as np
import pytest
import torch
from estimators import small
from training import assert_same, refused

from noisytransition import CrossEntropyClassifier, GLCClassifier, MetaTransitionClassifier
from noisytransition.methods import METHODS

WEIGHTS = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 4.0], size=300)
KEPT = WEIGHTS > 0


def weighted(cls, blobs, weights=WEIGHTS, **params):
    X, y, X_clean, y_clean, *_ = blobs
    return small(cls, **params).fit(X, y, meta=(X_clean, y_clean), sample_weight=weights)


def test_equal_weights_are_as_none(blobs, plain):
    cls = MetaTransitionClassifier
    assert_same(weighted(cls, blobs, np.full(300, 0.3)), plain(cls), blobs[0])


@pytest.mark.parametrize("cls", METHODS.values())
def test_a_factor_changes_nothing_and_rows_without_weight_are_left_out(cls, blobs, plain):
    X, y, X_clean, y_clean, *_ = blobs
    kept = small(cls).fit(X[KEPT], y[KEPT], meta=(X_clean, y_clean), sample_weight=1024 * WEIGHTS[KEPT])
    clf = weighted(cls, blobs)
    assert_same(clf, kept, X)
    assert not np.array_equal(clf.predict_proba(X), plain(cls).predict_proba(X))


def test_weights_of_verified_rows_are_not_used(blobs):
    X, y, *_ = blobs
    mask, true = np.arange(300) % 4 == 1, (y + 1) % 3
    given = {"y_verified": np.where(mask, true, -1)}
    clf = small(GLCClassifier).fit(X, y, sample_weight=WEIGHTS, **given)
    other = np.where(mask, 0, WEIGHTS)
    assert_same(clf, small(GLCClassifier).fit(X, y, sample_weight=other, **given), X)


def test_the_weighted_majority_of_each_point_is_learned():
    """Two points, each with both labels in equal numbers."""
    X, y = np.repeat([[-1.0], [1.0]], 200, axis=0), np.tile([0, 1], 200)
    right = y == (X[:, 0] > 0)
    clf = small(CrossEntropyClassifier, max_epochs=100, batch_size=-1).fit(X, y, sample_weight=np.where(right, 4, 1))
    np.testing.assert_allclose(clf.predict_proba(X)[right, y[right]], 0.8, atol=0.03)  # of 0.5 without weights


@pytest.mark.parametrize("own", [{"iterator_train__shuffle": False}, {"iterator_train": torch.utils.data.DataLoader}])
def test_a_loader_that_knows_nothing_of_weights_is_refused(own, blobs):
    with refused(next(iter(own))):
        weighted(CrossEntropyClassifier, blobs, **own)
