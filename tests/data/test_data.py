"""Formats of samples and labels: how they are read, and warnings.

What is refused is in the table of attacks, tests/attacks/of_data.py.
"""

import warnings
from contextlib import suppress
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from estimators import NEED_CLEAN_DATA, small
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, cross_val_predict
from torch import nn
from torch.utils.data import TensorDataset
from training import assert_same, fit, no_training, refused

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    ForwardClassifier,
    GLCClassifier,
    LabelNoiseModel,
    TRevisionClassifier,
    load,
    transition_error,
)
from noisytransition.data._read import read_rows
from noisytransition.labels._read import SeparateLabels, labels_of_fit
from noisytransition.methods import METHODS


def told(clf, *args, **kwargs):
    """Return the warnings of a fit before training."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with no_training(), pytest.raises(BaseException, match="was trained"):
            clf.fit(*args, **kwargs)
    return [str(warning.message) for warning in caught]


# ---------------------------------------------------------------------------- labels
@pytest.mark.parametrize("kind", [bool, int, float])
@pytest.mark.parametrize("wrap", [partial(pd.Series, dtype=object), list, partial(np.array, dtype=object)])
def test_objects_are_labels_of_the_type_that_all_have(kind, wrap):
    values = (np.arange(30) % 2).astype(kind).tolist()
    X = np.random.default_rng(0).normal(size=(30, 2))
    clf = small(GLCClassifier, max_epochs=1).fit(X, wrap(values), y_verified=wrap(values[:9] + [None] * 21))
    assert clf.classes_.tolist() == [kind(0), kind(1)]
    assert clf.classes_.dtype == np.array(values).dtype


@pytest.mark.parametrize(
    ("cls", "mark"), [*((cls, np.nan) for cls in METHODS.values()), (GLCClassifier, None), (GLCClassifier, -1)]
)
def test_rows_without_a_label_are_counted(cls, mark, blobs):
    X, y, X_clean, y_clean, *_ = blobs
    y = np.array(y, dtype={None: object, -1: int}.get(mark, float))
    y[5:15] = mark
    if mark == -1:
        with refused("in 10 of 300 samples"):
            small(cls).fit(X, y, meta=(X_clean, y_clean))
        return
    with pytest.warns(UserWarning, match="10 of 300 samples have no label"):
        small(cls, max_epochs=1).fit(X, y, meta=(X_clean, y_clean))


def test_minus_one_may_be_a_class(blobs):
    X, y = blobs[:2]
    with pytest.warns(UserWarning, match="taken as a class"):
        assert small(CrossEntropyClassifier).fit(X, y - 1).classes_.tolist() == [-1, 0, 1]
    for classes in ([-1, 1, 2], [-2, -1, 0], [-1, 0, 2], [-1, 0, 0], [-1, 1, 1]):
        assert not told(small(CrossEntropyClassifier), X, np.array(classes)[y])


@pytest.mark.parametrize("cls", NEED_CLEAN_DATA)
def test_a_clean_class_without_noisy_labels_is_warned_of(cls, blobs):
    X, y, X_clean, y_clean, *_ = blobs
    names, clean = np.array(["ant", "bee", "cat"]), np.array(["ape", "bee", "cat"])
    with pytest.warns(UserWarning, match="ape"):
        small(cls, max_epochs=1).fit(X, names[y], meta=(X_clean, clean[y_clean]))


def test_labels_that_scikit_learn_has_encoded_are_warned_of(blobs):
    X, y, X_clean, y_clean, *_ = blobs
    y, y_clean = y % 2 + 1, y_clean % 2 + 1
    clf, given = small(GLCClassifier, max_epochs=1), {"cv": 2, "method": "predict_proba"}
    expected = pytest.warns(UserWarning, match="LabelEncoder")
    with expected, suppress(IndexError):  # scikit-learn's: a class too many
        cross_val_predict(clf, X, y, params={"meta": (X_clean, y_clean)}, **given)


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


@pytest.mark.parametrize("form", ["verified", "some both labels", "noisy labels beside", "beside", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_labels_are_read_without_rows_as_with_them(form, weighted, blobs):
    X, y, X_clean, y_clean, *_ = blobs
    y, y_clean, mask = np.array(["ant", "bee", "cat"])[y], np.array(["ant", "bee", "dog"])[y_clean], np.arange(300) < 50
    odd = np.arange(300) % 2 == 1
    clean, beside = {
        "verified": ({"y_verified": np.where(mask, y[::-1], None)}, {}),
        "some both labels": ({"y_verified": np.where(mask, y[::-1], None)}, {}),
        "noisy labels beside": ({"y_clean": y_clean, "y_clean_noisy": y[: len(y_clean)]}, {"X_clean": X_clean}),
        "beside": ({"y_clean": y_clean}, {"X_clean": X_clean}),
        "none": ({}, {}),
    }[form]
    weights = np.arange(300) % 3 if weighted else None
    y = np.where(odd & mask, None, y) if form == "some both labels" else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the class "dog"
        given = clean | {"sample_weight": weights}
        classes, noisy, rows_of_clean, *_ = read_rows(CrossEntropyClassifier(), X, y, **given, **beside)
        separate = SeparateLabels(len(y_clean), y_clean, given.get("y_clean_noisy")) if beside else None
        found = labels_of_fit(len(X), y, given.get("y_verified"), separate, None, weights)
    np.testing.assert_array_equal(found.classes, classes)
    expected = [
        (noisy, "label", found.noisy),
        (noisy, "sample_weight", None if found.weights is None else found.of_both(found.weights)[0]),
        (rows_of_clean, "design_weight", None if found.weights is None else found.of_both(found.weights)[1]),
        (rows_of_clean, "label", found.clean),
        (rows_of_clean, "noisy_label", found.noisy_of_clean),
    ]
    for rows, name, values in expected:
        default = -1 if name == "noisy_label" else []
        np.testing.assert_array_equal(rows.columns.get(name, default), [] if values is None else values)
    in_X, of_clean = found.positions
    np.testing.assert_array_equal(noisy.X, X[in_X])
    np.testing.assert_array_equal(rows_of_clean.X, X_clean if beside else X[of_clean])


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
    ("shares", "per_class"), [([0.6, 0.25, 0.15], [10] * 3), ([0.8, 0.1, 0.1], [20, 5, 5]), ([0.8, 0.1, 0.1], [1] * 3)]
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
    clf = CrossEntropyClassifier(module, max_epochs=60, random_state=0)
    assert not told(clf, form(X), y)
    assert clf.fit(form(X), y).score(form(X), y) > 0.95


# ---------------------------------------------------------------------------- modules and parameters
@pytest.mark.parametrize("module", ["mlp", "linear"])
def test_numbers_of_a_grid_of_arrays_are_taken(module, blobs):
    X, y, *_ = blobs
    grid = {"batch_size": np.array([8]), "max_epochs": np.array([2]), "lr": np.array([0.1])}
    grid |= {} if module == "linear" else {"module__hidden": np.array([8])}
    search = GridSearchCV(CrossEntropyClassifier(module, random_state=0), grid, cv=2, error_score="raise").fit(X, y)
    one = {name: values.tolist()[0] for name, values in grid.items()}
    plain = CrossEntropyClassifier(module, **one, random_state=0).fit(X, y)
    np.testing.assert_array_equal(search.predict_proba(X), plain.predict_proba(X))


# ---------------------------------------------------------------------------- optimisers and networks by name
@pytest.mark.parametrize("cls", [CrossEntropyClassifier, TRevisionClassifier, EMTransitionClassifier])
def test_an_optimizer_by_name_is_the_class(cls, blobs):
    by_name, by_class = (fit(cls, blobs, optimizer=given, lr=0.01) for given in ("AdamW", torch.optim.AdamW))
    assert type(by_name.net_.optimizer_) is (torch.optim.Adam if cls is TRevisionClassifier else torch.optim.AdamW)
    assert_same(by_name, by_class, blobs[0])
    assert clone(by_name).optimizer == "AdamW"


@pytest.mark.parametrize("cls", [CrossEntropyClassifier, TRevisionClassifier, EMTransitionClassifier])
def test_networks_by_name(cls, blobs, plain):
    assert_same(fit(cls, blobs, module="mlp"), plain(cls), blobs[0])
    linear = fit(cls, blobs, module="linear")
    assert [isinstance(layer, nn.Linear) for layer in linear.module_] == [False, True]
    assert_same(linear, fit(cls, blobs, module="mlp", module__hidden=()), blobs[0])


@pytest.mark.parametrize("module", ["linear", "mlp"])
def test_names_are_saved(module, blobs, tmp_path):
    clf = fit(EMTransitionClassifier, blobs, module=module, optimizer="adam", lr=0.01)
    clf.save(tmp_path / "clf")
    again = load(tmp_path / "clf")
    assert (again.module, again.optimizer) == (module, "adam")
    np.testing.assert_array_equal(again.predict_proba(blobs[0]), clf.predict_proba(blobs[0]))
    X, y, X_clean, y_clean, *_ = blobs
    assert_same(clone(again).fit(X, y, meta=(X_clean, y_clean)), clf, X)


# ---------------------------------------------------------------------------- data frames with names
NAMES = ["a", "b", "c"]
T = pd.DataFrame([[0.9, 0.1, 0], [0, 0.5, 0.5], [0.3, 0, 0.7]], index=NAMES, columns=NAMES)
OTHER = T.loc[["c", "a", "b"], ["b", "a", "c"]]


def test_a_start_of_T_is_read_by_the_names_of_the_classes(blobs):
    X, y, *_ = blobs
    starts = [
        small(ForwardClassifier, max_epochs=1, transition_init=start).fit(X, np.array(NAMES)[y]).transition_init_
        for start in (T.to_numpy(), T, OTHER)
    ]
    np.testing.assert_array_equal(starts[1], starts[0])
    np.testing.assert_array_equal(starts[2], starts[0])


def test_other_names_say_nothing_of_the_order(blobs):
    X, y, *_ = blobs
    rows_of = pd.DataFrame(np.eye(3) * 0.5 + 0.5 / 3)
    clf = small(ForwardClassifier, max_epochs=1, transition_init=rows_of).fit(X, np.array(NAMES)[y])
    np.testing.assert_allclose(clf.transition_init_, rows_of)


def test_frames_with_the_same_names_are_compared_by_them():
    assert transition_error(T, OTHER) == 0
    assert transition_error(T, OTHER.to_numpy()) > 0.1


@pytest.mark.parametrize("classes", [None, NAMES, ["c", "b", "a"]])
def test_label_issues_are_read_by_the_names_of_the_classes(classes):
    y = np.random.default_rng(0).integers(3, size=200)
    proba = pd.DataFrame(np.random.default_rng(1).dirichlet(np.ones(3), 200), columns=NAMES)
    expected = LabelNoiseModel.from_transition_matrix(T.to_numpy()).find_label_issues(proba.to_numpy(), y)
    model = LabelNoiseModel.from_transition_matrix(OTHER, classes)
    found = model.find_label_issues(proba[["b", "c", "a"]], np.array(NAMES)[y])
    assert found.position.tolist() == expected.position.tolist()
    assert found.suggested_label.tolist() == [NAMES[k] for k in expected.suggested_label]
    assert len(found) > 10
