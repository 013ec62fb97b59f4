"""Rows without a label are left out where the user says what marks them."""

import numpy as np
import pandas as pd
import pytest
import torch
from estimators import CLASSIFIERS, small
from scipy.sparse import bsr_array, coo_matrix, csc_array, csr_matrix, dia_matrix
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch.utils.data import TensorDataset
from training import assert_same, fit, fit_noisy, refused

from noisytransition import CrossEntropyClassifier, GLCClassifier

WITHOUT = np.arange(300) % 7 == 3
NAMES = np.array(["ant", "bee", "cat"])


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_the_fit_is_that_without_these_rows(cls, blobs):
    X, y, X_meta, y_meta, *_ = blobs
    marked = small(cls).fit(X, np.where(WITHOUT, -1, y), meta=(X_meta, y_meta), unlabeled=-1)
    assert_same(marked, small(cls).fit(X[~WITHOUT], y[~WITHOUT], meta=(X_meta, y_meta)), X)
    np.testing.assert_array_equal(marked.classes_, [0, 1, 2])


@pytest.mark.parametrize("sparse", [coo_matrix, bsr_array, csc_array, dia_matrix])
def test_rows_of_any_sparse_format_are_left_out(sparse, blobs):
    X, y, *_ = blobs
    dense = small(CrossEntropyClassifier).fit(X[~WITHOUT], y[~WITHOUT])
    assert_same(small(CrossEntropyClassifier).fit(sparse(X), np.where(WITHOUT, -1, y), unlabeled=-1), dense, X)
    assert_same(small(CrossEntropyClassifier).fit(sparse(X), y, sample_weight=~WITHOUT), dense, X)


def test_a_mark_that_no_row_has(blobs):
    X, y, *_ = blobs
    labels = np.where(WITHOUT, "-1", NAMES[y])
    with pytest.warns(UserWarning, match="unlabeled=-1 is no label of y, which has '-1': it is taken as a class"):
        small(CrossEntropyClassifier, max_epochs=1).fit(X, labels, unlabeled=-1)
    with refused(r"unlabeled=\['-1'\]; give one label"):
        small(CrossEntropyClassifier).fit(X, labels, unlabeled=["-1"])


@pytest.mark.parametrize("mark", [None, np.nan, float("nan"), pd.NA, pd.NaT])
@pytest.mark.parametrize("form", [list, np.array, pd.Series])
def test_all_that_is_missing_is_marked_by_nan(mark, form, blobs):
    X, y, *_ = blobs
    labels = form([mark if without else name for without, name in zip(WITHOUT, NAMES[y], strict=True)])
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "U":
        labels = np.where(WITHOUT, mark, NAMES[y].astype(object))
    clf = small(CrossEntropyClassifier).fit(X, labels, unlabeled=np.nan)
    assert_same(clf, small(CrossEntropyClassifier).fit(X[~WITHOUT], NAMES[y[~WITHOUT]]), X)
    assert clf.classes_.tolist() == NAMES.tolist()


@pytest.mark.parametrize("dtype", ["float64", "Int64"])
def test_numbers_beside_missing_ones_name_the_same_classes(dtype, blobs):
    X, y, X_meta, y_meta, *_ = blobs
    labels = pd.Series(y).astype(dtype).mask(WITHOUT)
    clf = small(GLCClassifier).fit(X, labels, meta=(X_meta, y_meta), unlabeled=np.nan)
    np.testing.assert_array_equal(
        clf.predict(X), small(GLCClassifier).fit(X[~WITHOUT], y[~WITHOUT], meta=(X_meta, y_meta)).predict(X)
    )


def as_dataset(X):
    return TensorDataset(torch.tensor(X))


@pytest.mark.parametrize("form", [pd.DataFrame, csr_matrix, np.ndarray.tolist, as_dataset])
def test_rows_of_any_form(form, blobs):
    X, y, *_ = blobs
    named = np.where(WITHOUT, "unknown", NAMES[y])
    clf = small(CrossEntropyClassifier).fit(form(X), named, unlabeled="unknown")
    np.testing.assert_array_equal(
        clf.predict_proba(X), small(CrossEntropyClassifier).fit(form(X[~WITHOUT]), NAMES[y[~WITHOUT]]).predict_proba(X)
    )


def test_labels_of_a_dataset(blobs):
    X, y, *_ = blobs
    pairs = TensorDataset(torch.tensor(X), torch.tensor(np.where(WITHOUT, -1, y)))
    clf = small(CrossEntropyClassifier).fit(pairs, unlabeled=-1)
    assert_same(clf, small(CrossEntropyClassifier).fit(TensorDataset(torch.tensor(X[~WITHOUT])), y[~WITHOUT]), X)


@pytest.mark.parametrize("whole", [True, False])
def test_arguments_of_trusted_rows_lose_the_same_rows(whole, blobs):
    X, y, *_ = blobs
    mask, true, keep = np.arange(300) % 7 == 2, (y + 1) % 3, ~WITHOUT
    clf = small(GLCClassifier).fit(
        X, np.where(WITHOUT, -1, y), trusted=mask, y_meta=true if whole else true[mask], unlabeled=-1
    )
    expected = small(GLCClassifier).fit(X[keep], y[keep], trusted=mask[keep], y_meta=true[mask])
    assert_same(clf, expected, X)


def test_labels_of_as_many_clean_rows_as_rows_are_not_cut(blobs):
    X, y, *_ = blobs
    clf = small(GLCClassifier).fit(X, np.where(WITHOUT, -1, y), meta=(X, y), unlabeled=-1)
    assert_same(clf, small(GLCClassifier).fit(X[~WITHOUT], y[~WITHOUT], meta=(X, y)), X)


def test_trusted_rows_without_a_label_are_refused(blobs):
    X, y, *_ = blobs
    marked, mask = np.where(WITHOUT, -1, y), np.arange(300) < 50
    n = (WITHOUT & mask).sum()
    with refused(f"{n} trusted rows have no label in y .unlabeled=-1.: leave them out of trusted; or .*as meta="):
        small(GLCClassifier).fit(X, marked, trusted=mask, y_meta=y[mask], unlabeled=-1)


def test_without_the_argument_the_error_names_it(blobs):
    X, y, *_ = blobs
    with refused("keep those with y != -1 .unlabeled=-1 does."):
        small(CrossEntropyClassifier).fit(X, np.where(WITHOUT, -1, y))
    with refused("or give unlabeled=numpy.nan, which does"):
        small(CrossEntropyClassifier).fit(X, np.where(WITHOUT, np.nan, y))


def test_a_mark_that_no_row_has_changes_nothing(blobs):
    X, y, *_ = blobs
    assert_same(small(CrossEntropyClassifier).fit(X, y, unlabeled="?"), fit_noisy(CrossEntropyClassifier, blobs), X)


def test_other_errors_are_as_without_it(blobs):
    X, y, *_ = blobs
    for labels, message in ((y[:-1], "inconsistent numbers of samples"), (np.full(300, -1), "minimum of 1|0 sample")):
        with refused(message):
            small(CrossEntropyClassifier).fit(X, labels, unlabeled=-1)


def test_in_a_pipeline_and_a_search(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    marked = np.where(WITHOUT, -1, y)
    pipe = make_pipeline(StandardScaler(), small(CrossEntropyClassifier))
    pipe.fit(X, marked, crossentropyclassifier__unlabeled=-1)
    assert pipe.classes_.tolist() == [0, 1, 2]
    search = GridSearchCV(small(GLCClassifier), {"lr": [0.1]}, cv=2, scoring=lambda clf, X, y: 1.0)
    search.fit(X, marked, meta=(X_meta, y_meta), unlabeled=-1)
    assert search.best_estimator_.classes_.tolist() == [0, 1, 2]
    assert fit(GLCClassifier, blobs).classes_.tolist() == [0, 1, 2]
