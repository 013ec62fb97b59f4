"""Sparse X gives bitwise the result of the dense array."""

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
