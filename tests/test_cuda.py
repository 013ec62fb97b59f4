"""The same results on a GPU, within the rounding of float32."""

import numpy as np
import pytest
import torch
from estimators import CLASSIFIERS, small

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_gpu_gives_what_the_cpu_gives(cls, blobs):
    X, y, X_meta, y_meta, *_ = blobs
    cpu, gpu = (small(cls, device=device).fit(X, y, meta=(X_meta, y_meta)) for device in ("cpu", "cuda"))
    assert next(gpu.net_.module_.parameters()).is_cuda
    np.testing.assert_allclose(gpu.predict_proba(X), cpu.predict_proba(X), atol=1e-3)
    if hasattr(cpu, "transition_matrix_"):
        np.testing.assert_allclose(gpu.transition_matrix_, cpu.transition_matrix_, atol=1e-3)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_seed_leaves_the_gpu_s_generator_alone(cls, blobs):
    X, y, X_meta, y_meta, *_ = blobs
    before = torch.cuda.get_rng_state()
    small(cls, device="cuda").fit(X, y, meta=(X_meta, y_meta)).predict(X)
    assert torch.equal(before, torch.cuda.get_rng_state())
