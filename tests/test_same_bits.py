"""A fit gives the same bits in every process, in every thread, and of every form of the same rows."""

import threading

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from estimators import CLASSIFIERS, small
from skorch.callbacks import Callback
from torch import nn
from torch.utils.data import TensorDataset
from training import assert_same, fit, fit_noisy

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, MetaTransitionClassifier

every = pytest.mark.parametrize("cls", CLASSIFIERS)


def norm():
    """A module whose look-ahead is differentiated in forward mode, and that draws dropout masks."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))


# ---------------------------------------------------------------------------- threads and processes
def many(cls, blobs, **params):
    """Fit in four threads and compare with a fit alone."""
    alone = fit(cls, blobs, **params)
    torch.manual_seed(5)
    before, n_threads = torch.get_rng_state(), torch.get_num_threads()
    fits = joblib.Parallel(4, backend="threading")(joblib.delayed(fit)(cls, blobs, **params) for _ in range(4))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_num_threads() == n_threads
    for clf in fits:
        assert_same(alone, clf, blobs[0])


@every
def test_threads(cls, blobs):
    many(cls, blobs)


@pytest.mark.parametrize("cls", [MetaTransitionClassifier, CrossEntropyClassifier])
def test_threads_with_forward_mode_and_dropout(cls, blobs):
    many(cls, blobs, module=norm())


class FitsAnother(Callback):
    """Fits a method with folds in threads at the end of a training."""

    def __init__(self, blobs):
        self.blobs = blobs

    def on_train_end(self, net, **kwargs):
        with joblib.parallel_config("threading"):
            fit(EMTransitionClassifier, self.blobs, n_jobs=2)


def test_a_fit_inside_of_a_fit_with_folds_in_threads(blobs):
    alone = fit_noisy(CrossEntropyClassifier, blobs)
    assert_same(alone, fit_noisy(CrossEntropyClassifier, blobs, callbacks=[FitsAnother(blobs)]), blobs[0])


def test_folds_in_threads_inside_of_threads(blobs):
    module = norm()
    alone = fit(EMTransitionClassifier, blobs, module=module)

    def in_folds():
        with joblib.parallel_config("threading"):
            return fit(EMTransitionClassifier, blobs, module=module, n_jobs=2)

    for clf in joblib.Parallel(3, backend="threading")(joblib.delayed(in_folds)() for _ in range(3)):
        assert_same(alone, clf, blobs[0])


def test_different_methods_and_predictions_in_threads(blobs, plain):
    X = blobs[0]
    fitted = fit(CrossEntropyClassifier, blobs, module=norm())
    proba, stop = fitted.predict_proba(X), threading.Event()

    def predict():
        while not stop.is_set():
            np.testing.assert_array_equal(fitted.predict_proba(X), proba)

    predicting = threading.Thread(target=predict)
    predicting.start()
    try:
        mixed = joblib.Parallel(4, backend="threading")(joblib.delayed(fit)(cls, blobs) for cls in CLASSIFIERS)
    finally:
        stop.set()
        predicting.join()
    for cls, clf in zip(CLASSIFIERS, mixed, strict=True):
        assert_same(plain(cls), clf, X)


def test_without_a_seed_threads_draw_seeds_that_differ(blobs):
    torch.manual_seed(5)
    alone = [fit(CrossEntropyClassifier, blobs, random_state=None).predict_proba(blobs[0]) for _ in range(4)]
    torch.manual_seed(5)
    fits = joblib.Parallel(4, backend="threading")(
        joblib.delayed(fit)(CrossEntropyClassifier, blobs, random_state=None) for _ in range(4)
    )
    found = {clf.predict_proba(blobs[0]).tobytes() for clf in fits}
    assert found == {proba.tobytes() for proba in alone}


@pytest.mark.xdist_group("workers")
@every
def test_processes(cls, blobs, plain):
    (other,) = joblib.Parallel(2)([joblib.delayed(fit)(cls, blobs)])
    assert_same(plain(cls), other, blobs[0])


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


@every
def test_forms_of_the_same_rows(cls, blobs, tmp_path):
    X, y, X_meta, y_meta, *_ = blobs
    expected = small(cls).fit(X, y, meta=(X_meta, y_meta))
    for name, form in FORMS.items():
        clf = small(cls).fit(form(X, tmp_path), y, meta=(form(X_meta, tmp_path), y_meta))
        assert_same(expected, clf, X)
        np.testing.assert_array_equal(clf.predict_proba(form(X, tmp_path)), clf.predict_proba(X), err_msg=name)
