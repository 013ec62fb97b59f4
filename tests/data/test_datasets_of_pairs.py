"""A torch Dataset of inputs and labels: the fit equals that of the same arrays."""

import numpy as np
import pytest
import torch
from estimators import small
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_predict, cross_val_score
from torch.utils.data import Dataset, Subset, TensorDataset
from training import assert_same, refused

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, FineTuningClassifier, GLCClassifier


class Pairs(Dataset):
    """Counts how often a sample is loaded."""

    def __init__(self, X, y):
        self.X, self.y, self.n_loaded = X, y, 0

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        self.n_loaded += 1
        return self.X[i], self.y[i]


def tensors(X, y):
    return TensorDataset(torch.tensor(X), torch.tensor(y))


KINDS = {
    "TensorDataset": tensors,
    "Dataset": Pairs,
    "Dataset of tensors": lambda X, y: Pairs(torch.tensor(X), torch.tensor(y)),
    "Subset": lambda X, y: Subset(tensors(X, y), range(len(y))),
}


@pytest.mark.parametrize(
    ("cls", "kind"),
    [(EMTransitionClassifier, "TensorDataset"), *((GLCClassifier, kind) for kind in KINDS)],
)
def test_its_labels_are_taken(cls, kind, blobs, plain):
    X, y, X_clean, y_clean, X_test, y_test, _ = blobs
    clf = small(cls).fit(KINDS[kind](X, y), meta=KINDS[kind](X_clean, y_clean))
    assert_same(clf, plain(cls), X)
    assert clf.score(KINDS[kind](X_test, y_test)) == clf.score(X_test, y_test)


def test_labels_that_are_given_come_first(blobs):
    X, y = blobs[:2]
    clf = small(CrossEntropyClassifier).fit(tensors(X, np.zeros_like(y)), y)
    assert_same(clf, small(CrossEntropyClassifier).fit(X, y), X)
    assert clf.score(tensors(X, np.zeros_like(y)), y) == accuracy_score(y, clf.predict(X))


def test_each_sample_is_loaded_once_for_its_label(blobs):
    X, y = blobs[:2]
    data = Pairs(X, y), Pairs(X, y)
    for pairs, labels in zip(data, (None, y), strict=True):
        small(CrossEntropyClassifier, max_epochs=1).fit(pairs, labels)
    assert data[0].n_loaded - data[1].n_loaded == len(y)


def test_without_labels_there_is_no_fit_and_no_score(blobs):
    X, y = blobs[:2]
    inputs = TensorDataset(torch.tensor(X))
    with refused("not a pair"):
        small(CrossEntropyClassifier).fit(inputs)
    with refused("not a pair"):
        small(FineTuningClassifier).fit(X, y, meta=inputs)
    with refused("requires y"):
        small(CrossEntropyClassifier).fit(X)
    clf = small(CrossEntropyClassifier).fit(X, y)
    with pytest.raises(ValueError, match="y is None"):
        clf.score(X)


# ---------------------------------------------------------------------------- searches
class Lists(Pairs):
    def __getitem__(self, i):
        return list(super().__getitem__(i))


class Triples(Pairs):
    def __getitem__(self, i):
        return *super().__getitem__(i), {"file": str(i)}


CUT = KINDS | {
    "lists": Lists,
    "triples": Triples,
    "inputs alone": lambda X, y: TensorDataset(torch.tensor(X)),
    "tuples of arrays": lambda X, y: [(row,) for row in X],
}


def test_folds_have_the_inputs_of_samples(blobs):
    X, y, *_ = blobs
    clf, params = small(CrossEntropyClassifier, max_epochs=1), {"cv": 2, "method": "predict_proba"}
    expected = cross_val_predict(clf, X, y, **params)
    for name, make in CUT.items():
        np.testing.assert_array_equal(cross_val_predict(clf, make(X, y), y, **params), expected, err_msg=name)


def test_searches_without_y_take_the_labels_of_pairs(blobs):
    X, y, *_ = blobs
    params = {"cv": [(np.arange(200), np.arange(200, 300))], "error_score": "raise"}
    clf = small(CrossEntropyClassifier, max_epochs=1)
    expected = cross_val_score(clf, X, y, **params)
    for make in KINDS.values():
        assert cross_val_score(clf, make(X, y), **params) == expected
    with refused("not a pair"):
        cross_val_score(clf, TensorDataset(torch.tensor(X)), **params)


@pytest.mark.parametrize(
    ("row", "kind"),
    [(tuple, "numbers"), (tuple, "arrays"), (list, "numbers"), (list, "arrays"), (list, "tensors")],
)
def test_a_list_of_rows_of_numbers_or_arrays_is_a_table(kind, row, blobs):
    X, y, *_ = blobs
    given = X if kind == "numbers" else X.repeat(3, axis=1).reshape(len(X), 4, 3)
    rows = [row(each) for each in {"numbers": X.tolist(), "tensors": torch.tensor(given)}.get(kind, given)]
    clf, plain = (small(CrossEntropyClassifier).fit(each, y) for each in (rows, given))
    assert_same(clf, plain, given)
