"""Predictions of a fitted classifier, and its network under skorch's names."""

import numpy as np
import pandas as pd
import pytest
import torch
from estimators import CLASSIFIERS, small
from sklearn.exceptions import NotFittedError
from torch import nn
from training import fit, fit_noisy, refused

from noisytransition import CrossEntropyClassifier, load
from noisytransition.fitting import _parameters


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_logarithms_of_the_probabilities_and_the_last_network_s_logits(cls, blobs, plain):
    clf = plain(cls)
    proba = clf.predict_proba(blobs[4])
    np.testing.assert_allclose(clf.predict_log_proba(blobs[4]), np.log(proba), rtol=1e-3)
    assert clf.module_ is clf.net_.module_
    with torch.no_grad():
        logits = clf.module_.eval()(torch.from_numpy(blobs[4]).float())
    np.testing.assert_allclose(proba, logits.softmax(1), rtol=1e-4, atol=1e-6)
    assert not hasattr(cls(), "module_")
    with pytest.raises(NotFittedError):
        cls().predict_log_proba(blobs[0])


def test_logarithms_are_finite_unless_a_class_has_no_probability_and_no_output_is_undefined(blobs):
    clf = fit_noisy(CrossEntropyClassifier, blobs, module=nn.Linear(4, 3))
    X = 1e3 * blobs[4]
    logits = torch.from_numpy(X).float() @ clf.net_.module_.weight.T + clf.net_.module_.bias
    assert (clf.predict_proba(X) == 0).any()
    expected = logits - logits.double().logsumexp(1, keepdim=True)
    np.testing.assert_allclose(clf.predict_log_proba(X), expected.detach(), rtol=1e-4, atol=1e-3)
    clf.net_.module_.bias.data[2] = -torch.inf
    assert (clf.predict_log_proba(X)[:, 2] == -np.inf).all()
    clf.net_.module_.bias.data[2] = torch.nan
    with pytest.raises(ValueError, match="not finite for 200 of 200 samples"):
        clf.predict_log_proba(X)


# ---------------------------------------------------------------------------- devices that are not there
def test_a_gpu_that_is_not_there_is_an_error_before_training(blobs, tmp_path, monkeypatch):
    """Simulate a machine without a GPU; there, a classifier of a GPU is loaded on the CPU."""

    def zeros(*size, device=None):
        if device is not None and str(device).startswith("cuda"):
            raise RuntimeError("no driver")
        return torch.ones(*size)

    monkeypatch.setattr(_parameters.torch, "zeros", zeros)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    for cls in CLASSIFIERS:
        with refused("device='cuda' cannot be used"):
            fit(cls, blobs, device="cuda")
    clf, path = fit_noisy(CrossEntropyClassifier, blobs), tmp_path / "clf.safetensors"
    clf.set_params(device="cuda").save(path)
    with pytest.raises(ValueError, match="cannot be used"):
        load(path)
    np.testing.assert_array_equal(load(path, device="cpu").predict(blobs[4]), clf.predict(blobs[4]))


# ---------------------------------------------------------------------------- scores
def test_the_score_weighs_samples_and_takes_objects_that_fit_takes(blobs):
    X, y, weight = blobs[0], blobs[1].astype(bool), np.random.default_rng(0).random(len(blobs[1]))
    clf = small(CrossEntropyClassifier).fit(X, y.astype(object))
    right = clf.predict(X) == y
    assert clf.score(X, y, sample_weight=weight) == pytest.approx(weight[right].sum() / weight.sum())
    verified = np.where(np.arange(len(y)) < 20, np.roll(y, 1).astype(object), None)
    for labels in (y.astype(object), pd.Series(y, dtype=object)):
        assert clf.score(X, labels) == right.mean()
        for given in (verified, pd.Series(verified), verified.tolist()):
            assert clf.score(X, labels, y_verified=given) == clf.score(X[:20], np.roll(y, 1)[:20])
