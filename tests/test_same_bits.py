"""A fit is bitwise the same in every process and for every input format of the same samples."""

import copy
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from estimators import small
from sklearn.base import clone
from skorch.dataset import ValidSplit
from torch.utils.data import TensorDataset
from training import On, StopAfter, assert_same, fit, refused

from noisytransition import EMTransitionClassifier, FineTuningClassifier, GLCClassifier, MetaTransitionClassifier
from noisytransition.methods import METHODS


# ---------------------------------------------------------------------------- threads and processes
def test_folds_in_threads(blobs, plain):
    """Threads train one fold after the other, since PyTorch has one generator for all threads."""
    lock = threading.Lock()  # other processes cannot have it
    with joblib.parallel_config("threading"):
        note = On(epoch_end=lambda net, **kwargs: lock.locked())
        threaded = fit(EMTransitionClassifier, blobs, n_jobs=2, callbacks=[note])
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


# ---------------------------------------------------------------------------- forms of the same rows
def with_duplicates(X):
    """Create a CSR matrix with duplicate entries and stored zeros."""
    n, d = X.shape
    indices = np.tile(np.repeat(np.arange(d)[::-1], 2), n)
    halves = np.repeat(X[:, ::-1] / 2, 2)
    return sp.csr_array((halves, indices, np.arange(0, 2 * n * d + 1, 2 * d)), shape=X.shape)


FORMS = {
    "Fortran order": np.asfortranarray,
    "not contiguous": lambda X: np.repeat(X, 2, axis=0)[::2],
    "negative strides": lambda X: X[::-1].copy()[::-1],
    "list": np.ndarray.tolist,
    "data frame": pd.DataFrame,
    "tensor": torch.from_numpy,
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "Dataset": lambda X: TensorDataset(torch.from_numpy(X)),
    "CSR matrix": sp.csr_matrix,
    "COO array": sp.coo_array,
    "DOK array": sp.dok_array,
    "duplicates": with_duplicates,
    "sparse data frame": lambda X: pd.DataFrame(X).astype(pd.SparseDtype(float, 0.0)),
}
WEIGHTS = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 4.0], size=300)


@pytest.fixture(scope="module")
def zeros(blobs):
    """Samples of `blobs` with about half of the entries set to 0, and fits of them with clean and verified samples."""
    X, y, X_clean, y_clean, *_ = blobs
    X, X_clean = (np.where(rows > 1, rows, 0.0) for rows in (X, X_clean))
    return X, X_clean, fits(X, y, X_clean, y_clean)


def fits(X, y, X_clean, y_clean):
    """Two fits: with weights, some of which are 0, and with verified samples."""
    verified = np.where(np.arange(300) % 5 == 0, (y + 1) % 3, -1)
    weighted = small(GLCClassifier).fit(X, y, meta=(X_clean, y_clean), sample_weight=WEIGHTS)
    return weighted, small(GLCClassifier).fit(X, y, y_verified=verified)


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_the_same_rows(name, blobs, zeros):
    """Samples in a file are in test_memory.py."""
    X, X_clean, expected = zeros
    form = FORMS[name]
    given = form(X)
    before = copy.deepcopy(given)
    for clf, plain in zip(fits(given, blobs[1], form(X_clean), blobs[3]), expected, strict=True):
        assert_same(plain, clf, X)
        np.testing.assert_array_equal(clf.predict_proba(given), clf.predict_proba(X))
    if sp.issparse(given):
        assert given.nnz == before.nnz
        np.testing.assert_array_equal(given.toarray(), before.toarray())


@pytest.mark.parametrize("cls", [FineTuningClassifier, MetaTransitionClassifier, EMTransitionClassifier])
def test_sparse_rows_give_the_bits_of_dense_ones(cls, blobs, zeros):
    X, X_clean, _ = zeros
    clf = small(cls, train_split=ValidSplit(0.2, random_state=0))
    dense, sparse = (
        clone(clf).fit(form(X), blobs[1], meta=(form(X_clean), blobs[3])) for form in (np.asarray, sp.csr_array)
    )
    assert_same(dense, sparse, X)
    assert sparse.n_features_in_ == 4
    np.testing.assert_array_equal(sparse.predict_proba(sp.csr_array(X)), dense.predict_proba(X))
    np.testing.assert_array_equal(sparse.predict(sp.csc_matrix(X)), dense.predict(X))
    for stage, history in dense.histories_.items():
        losses = (h[:, "valid_noisy_loss"] for h in (history, sparse.histories_[stage]) if "valid_noisy_loss" in h[-1])
        assert len({tuple(values) for values in losses}) <= 1


def test_an_interrupted_fit_resumes_from_another_sparse_format(blobs, zeros, tmp_path):
    X, X_clean, (dense, _) = zeros
    given = {"meta": (sp.csr_array(X_clean), blobs[3]), "sample_weight": WEIGHTS, "state": tmp_path / "fit"}
    with pytest.raises(KeyboardInterrupt):
        small(GLCClassifier, callbacks=[StopAfter(3)]).fit(sp.csr_array(X), blobs[1], **given)
    with refused("X, y"):
        small(GLCClassifier).fit(sp.csr_array(X * 2), blobs[1], **given)
    given["meta"] = (sp.csc_array(X_clean), blobs[3])
    assert_same(dense, small(GLCClassifier).fit(sp.csc_array(X), blobs[1], **given), X)
