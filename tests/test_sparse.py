"""Sparse X gives bitwise the result of the dense array, and becomes dense in batches only."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import small
from skorch.dataset import ValidSplit
from training import StopAfter, assert_same, refused

from noisytransition import (
    EMTransitionClassifier,
    FineTuningClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
)
from noisytransition.fitting import _parameters
from noisytransition.nets import _rows


@pytest.fixture(scope="module")
def problem(blobs):
    """Samples of `blobs` with about half of the entries set to 0."""
    X, y, X_clean, y_clean, X_test, y_test, T = blobs
    X, X_clean, X_test = (np.where(rows > 1, rows, 0.0) for rows in (X, X_clean, X_test))
    return X, y, X_clean, y_clean, X_test, y_test, T


# ---------------------------------------------------------------------------- the same bits
@pytest.mark.parametrize("cls", [FineTuningClassifier, MetaTransitionClassifier, EMTransitionClassifier])
def test_sparse_rows_give_the_bits_of_dense_ones(cls, problem):
    X, y, X_clean, y_clean, X_test, *_ = problem
    params = {"train_split": ValidSplit(0.2, random_state=0)}
    dense = small(cls, **params).fit(X, y, meta=(X_clean, y_clean))
    sparse = small(cls, **params).fit(sp.csr_array(X), y, meta=(sp.csr_array(X_clean), y_clean))
    assert_same(dense, sparse, X_test)
    assert sparse.n_features_in_ == 4
    np.testing.assert_array_equal(sparse.predict_proba(sp.csr_array(X_test)), dense.predict_proba(X_test))
    np.testing.assert_array_equal(sparse.predict(sp.csc_matrix(X_test)), dense.predict(X_test))
    for stage, history in dense.histories_.items():
        losses = (h[:, "valid_noisy_loss"] for h in (history, sparse.histories_[stage]) if "valid_noisy_loss" in h[-1])
        assert len({tuple(values) for values in losses}) <= 1


# ---------------------------------------------------------------------------- interrupted fits
def test_an_interrupted_fit_resumes_from_another_format(problem, tmp_path):
    X, y, X_clean, y_clean, X_test, *_ = problem
    dense = small(GLCClassifier).fit(X, y, meta=(X_clean, y_clean))
    given = {"meta": (sp.csr_array(X_clean), y_clean), "state": tmp_path / "fit"}
    with pytest.raises(KeyboardInterrupt):
        small(GLCClassifier, callbacks=[StopAfter(3)]).fit(sp.csr_array(X), y, **given)
    with refused("X, y"):
        small(GLCClassifier).fit(sp.csr_array(X * 2), y, **given)
    given["meta"] = (sp.csc_array(X_clean), y_clean)
    assert_same(dense, small(GLCClassifier).fit(sp.csc_array(X), y, **given), X_test)


# ---------------------------------------------------------------------------- memory
N_ROWS, N_COLUMNS = 1500, 4000


@pytest.fixture
def dense_shapes(monkeypatch):
    """Record the shapes of all matrices that become dense."""
    shapes = []
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, sp.coo_matrix):
        for name in ("toarray", "todense"):
            made = getattr(kind, name)

            def recorded(self, *args, _made=made, **kwargs):
                shapes.append((1, *self.shape)[-2:])
                return _made(self, *args, **kwargs)

            monkeypatch.setattr(kind, name, recorded)
    return shapes


@pytest.mark.parametrize(
    "params",
    [
        {"cls": MetaTransitionClassifier, "transition_init": "anchor", "train_split": ValidSplit(0.2)},
        {"cls": EMTransitionClassifier, "cv": None},
    ],
    ids=lambda params: params["cls"].__name__,
)
def test_rows_are_made_dense_batch_by_batch(params, dense_shapes, tmp_path, monkeypatch):
    monkeypatch.setattr(_rows, "_NUMBERS_AT_ONCE", 256 * N_COLUMNS)
    monkeypatch.setattr(_parameters, "_SCALED_ROWS", 256)
    rng = np.random.default_rng(0)
    X = sp.random_array((N_ROWS, N_COLUMNS), density=0.002, rng=rng, format="csr", dtype=np.float32)
    y = rng.integers(2, size=N_ROWS)
    verified = np.where(np.arange(N_ROWS) < 200, y, -1)
    cls, given = params["cls"], {name: value for name, value in params.items() if name != "cls"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = small(cls, **given, max_epochs=1, batch_size=50).fit(X, y, y_verified=verified, state=tmp_path / "fit")
    clf.predict_proba(X)
    assert dense_shapes
    # whole rows are at most those of a batch or, of clean ones and for checks, of a forward pass without a gradient
    assert max(n for n, d in dense_shapes if d == N_COLUMNS) <= 256
    assert max(n * d for n, d in dense_shapes) <= N_ROWS * N_COLUMNS / 4
