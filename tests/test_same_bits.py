"""A fit is bitwise the same in every process and for every input format of the same samples."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from estimators import small
from torch.utils.data import TensorDataset
from training import assert_same, fit, fit_noisy

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, GLCClassifier
from noisytransition.methods import METHODS


# ---------------------------------------------------------------------------- threads and processes
def test_folds_in_threads(blobs, plain):
    """Threads train one fold after the other, since PyTorch has one generator for all threads."""
    with joblib.parallel_config("threading"):
        threaded = fit(EMTransitionClassifier, blobs, n_jobs=2)
    assert_same(plain(EMTransitionClassifier), threaded, blobs[0])


@pytest.fixture(scope="module")
def other_process():
    """Return a process that is started anew."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.mark.xdist_group("other process")  # it is started once
@pytest.mark.parametrize("cls", METHODS.values())
def test_processes(cls, blobs, plain, other_process):
    assert_same(plain(cls), other_process.submit(fit, cls, blobs).result(), blobs[0])


def test_predictions_draw_nothing_from_the_global_generator(blobs):
    clf = fit_noisy(CrossEntropyClassifier, blobs)
    before = torch.get_rng_state()
    clf.predict_proba(blobs[0])
    clf.net_.predict_proba(blobs[0].astype(np.float32))
    clf.predict_proba(TensorDataset(torch.tensor(blobs[0]).float()))
    assert torch.equal(before, torch.get_rng_state())


# ---------------------------------------------------------------------------- forms of the same rows
def read_only(X, folder):
    path = folder / f"{len(X)}.npy"
    if not path.exists():
        np.save(path, X)
    return np.load(path, mmap_mode="r")


FORMS = {
    "Fortran order": lambda X, folder: np.asfortranarray(X),
    "list": lambda X, folder: X.tolist(),
    "data frame": lambda X, folder: pd.DataFrame(X),
    "tensor": lambda X, folder: torch.from_numpy(X),
    "not contiguous": lambda X, folder: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X, folder: X[::-1].copy()[::-1],
    "read-only file": read_only,
    "Dataset": lambda X, folder: TensorDataset(torch.from_numpy(X)),
}


@pytest.mark.parametrize(
    ("cls", "name"), [(EMTransitionClassifier, "read-only file"), *((GLCClassifier, name) for name in FORMS)]
)
def test_forms_of_the_same_rows(cls, name, blobs, plain, tmp_path):
    X, y, X_clean, y_clean, *_ = blobs
    of_rows, of_clean = (FORMS[name](rows, tmp_path) for rows in (X, X_clean))
    clf = small(cls).fit(of_rows, y, meta=(of_clean, y_clean))
    assert_same(plain(cls), clf, X)
    np.testing.assert_array_equal(clf.predict_proba(of_rows), clf.predict_proba(X))
