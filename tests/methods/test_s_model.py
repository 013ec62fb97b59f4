from functools import partial

import numpy as np
import pytest
import torch
from estimators import small
from training import fit_noisy, floored

from noisytransition import CrossEntropyClassifier, SModelClassifier
from noisytransition.transition import confusion_transition_matrix, gold_transition_matrix

fit = partial(fit_noisy, SModelClassifier)


def test_it_starts_from_the_confusion_of_the_warm_up_and_goes_on_from_its_weights(blobs):
    X, y, X_clean, y_clean, *_ = blobs
    noisy_model = small(CrossEntropyClassifier, max_epochs=2).fit(X, y)
    np.testing.assert_array_equal(fit(blobs, max_epochs=0).predict_proba(X), noisy_model.predict_proba(X))
    T = confusion_transition_matrix(noisy_model.predict_proba(X), y)
    np.testing.assert_allclose(fit(blobs).transition_init_, floored(T), rtol=1e-5)
    gold = gold_transition_matrix(noisy_model.predict_proba(X_clean), y_clean)
    clf = small(SModelClassifier, transition_init="gold").fit(X, y, meta=(X_clean, y_clean))
    np.testing.assert_allclose(clf.transition_init_, floored(gold), rtol=1e-5)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_weight_decay_does_not_reach_T(blobs, optimizer):
    params = {"transition_lr": None, "optimizer": optimizer, "optimizer__weight_decay": 0.5, "lr": 0.01}
    clf = fit(blobs, **params)
    groups = clf.net_.optimizer_.param_groups
    assert sorted(group["weight_decay"] for group in groups) == [0.0, 0.5]


def test_the_user_s_groups_stay(blobs):
    clf = fit(blobs, module__hidden=8, optimizer__param_groups=[("*bias", {"lr": 0.001})], transition_lr=None)
    assert sorted(group["lr"] for group in clf.net_.optimizer_.param_groups) == [0.001, 0.1, 0.1]


def test_the_step_of_T_does_not_depend_on_the_optimiser_of_the_network(blobs):
    one, other = (fit(blobs, optimizer=optimizer, lr=1e-30) for optimizer in ("sgd", "adam"))
    assert np.abs(one.transition_matrix_ - one.transition_init_).max() > 0
    np.testing.assert_array_equal(one.transition_matrix_, other.transition_matrix_)


@pytest.mark.parametrize(
    "params",
    [
        {"optimizer__param_groups": [("*", {"lr": 0.1})]},
        pytest.param({"compile": True, "compile__backend": "eager"}, marks=pytest.mark.slow),  # its import takes long
    ],
)
def test_nothing_takes_T_out_of_its_group(blobs, params):
    clf = fit(blobs, transition_lr=None, lr=1e-30, **params)
    np.testing.assert_array_equal(clf.transition_matrix_, clf.transition_init_)
