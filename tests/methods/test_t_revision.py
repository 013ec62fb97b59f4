from functools import partial

import numpy as np
import pytest
import torch
import training
from estimators import small
from skorch.callbacks import EarlyStopping

from noisytransition import CrossEntropyClassifier, TRevisionClassifier
from noisytransition.transition import anchor_transition_matrix

fit = partial(training.fit_noisy, TRevisionClassifier)


def test_three_stages_each_from_the_last_one_s_weights(blobs):
    X = blobs[0]
    clf = fit(blobs)
    assert list(clf.histories_) == ["warm_up", "reweighting", "revision"]
    assert [len(h) for h in clf.histories_.values()] == [2, 3, 3]
    first = small(CrossEntropyClassifier, max_epochs=2, train_split=None).fit(*blobs[:2])
    only_warm_up = fit(blobs, max_epochs=0, validation_fraction=0)
    np.testing.assert_array_equal(only_warm_up.predict_proba(X), first.predict_proba(X))
    T = anchor_transition_matrix(first.predict_proba(X))
    np.testing.assert_allclose(only_warm_up.transition_init_, training.floored(T), atol=1e-5)


def test_the_slack_is_learned_and_added_once(blobs):
    clf = fit(blobs, revision_lr=1e-3, max_epochs=10)
    dT = clf.transition_revision_
    assert 1e-4 < np.abs(dT).max() < 0.1
    raw = (clf.transition_init_ + dT).clip(0)
    np.testing.assert_allclose(clf.transition_matrix_, raw / raw.sum(1, keepdims=True), rtol=1e-4)
    assert clf.transition_history_.shape == (11, 3, 3)
    frozen = fit(blobs, revision_lr=1e-30)
    np.testing.assert_allclose(frozen.transition_revision_, np.zeros((3, 3)), atol=1e-25)
    np.testing.assert_allclose(frozen.transition_matrix_, frozen.transition_init_, rtol=1e-5)


def test_every_stage_ends_with_its_best_epoch_on_the_same_held_out_noisy_rows(blobs):
    noted = training.Stages()
    clf = fit(blobs, warm_up_epochs=5, max_epochs=5, revision_lr=1e-2, lr=0.5, callbacks=[noted])
    best = [int(np.argmax(history[:, "valid_noisy_acc"])) + 1 for history in clf.histories_.values()]
    assert min(best) < 5  # a stage that does not end with its last epoch
    ends = [noted.weights[1][0], noted.weights[2][0], noted.of(clf.net_)]
    for epoch, stage, end in zip(best, noted.weights, ends, strict=True):
        assert torch.equal(stage[epoch], end)
    np.testing.assert_array_equal(clf.transition_matrix_, clf.transition_history_[best[2]])
    assert len(noted.held_out[0]) == 30
    assert all(rows == noted.held_out[0] for rows in noted.held_out)


def test_the_last_stage_has_its_own_optimiser(blobs):
    clf = fit(blobs, optimizer="sgd", lr=0.1, optimizer__momentum=0.5, optimizer__weight_decay=0.1)
    groups = clf.net_.optimizer_.param_groups
    assert isinstance(clf.net_.optimizer_, torch.optim.Adam)
    assert {(group["lr"], group["weight_decay"]) for group in groups} == {(5e-7, 0)}
    moved = {id(p) for group in groups for p in group["params"]}
    assert moved == {id(p) for p in (*clf.net_.module_.parameters(), clf.net_.criterion_.revision)}


def test_load_best_counts_where_a_nested_parameter_sets_it(blobs):
    """The callback's best epoch is obeyed; the selection of T follows it, as if the constructor had been told."""
    X, _, X_clean, y_clean, *_ = blobs
    watched = {"monitor": "valid_clean_loss", "patience": 30}
    params = {"revision_lr": 1e-2, "max_epochs": 8}
    stop = ("stop", EarlyStopping(**watched))
    nested = training.fit(TRevisionClassifier, blobs, callbacks=[stop], callbacks__stop__load_best=True, **params)
    stop = ("stop", EarlyStopping(**watched, load_best=True))
    told = training.fit(TRevisionClassifier, blobs, callbacks=[stop], **params)
    np.testing.assert_array_equal(nested.transition_matrix_, told.transition_matrix_)
    np.testing.assert_array_equal(nested.predict_proba(X), told.predict_proba(X))
    proba = nested.predict_proba(X_clean)[np.arange(len(y_clean)), y_clean]
    assert -np.log(proba).mean() == pytest.approx(min(nested.history_[:, "valid_clean_loss"]), rel=1e-4)
