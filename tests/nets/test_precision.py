"""Half precision by a parameter: in every method, in the look-ahead, with scaled gradients, saved and resumed."""

from functools import partial

import numpy as np
import pytest
import torch
from estimators import small
from torch import nn
from training import On, StopAfter, assert_same, fit, fit_noisy

from noisytransition import (
    CrossEntropyClassifier,
    FineTuningClassifier,
    MetaTransitionClassifier,
    MWNetClassifier,
    load,
)
from noisytransition.losses import ForwardLoss
from noisytransition.meta_gradient import look_ahead
from noisytransition.methods import METHODS
from noisytransition.transition import pair_noise, symmetric_noise


class Noting(nn.Linear):
    """Module that records the types of its computations."""

    types = frozenset()

    def forward(self, x):
        y = super().forward(x)
        Noting.types |= {y.dtype}
        return y


# ---------------------------------------------------------------------------- fits
@pytest.mark.parametrize("cls", METHODS.values())
def test_every_method_trains_and_predicts_in_it(cls, blobs):
    module = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), Noting(16, 3))
    plain = fit(cls, blobs, module=module).predict_proba(blobs[4])
    of_clean = cls in (FineTuningClassifier, MWNetClassifier, MetaTransitionClassifier)
    for precision, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16))[: 1 + of_clean]:
        Noting.types = frozenset()
        clf = fit(cls, blobs, module=module, precision=precision)
        proba = clf.predict_proba(blobs[4])
        assert Noting.types - {torch.float32} == {dtype}  # the checks before the training are in float32
        assert {p.dtype for p in clf.module_.parameters()} == {torch.float32}
        assert proba.dtype == np.float32
        np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
        assert np.abs(proba - plain).mean() < 0.05


@pytest.mark.parametrize("cls", [CrossEntropyClassifier, MetaTransitionClassifier])
def test_compiled_networks_in_it(cls, blobs):
    given = {"precision": "bf16", "module": nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))}
    compiled = fit(cls, blobs, compile=True, compile__backend="eager", **given)
    assert_same(compiled, fit(cls, blobs, **given), blobs[0])


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_fits_in_it_are_resumed_and_saved(blobs, tmp_path, precision):
    X, cls, given = blobs[0], MetaTransitionClassifier, {"meta": blobs[2:4], "state": tmp_path / "fit"}
    whole = fit(cls, blobs, precision=precision)
    with pytest.raises(KeyboardInterrupt):
        small(cls, precision=precision, callbacks=[StopAfter(3)]).fit(*blobs[:2], **given)
    assert_same(small(cls, precision=precision).fit(*blobs[:2], **given), whole, X)
    whole.save(tmp_path / "clf")
    np.testing.assert_array_equal(load(tmp_path / "clf").predict_proba(X), whole.predict_proba(X))


# ---------------------------------------------------------------------------- the look-ahead
def tangent(precision, method, dtype=torch.float32):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.Tanh(), nn.Linear(32, 3)).to(dtype)
    x, x_meta = (torch.randn(n, 8).to(dtype) for n in (64, 16))
    y, y_clean = (torch.randint(3, (n,)) for n in (64, 16))
    loss = ForwardLoss(pair_noise(3, 0.3)).to(dtype)
    rates = {name: 0.1 for name, _ in module.named_parameters()}
    given = {"methods": (method,), "precision": precision}
    ahead = look_ahead(module, x, lambda z: loss.cotangent(z, y), (x_meta, y_clean), rates, **given)
    return ahead.tangent.double().flatten()


@pytest.mark.parametrize("method", ["dual", "double-vjp"])
def test_the_tangent_is_that_of_float64_up_to_the_digits_of_the_type(method):
    exact, found = tangent("float32", method, torch.float64), tangent("bf16", method)
    assert torch.cosine_similarity(exact, found, dim=0) > 0.99
    assert (found - exact).norm() / exact.norm() < 0.15


def test_steps_with_a_meta_gradient_are_in_float32_instead_of_fp16(blobs):
    start = {"transition_init": symmetric_noise(3, 0.3), "refit": False}
    whole, half = (fit(MetaTransitionClassifier, blobs, precision=name, **start) for name in ("float32", "fp16"))
    np.testing.assert_allclose(half.transition_matrix_, whole.transition_matrix_, rtol=1e-5)
    assert not np.allclose(whole.transition_matrix_, symmetric_noise(3, 0.3), rtol=1e-3)


# ---------------------------------------------------------------------------- scaled gradients
def test_callbacks_see_gradients_that_are_not_scaled(blobs):
    seen = []

    def note(net, named_parameters, **kwargs):
        seen.append([p.grad.clone() for _, p in named_parameters])

    for precision in ("float32", "fp16"):
        given = {"batch_size": -1, "max_epochs": 1, "callbacks": [On(grad_computed=note)]}
        fit(CrossEntropyClassifier, blobs, precision=precision, **given)
    for a, b in zip(*seen, strict=True):
        assert torch.cosine_similarity(a.flatten(), b.flatten(), dim=0) > 0.999
        assert (a - b).norm() < 0.02 * a.norm()


def test_a_step_that_overflows_is_left_out(blobs, monkeypatch):
    module = nn.Linear(4, 3)
    monkeypatch.setattr(torch.amp, "GradScaler", partial(torch.amp.GradScaler, init_scale=2.0**40))
    net = fit_noisy(CrossEntropyClassifier, blobs, precision="fp16", module=module, max_epochs=0).net_
    before = module.weight.clone()
    net.partial_fit(blobs[0].astype(np.float32)[:64], blobs[1][:64], epochs=1)
    assert torch.equal(net.module_.weight, before)
    assert net.scaler_.get_scale() == 2.0**39
