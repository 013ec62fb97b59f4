"""Formats of samples and labels: how they are read, and warnings.

What is refused is in the table of attacks, tests/attacks/of_data.py.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from estimators import NEED_CLEAN_DATA, small
from scipy.sparse import csr_array
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from torch import nn
from torch.utils.data import TensorDataset
from training import assert_same, fit, no_training, refused

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    ForwardClassifier,
    GLCClassifier,
    TRevisionClassifier,
)


def told(clf, *args, **kwargs):
    """Return the warnings of a fit before training."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with no_training(), pytest.raises(BaseException, match="was trained"):
            clf.fit(*args, **kwargs)
    return [str(warning.message) for warning in caught]


# ---------------------------------------------------------------------------- labels
@pytest.mark.parametrize(("mark", "dtype"), [(np.nan, float), (None, object)])
def test_rows_without_a_label_are_counted(mark, dtype, blobs):
    y = np.array(blobs[1], dtype=dtype)
    y[5:15] = mark
    assert "10 of 300 samples have no label" in told(small(GLCClassifier), blobs[0], y, meta=blobs[2:4])[0]


def test_minus_one_may_be_a_class(blobs):
    X, y = blobs[:2]
    with refused("the labels are -1 to 2"):
        small(GLCClassifier).fit(X, np.where(np.arange(300) < 10, -1, y), meta=blobs[2:4])
    with pytest.warns(UserWarning, match="taken as a class"):
        assert small(CrossEntropyClassifier).fit(X, y - 1).classes_.tolist() == [-1, 0, 1]
    for classes in ([-1, 1, 2], [-2, -1, 0], [-1, 0, 2], [-1, 0, 0], [-1, 1, 1]):
        assert not told(small(CrossEntropyClassifier), X, np.array(classes)[y])


def test_a_clean_class_without_noisy_labels_is_warned_of(blobs):
    X, y, X_clean, y_clean, *_ = blobs
    names, clean = np.array(["ant", "bee", "cat"]), np.array(["ape", "bee", "cat"])
    encoded = y % 2, 2 * (y_clean % 2)  # as by cross_val_predict(method="predict_proba"), which encodes y alone
    for labels, labels_clean, absent in ((names[y], clean[y_clean], "ape"), (*encoded, "[2]")):
        said = told(small(GLCClassifier), X, labels, meta=(X_clean, labels_clean))
        assert any(absent in text and "LabelEncoder" in text for text in said)


def test_one_clean_row_for_each_of_many_classes_is_no_regression_problem():
    y = np.arange(200) % 25
    X = np.random.default_rng(0).normal(size=(200, 3)) + y[:, None] / 10
    clf = small(GLCClassifier)
    assert not told(clf, X[25:], y[25:], meta=(X[:25], y[:25]), y_clean_noisy=y[1:26])
    assert any("number of unique classes" in said for said in told(clf, X, np.arange(200) % 150, meta=(X, y)))


def test_labels_that_name_the_rows_in_another_order_are_warned_of():
    X, y = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2))), pd.Series(np.arange(40) % 2)
    clf = small(CrossEntropyClassifier, max_epochs=1)
    for same in (y, y.to_numpy(), y.set_axis(y.index + 100)):  # other names say nothing
        assert not told(clf, X, same)
    weight = pd.Series(np.arange(1.0, 41))
    assert not told(clf, X, y, sample_weight=weight)
    for labels, others in ((y[::-1], {}), (y, {"sample_weight": weight[::-1]})):
        with pytest.warns(UserWarning, match="differ in their order") as caught:
            clf.fit(X, labels, **others)
        assert caught[0].filename == __file__


# ---------------------------------------------------------------------------- clean rows and noisy ones
def unequal(shares, per_class, n=300):
    """Two columns, labels "a", "b", "c" in these shares, and so many clean rows of each."""
    rng = np.random.default_rng(0)
    y, y_clean = (np.repeat(["a", "b", "c"], counts) for counts in (np.multiply(shares, n).astype(int), per_class))
    X, X_clean = (np.float32(rng.normal(size=(len(of), 2)) + 3 * (of == "a")[:, None]) for of in (y, y_clean))
    return {"X": X, "y": y, "meta": (X_clean, y_clean)}


@pytest.mark.parametrize("cls", NEED_CLEAN_DATA)
def test_equally_many_clean_rows_of_unequal_classes_bring_a_warning(cls):
    said = any("clean samples of each class" in said for said in told(small(cls), **unequal([0.8, 0.1, 0.1], [10] * 3)))
    assert said or cls is EMTransitionClassifier  # which asks at the end, if the classes then seem unequal


@pytest.mark.parametrize(
    ("shares", "per_class"),
    [([0.6, 0.25, 0.15], [10] * 3), *(([0.8, 0.1, 0.1], n) for n in ([20, 5, 5], [1] * 3, [10, 10, 0]))],
)
def test_other_shares_bring_none(shares, per_class):
    assert not told(small(FineTuningClassifier), **unequal(shares, per_class))


# ---------------------------------------------------------------------------- scale
@pytest.mark.parametrize(
    ("form", "module"),
    [(np.asarray, "mlp"), (csr_array, "linear"), (lambda X: TensorDataset(torch.tensor(X)), "mlp")],
)
def test_built_in_networks_scale_the_columns(form, module):
    X, y = load_wine(return_X_y=True)
    clf = CrossEntropyClassifier(module, lr=0.02, max_epochs=20, random_state=0)
    assert not told(clf, form(X), y)
    assert clf.fit(form(X), y).score(form(X), y) > 0.95


# ---------------------------------------------------------------------------- optimisers and networks by name
def test_numbers_of_a_grid_of_arrays_are_taken(blobs):
    X, y, *_ = blobs
    one = {"batch_size": 8, "max_epochs": 2, "lr": 0.1, "module__hidden": 8}
    grid = {name: np.array([value]) for name, value in one.items()}
    search = GridSearchCV(CrossEntropyClassifier(random_state=0), grid, cv=2, error_score="raise").fit(X, y)
    plain = CrossEntropyClassifier(**one, random_state=0).fit(X, y)
    np.testing.assert_array_equal(search.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("cls", [GLCClassifier, TRevisionClassifier])
def test_optimisers_and_networks_by_name_are_the_classes(cls, blobs):
    clf = fit(cls, blobs, module="linear", optimizer="AdamW", lr=0.01)
    assert type(clf.net_.optimizer_) is (torch.optim.Adam if cls is TRevisionClassifier else torch.optim.AdamW)
    assert [isinstance(layer, nn.Linear) for layer in clf.module_] == [False, True]
    given = {"module": "mlp", "module__hidden": (), "optimizer": torch.optim.AdamW}
    assert_same(clf, fit(cls, blobs, lr=0.01, **given), blobs[0])


# ---------------------------------------------------------------------------- data frames with names
def test_a_start_of_T_is_read_by_the_names_of_the_classes(blobs):
    X, y, *_ = blobs
    names = np.array(["a", "b", "c"])
    T = pd.DataFrame([[0.9, 0.1, 0], [0, 0.5, 0.5], [0.3, 0, 0.7]], index=names, columns=names)
    other = T.loc[["c", "a", "b"], ["b", "a", "c"]]
    without = pd.DataFrame(T.to_numpy())  # other names say nothing of the order
    starts = [
        small(ForwardClassifier, max_epochs=1, transition_init=start).fit(X, names[y]).transition_init_
        for start in (T.to_numpy(), T, other, without)
    ]
    for start in starts[1:]:
        np.testing.assert_array_equal(start, starts[0])
