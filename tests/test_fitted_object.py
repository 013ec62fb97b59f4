"""Contents of a fitted classifier: no samples, and histories of epochs only."""

import pickle

import numpy as np
import pytest
import torch
from estimators import CLASSIFIERS, small
from skorch.callbacks import EpochScoring
from skorch.dataset import ValidSplit
from torch.utils.data import TensorDataset
from training import Batches, fit

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, GLCClassifier

some = pytest.mark.parametrize("cls", [CrossEntropyClassifier, GLCClassifier, EMTransitionClassifier])
# of one noisy row and of one clean row, exact in float32 and found nowhere else
MARKS = {"noisy": 1234.56787109375, "clean": 6543.2109375}


def found(clf):
    """Find the marks that are in a pickle, in single or double precision."""
    text = pickle.dumps(clf)
    return {
        kind for kind, mark in MARKS.items() if any(np.array(mark, t).tobytes() in text for t in (np.float32, float))
    }


def marked(blobs):
    X, y, X_clean, y_clean, *_ = blobs
    X, X_clean = X.copy(), X_clean.copy()
    X[17, 2], X_clean[5, 1] = MARKS.values()
    return X, y, X_clean, y_clean


FORMS = {"float64": np.asarray, "float32": np.float32, "Dataset": lambda X: TensorDataset(torch.tensor(X))}


def test_a_mark_is_found_where_it_is(blobs):
    X, _, X_clean, _ = marked(blobs)
    assert found([X, X_clean.astype(np.float32)]) == {"noisy", "clean"}


@pytest.mark.parametrize(
    ("cls", "form"),
    [*((cls, "float64") for cls in CLASSIFIERS), *((EMTransitionClassifier, of) for of in ("float32", "Dataset"))],
)
def test_no_row_is_in_a_pickle(cls, form, blobs):
    X, y, X_clean, y_clean = marked(blobs)
    scores = EpochScoring("accuracy", on_train=True, name="train_acc", lower_is_better=False)
    clf = small(cls, lr=1e-4, callbacks=[scores], train_split=ValidSplit(4))
    assert found(clf.fit(FORMS[form](X), y, meta=(FORMS[form](X_clean), y_clean))) == set()


@some
def test_no_row_is_in_a_pickle_of_a_fit_that_is_resumed_or_read(cls, blobs, tmp_path):
    """With verified samples of X."""
    X, y, X_clean, y_clean = marked(blobs)
    labels = np.append(y, y_clean)
    given = {"y_verified": np.where(np.arange(len(labels)) < len(y), -1, labels), "state": tmp_path / "state"}
    fits = [small(cls, lr=1e-4).fit(np.concatenate([X, X_clean]), labels, **given) for _ in range(2)]
    assert found(fits) == set()
    assert fits[0].histories_ == fits[1].histories_


# ---------------------------------------------------------------------------- histories
@some
def test_histories_are_of_epochs_and_callbacks_see_the_batches(cls, blobs):
    clf = fit(cls, blobs, callbacks=[batches := Batches()])
    assert all(batches.of_epochs)
    assert [row["batches"] for h in clf.histories_.values() for row in h] == [[]] * len(batches.of_epochs)
