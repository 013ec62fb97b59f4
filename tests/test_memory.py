"""Memory of fits besides their data, and of data that is read in batches."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from skorch.dataset import ValidSplit

from noisytransition import EMTransitionClassifier, ForwardClassifier, GLCClassifier, MetaTransitionClassifier
from noisytransition.nets import _rows

N, N_COLUMNS = 36_000, 250
NET = {"module": "linear", "max_epochs": 1, "batch_size": 400, "random_state": 0}


@pytest.fixture(scope="module")
def wide():
    """Create 36 MB of samples of three classes, their labels, and verified labels of a tenth of them."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=N)
    X = rng.normal(size=(N, N_COLUMNS)).astype(np.float32)
    X[np.arange(N), y] += 6
    return X, y, np.where(np.arange(N) % 10 == 0, y, -1)


def peak(fit):
    """Measure the peak memory of a call, in bytes."""
    tracemalloc.start()
    try:
        fit()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("clf", "form"),
    [
        (ForwardClassifier(**NET), "sparse"),
        (ForwardClassifier(**NET), "on disk"),
        (GLCClassifier(**NET), "array"),  # whose warm-up is that of cross-entropy
        (EMTransitionClassifier(**NET, cv=2), "on disk"),
    ],
)
def test_a_fit_does_not_copy_its_data(clf, form, wide, tmp_path):
    X, y, verified = wide
    if form == "on disk":
        np.save(tmp_path / "X.npy", X)
        X = np.load(tmp_path / "X.npy", mmap_mode="r")
    X = sp.csr_array(X) if form == "sparse" else X
    size = X.data.nbytes + X.indices.nbytes if form == "sparse" else X.nbytes
    clf.fit(X[:500], y[:500], y_verified=verified[:500])  # what is loaded once
    assert peak(lambda: clf.fit(X, y, y_verified=verified)) < 0.4 * size


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("clf", [GLCClassifier(**NET), EMTransitionClassifier(**NET, cv=2)])
def test_separate_clean_samples_are_joined_without_a_copy(clf, wide):
    X, y, verified = wide
    meta = X[verified >= 0], verified[verified >= 0]
    clf.fit(X[:500], y[:500], meta=meta)  # what is loaded once
    assert peak(lambda: clf.fit(X, y, meta=meta)) < 0.4 * X.nbytes


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "clf",
    [MetaTransitionClassifier(transition_init="anchor", train_split=ValidSplit(0.2)), EMTransitionClassifier(cv=2)],
)
def test_sparse_rows_become_dense_batch_by_batch(clf, monkeypatch):
    monkeypatch.setattr(_rows, "_NUMBERS_AT_ONCE", 256 * 4000)
    X = sp.random_array((6000, 4000), density=0.001, format="csr", dtype=np.float32, random_state=0)
    y = np.random.default_rng(0).integers(2, size=6000)
    verified = np.where(np.arange(6000) % 8 == 0, y, -1)
    clf.set_params(max_epochs=1, batch_size=200, random_state=0)
    clf.fit(X[:500], y[:500], y_verified=verified[:500])  # what is loaded once
    whole = peak(lambda: clf.fit(X, y, y_verified=verified).predict_proba(X))
    assert whole < 6000 * 4000 * X.dtype.itemsize / 4
