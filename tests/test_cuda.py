"""The same results on a GPU, within the rounding of float32 or of half precision."""

import numpy as np
import pytest
import torch
from estimators import CLASSIFIERS, small
from torch import nn
from training import StopAfter, fit

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, MetaTransitionClassifier, load
from noisytransition.methods import METHODS
from noisytransition.nets import NoisyLabelNet

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_gpu_gives_what_the_cpu_gives(cls, blobs, plain, tmp_path):
    """It leaves the generator of the GPU alone, and a saved classifier predicts without the GPU."""
    X, cpu = blobs[0], plain(cls)
    before = torch.cuda.get_rng_state()
    gpu = fit(cls, blobs, device="cuda")
    proba = gpu.predict_proba(X)
    assert torch.equal(before, torch.cuda.get_rng_state())
    assert next(gpu.net_.module_.parameters()).is_cuda
    # the optimiser that finds EM's T makes more of a rounding error where the likelihood is flat
    atol = 5e-3 if cls is EMTransitionClassifier else 1e-3
    np.testing.assert_allclose(proba, cpu.predict_proba(X), atol=atol)
    if hasattr(cpu, "transition_matrix_"):
        np.testing.assert_allclose(gpu.transition_matrix_, cpu.transition_matrix_, atol=atol)
    gpu.save(tmp_path / "clf.safetensors")
    own = {} if cls in METHODS.values() else {"cls": cls}
    again = load(tmp_path / "clf.safetensors", **own, device="cpu")
    assert not next(again.net_.module_.parameters()).is_cuda
    np.testing.assert_allclose(again.predict_proba(X), proba, atol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("cls", [CrossEntropyClassifier, EMTransitionClassifier, MetaTransitionClassifier])
def test_a_compiled_network_gives_what_the_plain_one_gives(cls, blobs, precision):
    given = {"module": nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), "device": "cuda"}
    both = (fit(cls, blobs, compile=c, precision=precision, **given) for c in (True, False))
    compiled, plain = (clf.predict_proba(blobs[0]) for clf in both)
    assert np.abs(compiled - plain).mean() < (1e-3 if precision == "float32" else 0.05)


@pytest.mark.parametrize("cls", [CrossEntropyClassifier, EMTransitionClassifier, MetaTransitionClassifier])
def test_no_step_waits_for_the_gpu_with_pinned_memory(monkeypatch, cls, blobs):
    step = NoisyLabelNet.train_step

    def watched(*args, **kwargs):
        torch.cuda.set_sync_debug_mode("error")
        try:
            return step(*args, **kwargs)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    monkeypatch.setattr(NoisyLabelNet, "train_step", watched)
    fit(cls, blobs, device="cuda", iterator_train__pin_memory=True)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_an_interrupted_fit_goes_on(cls, blobs, tmp_path):
    X, y, *_ = blobs
    given = {"device": "cuda", "module": nn.Sequential(nn.Dropout(0.2), nn.Linear(4, 3))}  # draws on the GPU
    saved = {"meta": blobs[2:4], "state": tmp_path / "fit"}
    with pytest.raises(KeyboardInterrupt):
        small(cls, **given, callbacks=[StopAfter(2)]).fit(X, y, **saved)
    resumed = small(cls, **given).fit(X, y, **saved)
    np.testing.assert_allclose(resumed.predict_proba(X), fit(cls, blobs, **given).predict_proba(X), atol=1e-3)
